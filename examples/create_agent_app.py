"""An agent of LangChain's `create_agent` whose thread never runs out of context.

    python examples/create_agent_app.py [DATABASE]

Without a key: the model here replies from a list. Put `"openai:gpt-5-mini"` in its place, and the rest stays.
"""

import sys
from collections.abc import Iterator

from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool

from everthread import EverthreadMiddleware, open_storage
from everthread.ledger.record import events
from everthread.models.scripted import ScriptedModel

TURNS = 30
RULE = "Do not order anything before I approve it."


@tool
def look_up_stock(item: int) -> str:
    """Return what the warehouse has of an item."""
    return "\n".join(f"item {item}, shelf {shelf}: {shelf * 7} pieces" for shelf in range(30))


def replies() -> Iterator[AIMessage]:
    """Answer the rule, then look something up in every turn."""
    yield AIMessage("Agreed: nothing is ordered before you approve it.")
    for item in range(TURNS):
        call = {"name": "look_up_stock", "args": {"item": item}, "id": f"call-{item}", "type": "tool_call"}
        yield AIMessage("", tool_calls=[call])
        yield AIMessage(f"There is enough of item {item}. " * 8)


def main(url: str) -> None:
    """Talk for more turns than fit the window, and show what the last prompt was made of."""
    model = ScriptedModel(list(replies()))
    with open_storage(url) as storage:
        agent = create_agent(
            model,
            [look_up_stock],
            system_prompt="You run the stock of a small shop.",
            middleware=[EverthreadMiddleware(window=6_000, summarizer="offline")],
            checkpointer=storage.checkpointer,
            store=storage.store,
        )
        guarded = storage.guard(agent)
        thread: RunnableConfig = {"configurable": {"thread_id": "stock", "user_id": "ann"}}
        guarded.invoke({"messages": RULE}, thread)
        for item in range(TURNS):
            guarded.invoke({"messages": f"How much is there of item {item}?"}, thread)
        assembled = [event for event in events(storage.store, "stock") if event.event == "prompt_assembled"]
        largest = max(event.tokens for event in assembled)
        print(f"{len(assembled)} prompts, the largest of {largest:,} tokens in a window of 6,000")
        print(f"the rule is in the last one: {any(RULE in message.text for message in model.prompts[-1])}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "sqlite:///:memory:")
