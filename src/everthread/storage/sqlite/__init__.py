"""The storage on SQLite: one connection, one engine, for sync and async alike."""
