"""Boards: scores, rankings, charts and exports."""
