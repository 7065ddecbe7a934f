"""Pages that draw on several rooms: home, submissions, documents, status."""
