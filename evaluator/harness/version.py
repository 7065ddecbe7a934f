"""Version of the protocol: raised by hand whenever a change could move a score."""

PROTOCOL_VERSION = "4"
RESULT_SCHEMA = 1
