"""Wiring: the graph of an agent."""
