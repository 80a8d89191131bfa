"""Keep of each prompt what is needed to make it again: its recipe, and the texts that the transcript does not have."""

import hashlib
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.store.base import GetOp, PutOp

from everthread.ledger.events import Recipe
from everthread.ledger.recipes import RENEWED_AFTER, UNKNOWN_NOTE, recipe_of
from everthread.memory.rendering import note_line
from everthread.nodes.node_run import NodeRun
from everthread.state import PromptPlan, namespaces
from everthread.state.marks import is_recalled, marks
from everthread.storage.transcript import brief
from everthread.window.assembly import CHECKSUM_BYTES, Prompt

_DIGEST_BYTES = 8


def kept_recipe(
    run: NodeRun, plan: PromptPlan, prompt: Prompt, *, tools: Sequence[str], model: str, cache_marks: int
) -> tuple[Recipe, list[PutOp]]:
    """Return the recipe of a prompt, and the writes of those texts that the store does not have yet.

    Args:
        run: has the working set that it was made from, and the call before it.
        cache_marks: marks for the provider's cache that are set on it.
    """
    own = {message.id for message in run.messages}
    texts: dict[str, BaseMessage] = {}
    parts = []
    digits, checksums = 2 * CHECKSUM_BYTES, prompt.prefix.hex()
    for place, message in enumerate(prompt.messages, start=1):
        ours = marks(message)
        if message.id in own and "handle" not in ours and "kind" not in ours:
            parts.append(f"{checksums[place * digits : (place + 1) * digits]}{message.id}")
        else:
            name = _name(message)
            texts[name] = message
            parts.append(name)
    names_of_tools = _digest(repr(tools))
    recipe = recipe_of(
        parts,
        parent=run.state.get("call", ""),
        size_before=max(len(run.state.get("prefix", b"")) // CHECKSUM_BYTES - 1, 0),
        tools=names_of_tools,
        model=model,
        marks=cache_marks,
    )
    told = recipe["shows"] if "shows" in recipe else recipe.get("adds", [])
    wanted: dict[str, BaseMessage | None] = {name: texts[name] for name in told if name in texts}
    if "shows" in recipe:
        wanted[names_of_tools] = None
    writes = []
    for name in _missing([name for name in wanted if name not in plan.kept_texts], plan, run):
        text = wanted[name]
        value = {"tools": list(tools)} if text is None else {"message": brief(text), **_notes(text, plan)}
        writes.append(PutOp(namespaces.prompts(run.thread_id), name, {**value, "turn": run.turn}, index=False))
    return recipe, writes


def _missing(names: Sequence[str], plan: PromptPlan, run: NodeRun) -> list[str]:
    """Return the names of texts that the store has not, or that would soon be too old; the plan learns the others."""
    if not names:
        return []
    found: list[Any] = run.store.batch([GetOp(namespaces.prompts(run.thread_id), name) for name in names])
    oldest = run.turn - RENEWED_AFTER
    kept = {
        item.key
        for item in found
        if item is not None and item.value.get("turn", 0) >= oldest and "erased" not in item.value
    }
    plan.kept_texts.update(kept)
    return [name for name in names if name not in kept]


def _name(message: BaseMessage) -> str:
    """Name a message by all that a provider gets of it."""
    call = getattr(message, "tool_call_id", "")
    return _digest(f"{message.type}\x00{message.id}\x00{message.name}\x00{call}\x00{message.content}")


def _digest(text: str) -> str:
    return "#" + hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=_DIGEST_BYTES).hexdigest()


def _notes(message: BaseMessage, plan: PromptPlan) -> dict[str, Any]:
    """Return the ids of the notes that a text shows or may show: it goes when they are erased."""
    if message is plan.system or message is plan.memory:
        ids = [note.id for note in plan.notes]
    elif marks(message).get("kind") == "session_notes":
        ids = [note.id for note in plan.session_notes]
    elif is_recalled(message):
        by_line = {note_line(note): note.id for note in plan.asked_notes}
        # One that was recalled long ago and is written anew may show notes that nobody knows any more.
        ids = [by_line.get(line, UNKNOWN_NOTE) for line in marks(message).get("notes", ())]
    else:
        return {}
    return {"notes": ids} if ids else {}
