"""Scheduling and running: hosts, leases, attempts; the harness below it is free of Django."""
