"""What can be said about a source or a run beside its verdict. Free of Django."""
