"""The nodes of the graph, and what they share.

A turn runs through `inject_memory`, `trim`, `model`, `tools`, `distill_notes`, `summarize` and `consolidate`;
`graph.routing` leaves out those that would have nothing to do. They share `deps` (agent, models, tools), `node_run` (a
run's state, dials and store), `prompt_plan` (what the prompt shows beside the messages) and `sizes` (the prompt against
its budget). `recall` is a part of `inject_memory`, `distiller` the model's part of `distill_notes`, `second_opinion`
that of the guard. What calls a model goes through `models.calls`, reads the provider's errors with `failures` and
structured replies with `structured_output`. Inside another graph they run by way of `nested`; for an agent with the
middleware `thread_view` and `agent_model` stand for its state and its model.

A new node is a function here, a line and its edges in `_wire_nodes` of `graph.agent`, and a case in `graph.routing`.
"""
