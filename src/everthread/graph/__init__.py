"""The graph of an agent, its guard, and the consolidation job.

Read `_wire_nodes` in `agent` first, then `routing`. `guard` runs any compiled graph while holding the lock of its
thread; `resend` decides for it what a message means that may have been sent before.
"""
