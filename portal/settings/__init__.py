"""Settings: `base` reads every environment variable once; `dev`, `test` and `prod` say what differs."""
