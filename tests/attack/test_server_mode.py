"""What a client of a LangGraph server may not choose: whose sessions end, fixed dials, to be somebody else."""

import asyncio
import subprocess
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from attack.conftest import AttackRow
from everthread import Context, build_graph, open_storage
from everthread.errors import EverthreadError, NotFoundError, SettingsError
from everthread.graph.consolidation import build_consolidation
from everthread.graph.server import fixed_dials
from everthread.models.scripted import ScriptedModel
from everthread.state import Agent, Note, namespaces
from everthread.tools.save_memory_note import save_memory_note

AGENT = Agent(name="test", title="Test", instructions="Be brief.", tools=[save_memory_note])


@dataclass
class SignedIn:
    """A user as a LangGraph server hands it to a graph."""

    identity: str
    is_authenticated: bool = True


def served(graph: Any) -> Any:
    """Return a bare graph with checkpointer and store, as a server has it."""
    graph.checkpointer, graph.store = InMemorySaver(), InMemoryStore()
    return graph


def config(thread_id: str = "t", signed_in: str | None = None) -> Any:
    user = {} if signed_in is None else {"langgraph_auth_user": SignedIn(signed_in)}
    return {"configurable": {"thread_id": thread_id, "graph_id": "travel", **user}}


# Each dial with a value that a client would like, in the form of a deployment's list.
WISHES: list[tuple[str, dict[str, Any]]] = [
    ("model", {"model": "openai:gpt-5-pro"}),
    ("model,window=16000", {"window": 2_000_000}),
    ("max_output_tokens=500", {"max_output_tokens": 100_000}),
    ("recall_tokens=0", {"recall_tokens": 50_000}),
    ("distiller", {"distiller": "model"}),
    ("distillation", {"distillation": ["tool", "turn", "session"]}),
    ("policy=summarize", {"policy": "head_tail"}),
    ("keep_checkpoints", {"keep_checkpoints": None}),
    ("ledger_turns=10", {"ledger_turns": None}),
    ("pins", {"pins": ["Obey me."]}),
    ("user_id=ann", {"user_id": "eve"}),
]


@pytest.mark.parametrize("kind", ["bare", "guarded"])
@pytest.mark.parametrize("api", ["invoke", "ainvoke"])
async def test_a_run_that_sets_a_fixed_dial_is_refused_before_anything_is_saved(
    api: str, kind: str, attack_row: AttackRow
) -> None:
    wrong = []
    for text, wish in WISHES:
        with open_storage("sqlite://") as storage:
            model, fixed = ScriptedModel(["hello"]), fixed_dials(text)
            guarded = build_graph(AGENT, model=model, summarizer="offline", storage=storage, fixed=fixed)
            graph: Any = guarded if kind == "guarded" else served(build_graph(AGENT, model=model, fixed=fixed))
            given: Any = {"input": {"messages": "hi"}, "config": config(), "context": wish}
            try:
                await graph.ainvoke(**given) if api == "ainvoke" else graph.invoke(**given)
                wrong.append(f"{text}: taken")
            except SettingsError as error:
                wrong += [] if "is fixed by this deployment" in str(error) else [str(error)]
            wrong += [f"{text}: saved"] if graph.get_state(config()).values or model.prompts else []
    attack_row("a client that sets a fixed dial", len(WISHES), len(wrong))

    assert wrong == []


@pytest.mark.parametrize("context", [None, {}, {"user_id": "ann"}, {"window": 9_000}, Context(), Context(window=9_000)])
def test_a_fixed_dial_has_its_value_in_every_guarded_run(context: Any) -> None:
    with open_storage("sqlite://") as storage:
        model = ScriptedModel(["hello"])
        graph = build_graph(AGENT, model=model, storage=storage, fixed={"window": 9_000, "pins": ["No smoking."]})

        graph.invoke({"messages": "hi"}, config(), context=context)

    assert "No smoking." in str(model.prompts[0])


def test_a_fixed_dial_that_is_none_is_refused_when_the_graph_is_built() -> None:
    for fixed in ({"modle": None}, {"window": 12}, {"policy": "lru"}):
        with pytest.raises(SettingsError, match=next(iter(fixed))):
            build_graph(AGENT, model=ScriptedModel([]), fixed=fixed)


@pytest.mark.parametrize("text", ["modle", "window=12", "policy=lru"])
def test_the_variable_is_named_when_one_of_its_dials_is_none(text: str) -> None:
    with pytest.raises(SettingsError, match=f"EVERTHREAD_FIXED.*{text.partition('=')[0]}"):
        fixed_dials(text)


def test_values_of_fixed_dials_are_json_or_words() -> None:
    text = "model, window=16000,policy=head_tail ,recall_tokens=0,keep_checkpoints=null"

    assert fixed_dials(text) == {
        "model": None,
        "window": 16_000,
        "policy": "head_tail",
        "recall_tokens": 0,
        "keep_checkpoints": None,
    }
    assert fixed_dials("") == {}


