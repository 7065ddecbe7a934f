"""Version of the protocol: raised by hand whenever a change could move a score."""

PROTOCOL_VERSION = "5"
RESULT_SCHEMA = 1
