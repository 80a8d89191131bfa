"""Storage on Postgres; needs the extra `postgres`."""
