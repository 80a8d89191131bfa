"""The nodes of the graph, and what they share.

A turn runs through `inject_memory`, `trim`, `model`, `tools`, `distill_notes`, `summarize` and `consolidate`;
`graph.routing` leaves out those that would have nothing to do. They share `deps` (agent, models, tools), `prompt_plan`
(what the prompt shows beside the messages), `sizes` (the prompt against its budget) and `model_calls`.

A new node is a function here, a line and its edges in `graph.agent.pipeline`, and a case in `graph.routing`.
"""
