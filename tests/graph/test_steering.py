"""A person steers the prompts to come, of our own graph and of an agent with the middleware, on each database."""

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage

from conversation import call
from everthread import Context, EverthreadMiddleware, build_graph, open_storage, prompt_at
from everthread.errors import NotFoundError, SettingsError
from everthread.forks import afork, fork
from everthread.graph.note_changes import add_note, change_note, forget_note
from everthread.ledger import events
from everthread.models.scripted import ScriptedModel
from everthread.state import namespaces
from everthread.steering import (
    abring_back,
    amask_result,
    apin_message,
    apin_sentence,
    asteering,
    awithdraw,
    bring_back,
    mask_result,
    pin_message,
    pin_sentence,
    steering,
    withdraw,
)
from everthread.storage.open import Storage
from small_agent import AGENT, CONFIG, ask, calls, graph_of, look

DIALS: dict[str, Any] = {"policy": "sliding_window", "keep_last_turns": 3, "window": 8_000}
TABLES = [one for n in range(9) for one in (calls(call("look", f"c{n}", n=70 - n)), f"That was table {n}.")]

Talk = tuple[Storage, Callable[[str], Any], ScriptedModel]


@pytest.fixture(params=["own", "middleware"])
def talk(storage: Storage, request: pytest.FixtureRequest) -> Talk:
    """Have a conversation whose first turns have left the prompt."""
    if request.param == "own":
        graph, model = graph_of(storage, *TABLES)
        say: Callable[[str], Any] = lambda text: ask(graph, text, **DIALS)  # noqa: E731
    else:
        model = ScriptedModel(list(TABLES))
        app = create_agent(
            model,
            [look],
            middleware=[EverthreadMiddleware(summarizer="offline", **DIALS)],
            checkpointer=storage.checkpointer,
            store=storage.store,
        )
        guarded = storage.guard(app)
        config = {"configurable": {**CONFIG["configurable"], "user_id": "local"}}
        say = lambda text: guarded.invoke({"messages": text}, config)  # noqa: E731
    for number in range(4):
        say(f"Show table {number}, please.")
    return storage, say, model


def texts(prompt: list[BaseMessage]) -> str:
    return "\n".join(str(message.content) for message in prompt)


def archived(storage: Storage, place: int) -> str:
    return str(storage.store.search(namespaces.transcript("t"), filter={"seq": place})[0].key)


def result_of(storage: Storage, number: int) -> str:
    prompt = prompt_at(storage, "t")
    return next(str(one.id) for one in prompt.messages if getattr(one, "tool_call_id", "") == f"c{number}")


def test_a_message_comes_back_with_the_next_question_alone(talk: Talk) -> None:
    storage, say, model = talk
    asked = bring_back(storage, "t", archived(storage, 3), actor="ada")
    assert steering(storage, "t") == [asked]

    say("And now?")

    assert "assistant: That was table 0." in texts(model.prompts[-2])
    assert steering(storage, "t") == []
    assert prompt_at(storage, "t").is_exact
    done = [(one.event, one.actor) for one in events(storage.store, "t") if one.event in ("steered", "recalled")]
    assert done == [("steered", "ada"), ("recalled", "ada")]


def test_a_pinned_message_is_in_every_prompt_until_it_is_unpinned(talk: Talk) -> None:
    storage, say, model = talk
    pinned = pin_message(storage, "t", archived(storage, 3))

    say("And now?")
    say("And then?")
    assert all("assistant, 20" in texts(prompt) and "table 0." in texts(prompt) for prompt in model.prompts[-4:])
    withdraw(storage, "t", pinned.id[:6])
    say("At last?")

    assert "That was table 0." not in texts(model.prompts[-1])


def test_a_result_is_masked_and_brought_back_in_full(talk: Talk) -> None:
    storage, say, model = talk
    result = result_of(storage, 3)

    mask_result(storage, "t", result, actor="ada")
    say("And now?")
    masked = model.prompts[-2]
    bring_back(storage, "t", result)
    say("And then?")

    shown = [next(str(one.content) for one in prompt if one.id == result) for prompt in (masked, model.prompts[-2])]
    assert ["row 30 of the table" in text for text in shown] == [False, True]
    found = [one for one in events(storage.store, "t") if one.event == "masked" and one.message_id == result]
    assert [(one.reason, one.actor) for one in found] == [("asked for by hand", "ada")]


