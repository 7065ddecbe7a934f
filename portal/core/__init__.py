"""What every room may use and that knows no room: errors, pages, throttles, request ids, storage, logs."""
