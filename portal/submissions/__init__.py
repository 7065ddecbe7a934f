"""What people send in: entrants, runs, submissions, and who may see them."""