def test_what_waits_can_be_taken_back(talk: Talk) -> None:
    storage, say, model = talk
    asked = mask_result(storage, "t", result_of(storage, 3))
    assert mask_result(storage, "t", result_of(storage, 3)).id == asked.id

    withdraw(storage, "t", asked.id)
    say("And now?")

    assert "row 30 of the table" in texts(model.prompts[-2])
    assert [one.action for one in events(storage.store, "t") if one.event == "steered"] == ["mask", "withdraw"]


@pytest.mark.parametrize("text", ["", " \n ", "My card is 4111 1111 1111 1111.", "word " * 5_000])
def test_what_is_no_pin_is_refused(storage: Storage, text: str) -> None:
    graph, _ = graph_of(storage, "Hello.")
    ask(graph, "Hi.", **DIALS)

    with pytest.raises(SettingsError):
        pin_sentence(storage, "t", text)

    assert steering(storage, "t") == []


def test_what_is_not_there_is_named(storage: Storage) -> None:
    graph, _ = graph_of(storage, "Hello.")
    ask(graph, "Hi.")
    question = str(graph.get_state(CONFIG).values["messages"][0].id)

    for act in (bring_back, mask_result, pin_message, withdraw):
        with pytest.raises(NotFoundError):
            act(storage, "t", "none")
    for act in (bring_back, mask_result):
        with pytest.raises(SettingsError):
            act(storage, "t", question)
    with pytest.raises(NotFoundError):
        steering(storage, "no-thread")


async def test_steering_does_the_same_without_blocking(storage: Storage) -> None:
    graph, model = graph_of(storage, *TABLES)
    for number in range(4):
        await asyncio.to_thread(ask, graph, f"Show table {number}, please.", **DIALS)

    await abring_back(storage, "t", archived(storage, 3))
    await amask_result(storage, "t", result_of(storage, 3))
    await apin_message(storage, "t", archived(storage, 2))
    gone = await apin_sentence(storage, "t", "The quay closes at noon.")
    assert len(await asteering(storage, "t")) == 4
    await awithdraw(storage, "t", gone.id)
    await graph.ainvoke({"messages": "And now?"}, CONFIG, context=Context(**DIALS))

    sent = texts(model.prompts[-2])
    assert "That was table 0." in sent
    assert sent.count("row 30 of the table") == 2
    assert "- tool look, 20" in sent
    assert "noon" not in sent


def test_what_is_asked_for_twice_is_what_was_asked_for_first(storage: Storage) -> None:
    graph, _ = graph_of(storage, *TABLES[:2])
    ask(graph, "Show table 0, please.")

    first = pin_sentence(storage, "t", "The quay closes at noon.", actor="ada")

    assert first.at
    assert pin_sentence(storage, "t", "The quay closes at noon.") == first
    assert steering(storage, "t") == [first]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_fork_goes_on_from_a_call_and_back(storage: Storage, is_async: bool) -> None:
    graph, model = graph_of(storage, *TABLES[:4], "Otherwise.")
    ask(graph, "Show table 0, please.")
    ask(graph, "Show table 1, please.")
    made = asyncio.run(afork(graph, "t", 2, actor="ada")) if is_async else fork(graph, "t", 2, actor="ada")
    assert graph.get_state(CONFIG).next == ("model",)

    graph.invoke(None, CONFIG)

    assert texts(model.prompts[-1]) == texts(model.prompts[1])
    fork(graph, "t", made.left_call)
    assert "table 1" in texts(graph.get_state(CONFIG).values["messages"])
    steered = [one for one in events(storage.store, "t") if one.event == "steered"]
    assert [(one.action, one.actor, one.left_call != "") for one in steered] == [
        ("fork", "ada", True),
        ("fork", "local", True),
    ]


def test_a_fork_of_what_was_pruned_is_refused(storage: Storage) -> None:
    graph, _ = graph_of(storage, "One.", "Two.", "Three.")
    for _ in range(3):
        ask(graph, "Next.")
    storage.checkpointer.prune_turns("t", 1)

    fork(graph, "t", 3)
    with pytest.raises(SettingsError, match="keep_checkpoints"):
        fork(graph, "t", 1)
    with pytest.raises(NotFoundError):
        fork(graph, "t", 9)


