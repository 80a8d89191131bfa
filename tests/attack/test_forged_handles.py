"""Handles that a model makes up, or was told by somebody: none reads what is not of its own thread."""

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool

from attack.conftest import AttackRow
from conversation import call
from everthread import Context, build_graph, open_storage
from everthread.models.scripted import ScriptedModel
from everthread.state import Agent, namespaces
from everthread.storage.open import Storage

SECRETS = {"ada": "zebra-0415", "bob": "walrus-0930"}


@tool
def fetch(what: str) -> str:
    """Fetch something long."""
    return "\n".join(f"{what} row {number}" for number in range(900))


AGENT = Agent(name="test", title="Test", instructions="Be brief.", tools=[fetch])


def _config(user: str) -> Any:
    return {"configurable": {"thread_id": f"t-{user}"}}


def _talk(storage: Storage, user: str) -> tuple[str, str]:
    """Fetch something long; return its handle and the id of the message that it stands for."""
    replies = [AIMessage("", tool_calls=[call("fetch", "c1", what=SECRETS[user])]), "Done."]
    graph = build_graph(AGENT, model=ScriptedModel(replies), summarizer="offline", storage=storage)
    graph.invoke({"messages": "fetch it"}, _config(user), context=Context(user_id=user))
    (item,) = storage.store.search(namespaces.thread(f"t-{user}", "handles"))
    return item.key, str(item.value["message_id"])


def forged(handle: str, message_id: str) -> list[dict[str, Any]]:
    """Return arguments that want to read another thread's text, given its handle and message id."""
    handles: list[Any] = [
        handle,
        message_id,
        f" {handle} ",
        handle.upper(),
        handle[:-1],
        f"{handle}*",
        f"{handle}\x00",
        f"t-bob/{handle}",
        f"threads.t-bob.handles.{handle}",
        f"../t-bob/handles/{handle}",
        f"..%2ft-bob%2f{handle}",
        f"threads/t-bob/transcript/{message_id}",
        f"' OR key = '{handle}' --",
        f'{{"$eq": "{handle}"}}',
        "%",
        "*",
        "",
        ".",
        "h" * 100_000,
        "\ud800",
        "\N{FULLWIDTH LATIN SMALL LETTER H}" + handle[1:],
        None,
        0,
        [handle],
    ]
    return [{"handle": one} for one in handles] + [
        {"handle": handle, "offset": -1, "limit": 10**30, "thread_id": "t-bob"}
    ]


@pytest.mark.parametrize("api", ["invoke", "ainvoke"])
async def test_a_forged_handle_reads_nothing_of_another_thread(api: str, tmp_path: Path, attack_row: AttackRow) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        own, _ = _talk(storage, "ada")
        arguments = forged(*_talk(storage, "bob"))
        leaks = []
        for number, given in enumerate(arguments):
            calls = [
                call("read_tool_output", f"f{number}", **given),
                call("read_tool_output", f"o{number}", handle=own),
            ]
            model = ScriptedModel([AIMessage("", tool_calls=calls), "Done."])
            graph = build_graph(AGENT, model=model, summarizer="offline", storage=storage)
            run: Any = {
                "input": {"messages": f"read {number}"},
                "config": _config("ada"),
                "context": Context(user_id="ada"),
            }
            done = await graph.ainvoke(**run) if api == "ainvoke" else graph.invoke(**run)
            results = {one.tool_call_id: one.text for one in done["messages"] if isinstance(one, ToolMessage)}
            if SECRETS["bob"] in str(results) or "row" in results[f"f{number}"] or "row" not in results[f"o{number}"]:
                leaks.append(given)
    attack_row("a forged handle: text of another thread", len(arguments), len(leaks))

    assert len(arguments) == 25
    assert leaks == []
