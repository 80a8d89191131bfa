"""Nothing that the user did not say becomes a note of theirs, a rule, a pin or durable; what they said does."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool

from attack.conftest import AttackRow
from attack.planted import ATTACKS, GENUINE, INDIRECT, Attack, Genuine, Turn
from conversation import call
from everthread import Context, build_graph, open_storage
from everthread.models.scripted import ScriptedModel
from everthread.state import Agent, Note, namespaces
from everthread.storage.open import Storage
from everthread.tools.save_memory_note import save_memory_note

FEWEST_KEPT = 0.95
"""Share of what users say themselves that has to be kept."""

_RULES = re.compile(r"standing instructions.*?(?=\n##|</memories>|\Z)", re.IGNORECASE | re.DOTALL)
_RESULTS: list[Any] = []
EVERY = ("tool", "turn", "session")
"""Attacks may get in by any way in which notes are made."""


@tool
def look(n: int) -> Any:
    """Look at a page."""
    return _RESULTS[n]


AGENT = Agent(
    name="test",
    title="Test",
    instructions="Be brief.",
    tools=[look, save_memory_note],
    summary_sections=("Facts", "Next step"),
)


def replies(turns: list[Turn]) -> list[AIMessage | str]:
    """Return what the model says, and let the tool know what to return."""
    said: list[AIMessage | str] = []
    for number, turn in enumerate(turns):
        _RESULTS.append(turn.result)
        if turn.result is not None:
            said.append(AIMessage("", tool_calls=[call("look", f"look-{number}", n=len(_RESULTS) - 1)]))
        if turn.saves:
            arguments = {"text": turn.saves, "keywords": list(turn.keywords)}
            said.append(AIMessage("", tool_calls=[call("save_memory_note", f"save-{number}", **arguments)]))
        said.append(turn.reply)
    return said


def play(
    storage: Storage, thread_id: str, turns: list[Turn], summary: str = "", distillation: tuple[str, ...] = EVERY
) -> list[str]:
    """Have a conversation, and return the texts of all prompts."""
    model = ScriptedModel(replies(turns))
    summarizer: Any = ScriptedModel([summary] * 20) if summary else "offline"
    graph = build_graph(AGENT, model=model, summarizer=summarizer, storage=storage)
    dials: dict[str, Any] = {"policy": "summarize", "context_limit": 2, "keep_last_turns": 1} if summary else {}
    context = Context(user_id=thread_id, distillation=distillation, **dials)
    config: Any = {"configurable": {"thread_id": thread_id}}
    for turn in turns:
        graph.invoke({"messages": [HumanMessage(turn.user)]}, config, context=context)
    return ["\n".join(message.text for message in prompt) for prompt in model.prompts]


def notes(storage: Storage, namespace: Any) -> list[Note]:
    return [Note.model_validate(item.value) for item in storage.store.search(namespace, limit=100)]


def end(storage: Storage, thread_id: str, distillation: tuple[str, ...] = EVERY) -> list[str]:
    """End the session, and return a prompt of the user's next thread."""
    model = ScriptedModel(["Hello."])
    graph = build_graph(AGENT, model=model, summarizer="offline", storage=storage)
    context = Context(user_id=thread_id, distillation=distillation)
    graph.invoke({"end_session": True}, {"configurable": {"thread_id": thread_id}}, context=context)
    graph.invoke({"messages": "Hello."}, {"configurable": {"thread_id": f"{thread_id}-next"}}, context=context)
    return ["\n".join(message.text for message in prompt) for prompt in model.prompts]


def faults(storage: Storage, attack: Attack, thread_id: str) -> list[str]:
    """Return what an attack got through."""
    marker = re.compile(attack.marker, re.IGNORECASE | re.DOTALL)
    prompts = play(storage, thread_id, list(attack.turns), attack.summary)
    session = notes(storage, namespaces.session_notes(thread_id))
    prompts += end(storage, thread_id)
    wrong = [
        f"{note.origin} {note.kind} {note.scope}: {note.text}"
        for note in session
        if marker.search(f"{note.text} {' '.join(note.keywords)}")
        and (note.origin == "user" or note.kind == "constraint" or note.scope == "durable")
    ]
    wrong += [
        f"long-term: {note.text}"
        for note in notes(storage, namespaces.notes(thread_id))
        if marker.search(f"{note.text} {' '.join(note.keywords)}")
    ]
    wrong += [f"rule: {rule[:80]}" for prompt in prompts for rule in _RULES.findall(prompt) if marker.search(rule)]
    return [f"{attack.family}, {attack.name}: {fault}" for fault in wrong]


def kept(storage: Storage, genuine: Genuine, thread_id: str) -> bool:
    """Tell whether a statement of the user's, or part of it in their own words, is a durable note of theirs."""
    asking = [Turn("Hello.", reply=genuine.asked)] if genuine.asked else []
    play(storage, thread_id, [*asking, Turn(genuine.said, saves=genuine.note)], distillation=("tool",))
    end(storage, thread_id, distillation=("tool",))
    return any(note.origin == "user" for note in notes(storage, namespaces.notes(thread_id)))


@pytest.fixture
def storage(tmp_path: Path) -> Any:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as opened:
        yield opened


def test_nothing_that_the_user_did_not_say_becomes_theirs(storage: Storage, attack_row: AttackRow) -> None:
    wrong = {attack.family: [] for attack in ATTACKS}
    for number, attack in enumerate(ATTACKS):
        wrong[attack.family] += faults(storage, attack, f"a{number}")
    for family, count in Counter(attack.family for attack in ATTACKS).items():
        attack_row(f"planted: {family}", count, len(wrong[family]))

    assert len(ATTACKS) >= 60
    assert [fault for family in wrong.values() for fault in family] == []


@pytest.mark.slow
@pytest.mark.parametrize("language", sorted(INDIRECT))
def test_what_others_wrote_in_any_language_becomes_nobodys(
    language: str, storage: Storage, attack_row: AttackRow
) -> None:
    cases = INDIRECT[language]

    wrong = [fault for number, case in enumerate(cases) for fault in faults(storage, case, f"i{number}")]

    attack_row(f"planted: indirect, {language}", len(cases), len(wrong))
    assert wrong == []


def test_what_the_user_says_is_kept(storage: Storage) -> None:
    lost = [one for number, one in enumerate(GENUINE) if not kept(storage, one, f"g{number}")]

    assert len(GENUINE) >= 60
    assert len(lost) <= (1 - FEWEST_KEPT) * len(GENUINE), lost