def test_a_pinned_message_is_not_shown_on_another_branch(storage: Storage) -> None:
    graph, model = graph_of(storage, "One.", "The heron is blue.", "Three.", "Four.")
    for _ in range(3):
        ask(graph, "Next.", **DIALS)
    heron = next(one for one in graph.get_state(CONFIG).values["messages"] if "heron" in str(one.content))
    pin_message(storage, "t", str(heron.id))

    fork(graph, "t", 2)
    ask(graph, "Otherwise.", **DIALS)

    assert "heron" not in texts(model.prompts[-1])


def test_a_forgotten_note_is_in_no_prompt_and_its_texts_are_erased(storage: Storage) -> None:
    graph, model = graph_of(storage, "Hello.", "Again.")
    saved = add_note(storage, "local", "Likes cherry cake.")
    edited = change_note(storage, "local", "edit", saved.id, "Likes plum cake.").notes[-1]
    ask(graph, "Hi.")
    assert "plum" in texts(model.prompts[0])

    done = forget_note(storage, "local", edited.id[:8], actor="ada")
    ask(graph, "And now?")

    assert "plum" not in texts(model.prompts[1])
    assert done.notes == []
    assert "summary" in done.sentence
    assert not any("cake" in str(item.value) for item in storage.store.search((), limit=1_000))
    assert "erased" in prompt_at(storage, "t", 1).problems[0]


def test_a_session_note_is_forgotten_and_not_learnt_again(storage: Storage) -> None:
    wants = calls(call("save_memory_note", "c1", text="Wants a quiet room.", keywords=["room"]))
    graph, _ = graph_of(storage, wants, "Noted.", "Bye.")
    ask(graph, "I want a quiet room. Save that.")
    note = storage.store.search(namespaces.session_notes("t"))[0].key

    forget_note(storage, "local", note)
    ask(graph, None)

    assert storage.store.search(namespaces.session_notes("t")) == []
    assert storage.store.search(namespaces.notes("local")) == []
    changed = [one for one in events(storage.store, "t") if one.event == "note_changed"]
    assert [(one.action, one.actor) for one in changed] == [("forget", "local")]


def test_a_fork_of_another_graph_is_refused(storage: Storage) -> None:
    app = create_agent(ScriptedModel([AIMessage("Hi.")]), [], checkpointer=storage.checkpointer, store=storage.store)

    with pytest.raises(SettingsError, match="checkpoint_id"):
        fork(storage.guard(app), "t", 1)


def test_pins_go_with_their_thread(tmp_path: Any) -> None:
    from everthread.storage.erasure import erase

    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        graph = build_graph(AGENT, model=ScriptedModel(["Hello."]), storage=storage)
        ask(graph, "Hi.")
        pin_sentence(storage, "t", "The Kingfisher closes at noon.")

        receipt = erase(storage, thread_id="t")

    assert receipt.is_verified
    assert b"Kingfisher" not in b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())


def test_the_holder_and_the_size_of_a_thread_are_told(storage: Storage) -> None:
    graph, _ = graph_of(storage, "One.", "Two.")
    ask(graph, "Hi.")
    small = storage.tables.bytes_of(["t", "none"])
    ask(graph, "Hi again.")

    assert storage.tables.bytes_of(["t"])["t"] > small["t"] > storage.tables.thread_sizes()["t"][1] // 2
    assert small["none"] == 0
    with storage.locks.hold("t"):
        assert storage.locks.holders(["t", "none"]).keys() == {"t"}
    assert storage.locks.holders(["t"]) == {}


def test_a_thread_is_steered_by_an_id_such_as_a_uuid(storage: Storage) -> None:
    graph, _ = graph_of(storage, "Hello.")
    thread_id: Any = UUID("12345678-1234-5678-1234-567812345678")
    graph.invoke({"messages": "Hi."}, {"configurable": {"thread_id": thread_id}}, context=Context())

    pinned = pin_sentence(storage, thread_id, "Never book before I approve.")

    assert steering(storage, thread_id) == steering(storage, str(thread_id)) == [pinned]
    assert withdraw(storage, thread_id, pinned.id) == pinned
    assert events(storage.store, thread_id) == events(storage.store, str(thread_id))
    assert [one.thread_id for one in events(storage.store, thread_id)][-2:] == [str(thread_id)] * 2
