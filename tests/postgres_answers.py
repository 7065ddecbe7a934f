"""Exit 0 when PostgreSQL answers at the URL given, else 1. Used by the Makefile."""

import sys

import psycopg

try:
    psycopg.connect(sys.argv[1], connect_timeout=3).close()
except psycopg.OperationalError:
    raise SystemExit(1) from None
