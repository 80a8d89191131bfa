"""Kill processes in the middle of turns and look at what is left."""
