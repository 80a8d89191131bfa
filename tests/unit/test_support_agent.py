import re
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.graph import MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.store.memory import InMemoryStore
from pydantic import ValidationError

from everthread.agents.support import SupportProfile, support, tools
from everthread.agents.support.diagnostics import sandbox
from everthread.agents.support.knowledge import NO_FTS5
from everthread.errors import StorageError
from everthread.state.context import Context

Call = Callable[..., ToolMessage]


def caller(store: InMemoryStore | None) -> Call:
    """Make a function that calls a tool as the graph's tools node does."""
    graph = StateGraph(MessagesState, context_schema=Context)
    graph.add_node("tools", ToolNode(tools.TOOLS, handle_tool_errors=True))
    graph.set_entry_point("tools")
    compiled = graph.compile(store=store)

    def call(name: str, call_id: str = "call-1", user: str = "u-1", **arguments: Any) -> ToolMessage:
        message = AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": call_id}])
        config: Any = {"configurable": {"thread_id": "t-1"}}
        result = compiled.invoke({"messages": [message]}, config, context=Context(user_id=user))
        answer = result["messages"][-1]
        assert isinstance(answer, ToolMessage)
        return answer

    return call


@pytest.fixture
def call() -> Call:
    return caller(InMemoryStore())


def test_the_agent_has_its_tools_sections_and_rules() -> None:
    assert [tool.name for tool in support.tools] == [
        "search_knowledge_base",
        "service_status",
        "run_diagnostic",
        "open_ticket",
        "update_ticket",
        "list_tickets",
        "save_memory_note",
    ]
    assert len(support.summary_sections) == 8
    assert 400 <= len(support.instructions.split()) <= 700


def test_no_tool_shows_the_runtime_to_the_model() -> None:
    for tool in support.tools:
        assert "runtime" not in tool.tool_call_schema.model_json_schema()["properties"]  # type: ignore[union-attr]
        assert tool.description


def test_a_search_answers_with_article_and_steps(call: Call) -> None:
    answer = call("search_knowledge_base", query="error 0x80070057", limit=1)

    assert answer.text.startswith("KB-1501")
    assert "\n1. " in answer.text


def test_the_model_is_told_every_check_of_the_sandbox() -> None:
    [tool] = [tool for tool in support.tools if tool.name == "run_diagnostic"]

    told = set(re.findall(r"[a-z_]+", tool.args["check"]["description"]))

    assert set(sandbox().checks) <= told


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("service_status", {"service": "coffee"}, "unknown service 'coffee'"),
        ("run_diagnostic", {"check": "smell", "target": "x"}, "unknown check 'smell'"),
        ("update_ticket", {"ticket_id": "INC-1", "comment": "x"}, "no ticket 'INC-1'"),
        ("list_tickets", {"status": "gone"}, "status"),
        ("open_ticket", {"title": "x", "description": "y", "priority": "asap"}, "priority"),
        ("search_knowledge_base", {"query": "vpn", "limit": 0}, "limit"),
    ],
)
def test_a_wrong_argument_is_an_error_for_the_model(call: Call, name: str, arguments: Any, message: str) -> None:
    answer = call(name, **arguments)

    assert answer.status == "error"
    assert message in answer.text


def test_a_ticket_is_opened_once_updated_and_listed(call: Call) -> None:
    first = call("open_ticket", title="VPN drops", description="Error 809")
    assert call("open_ticket", title="VPN drops", description="Error 809").text == first.text
    ticket_id = first.text.split()[1]

    updated = call("update_ticket", "call-2", ticket_id=ticket_id, status="resolved", comment="Confirmed by the user.")

    assert re.search(r"- \d{4}-\d\d-\d\dT[\d:]{8}Z: status resolved; Confirmed by the user\.", updated.text)
    assert call("list_tickets", "call-3").text == f"{ticket_id} · resolved · normal · VPN drops"
    assert call("list_tickets", "call-4", user="u-2").text == "No tickets."


def test_a_graph_without_a_store_says_that_tickets_need_one() -> None:
    answer = caller(None)("list_tickets")

    assert answer.status == "error"
    assert "tickets need a store" in answer.text


def test_a_python_without_fts5_is_a_clear_tool_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise StorageError(NO_FTS5)

    monkeypatch.setattr(tools, "bundled_knowledge", missing)

    answer = caller(None)("search_knowledge_base", query="vpn")

    assert answer.status == "error"
    assert "without FTS5" in answer.text


PROFILE = {
    "employee_id": "E-1007",
    "name": "Ada",
    "department": "Finance",
    "time_zone": "Europe/Berlin",
    "devices": [{"type": "laptop", "model": "Model 14", "os": "Windows 11 24H2", "asset_tag": "LT-0042"}],
    "preferred_contact": "chat",
    "language": "en-GB",
}


def test_a_profile_survives_a_round_trip_through_json() -> None:
    profile = SupportProfile.model_validate(PROFILE)

    assert SupportProfile.model_validate_json(profile.model_dump_json()) == profile
    assert profile.vip is False


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("password", "x"),
        ("time_zone", "Mars/Olympus"),
        ("preferred_contact", "555 0100"),
        ("language", "English, please"),
        ("name", ""),
        ("devices", [{"type": "toaster", "model": "x"}]),
        ("devices", [{"type": "laptop", "model": "x", "pin": "1234"}]),
    ],
)
def test_a_profile_with_a_wrong_or_unknown_value_is_refused(key: str, value: object) -> None:
    with pytest.raises(ValidationError, match=key):
        SupportProfile.model_validate(PROFILE | {key: value})


def test_a_user_whom_another_apps_context_names_gets_the_ticket() -> None:
    graph = StateGraph(MessagesState, context_schema=dict)
    graph.add_node("tools", ToolNode(tools.TOOLS))
    graph.set_entry_point("tools")
    opened = {"name": "open_ticket", "args": {"title": "No sound", "description": "In Teams."}, "id": "c"}
    store = InMemoryStore()

    graph.compile(store=store).invoke({"messages": [AIMessage("", tool_calls=[opened])]}, context={"user_id": "bob"})

    assert len(store.search(("users", "bob", "tickets"))) == 1
