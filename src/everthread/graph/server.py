"""What a LangGraph server serves; `langgraph.json` names these graphs.

They are bare, because the server brings checkpointer and store and refuses graphs with their own. They
are made once, at import: a factory would be called again, on the event loop, for every request.
"""

from everthread.agents import support as support_agent
from everthread.agents import travel as travel_agent
from everthread.graph.agent import build_graph
from everthread.graph.consolidation import build_consolidation

travel = build_graph(travel_agent)
"""The travel concierge."""

support = build_graph(support_agent)
"""IT support."""

consolidation = build_consolidation()
"""The job that ends sessions, on a thread of its own."""
