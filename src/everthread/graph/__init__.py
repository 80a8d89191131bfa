"""The graph of an agent, its guard, and the consolidation job."""