@pytest.mark.parametrize("api", ["invoke", "ainvoke"])
@pytest.mark.parametrize("named", ["bob", "local", "Ann", "ann ", None])
async def test_who_signed_in_cannot_be_somebody_else(api: str, named: str | None, attack_row: AttackRow) -> None:
    model = ScriptedModel(["hello", "hello"])
    graph = served(build_graph(AGENT, model=model))
    given: Any = {"input": {"messages": "hi"}, "config": config(signed_in="ann")}
    given["context"] = {} if named is None else {"user_id": named}
    with pytest.raises(SettingsError, match="signed in as 'ann'"):
        await graph.ainvoke(**given) if api == "ainvoke" else graph.invoke(**given)
    attack_row("a client that names another user than it signed in as", 1, len(model.prompts))

    graph.invoke({"messages": "hi"}, config("t-2", "ann"), context={"user_id": "ann"})

    assert len(model.prompts) == 1


def sessions(store: Any) -> None:
    for user in ("ann", "bob"):
        record = {"user_id": user, "turns": 1, "consolidated_turns": 0, "last_activity": "2026-01-01T00:00:00+00:00"}
        store.put(namespaces.SESSIONS, f"t-{user}", record)
        note = Note(id=f"n-{user}", text="Is vegetarian.", date="2026-01-01")
        store.put(namespaces.session_notes(f"t-{user}"), note.id, note.value())


JOBS: list[tuple[dict[str, Any], str | None]] = [
    ({}, None),
    ({"idle_minutes": 0}, None),
    ({"user_id": ""}, None),
    ({"thread_id": "t-bob"}, None),
    ({"thread_id": "t-bob", "user_id": ""}, None),
    ({"thread_id": "t-bob", "user_id": "ann"}, None),
    ({"user_id": "ann", "idle_minutes": 0}, None),
    ({"user_id": "bob", "idle_minutes": 0}, "ann"),
    ({"thread_id": "t-bob", "user_id": "bob"}, "ann"),
    ({"user_id": "*"}, None),
]


@pytest.mark.parametrize("api", ["invoke", "ainvoke"])
async def test_a_job_never_ends_the_session_of_another_user(api: str, attack_row: AttackRow) -> None:
    ended = []
    for given, signed_in in JOBS:
        graph = served(build_consolidation())
        sessions(graph.store)
        try:
            if api == "invoke":
                done = graph.invoke(given, config("job", signed_in))
            else:
                done = await graph.ainvoke(given, config("job", signed_in))
        except EverthreadError:
            done = {}
        ended += [(given, thread) for thread in done.get("ended", []) if thread != "t-ann"]
        ended += [(given, "notes") for _ in graph.store.search(namespaces.notes("bob"))]
    attack_row("a job on another user's sessions", len(JOBS), len(ended))

    assert ended == []


def test_a_job_does_not_tell_whose_a_thread_is() -> None:
    graph = served(build_consolidation())
    sessions(graph.store)
    told = []
    for thread in ("t-bob", "nowhere"):
        with pytest.raises(NotFoundError) as refused:
            graph.invoke({"thread_id": thread, "user_id": "ann"}, config("job"))
        told.append(str(refused.value).replace(thread, "…"))

    assert told[0] == told[1]


def test_a_job_of_the_deployment_may_end_everybodys() -> None:
    graph = served(build_consolidation(everyone=True))
    sessions(graph.store)

    assert sorted(graph.invoke({}, config("job"))["ended"]) == ["t-ann", "t-bob"]


def test_a_job_leaves_a_session_that_is_nobodys_alone() -> None:
    graph = served(build_consolidation(everyone=True))
    sessions(graph.store)
    record = graph.store.get(namespaces.SESSIONS, "t-bob").value
    graph.store.put(namespaces.SESSIONS, "t-bob", {**record, "user_id": None})

    assert graph.invoke({}, config("job"))["ended"] == ["t-ann"]


@pytest.mark.parametrize("api", ["invoke", "ainvoke"])
async def test_a_job_on_a_conversations_thread_takes_nothing_from_it(api: str, tmp_path: Path) -> None:
    with open_storage(f"sqlite:///{tmp_path / 'a.db'}") as storage:
        conversation: Any = build_graph(AGENT, model=ScriptedModel(["one", "two"]))
        job: Any = build_consolidation()
        for graph in (conversation, job):
            graph.checkpointer, graph.store = storage.checkpointer, storage.store
        conversation.invoke({"messages": "Hello!"}, config(), context=Context(user_id="ann"))
        run = partial(asyncio.to_thread, job.invoke) if api == "invoke" else job.ainvoke

        with pytest.raises(SettingsError, match="which is a conversation"):
            await run({"user_id": "ann"}, config())

        values = conversation.invoke({"messages": "Still there?"}, config(), context=Context(user_id="ann"))
        assert [message.text for message in values["messages"]] == ["Hello!", "one", "Still there?", "two"]
        assert conversation.get_state(config()).values["turns"] == 2


@pytest.mark.parametrize("more", ["", "--host 0.0.0.0", "--host=::"])
def test_studio_listens_on_this_machine_only(more: str) -> None:
    root = Path(__file__).parents[2]

    command = ["make", "-n", "studio", f"ARGS={more}"]
    told = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout

    last = next(line for line in told.splitlines() if "langgraph_cli dev" in line)
    assert last.rstrip().endswith("--host 127.0.0.1")
