"""Where threads and memories live: one database for checkpoints and store."""
