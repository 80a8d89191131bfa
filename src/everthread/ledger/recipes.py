"""Recipes of prompts: what each model call of a thread was sent, as the ledger tells it.

A recipe holds names only. Messages of the thread are in its transcript or still in its state; every other text, such as
a system message, a summary or the stand-in for a masked result, is in the store once, under `namespaces.prompts`. As a
rule a prompt begins with all that the one before it had, so most recipes name what came behind it.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from everthread.ledger.events import Event, PromptAssembled, Recipe

WHOLE_EVERY = 64
"""Messages by which a prompt grows until a recipe tells all of it again, so that retention can remove older ones."""

RENEWED_AFTER = 256
"""Turns after which a text that is still shown is written anew, so that its age tells whether retention may take it."""

UNKNOWN_NOTE = "unknown note"
"""Stands for the id of a note that a text shows, when nobody knows it any more."""

_NAME_BYTES = 6


@dataclass(frozen=True)
class Call:
    """A model call of a thread."""

    number: int
    """From 1, in the order of the ledger, over all branches."""
    name: str
    parent: str
    """Name of the call that was answered before it on its branch; empty for the first one."""
    event: PromptAssembled
    parts: tuple[str, ...] | None
    """Names of what it was sent, in order; None when the ledger does not tell."""
    model: str = ""
    tools: str = ""
    """Name of the text with the names of its tools."""
    marks: int = 0
    problem: str = ""
    """Why there are no parts."""


def recipe_of(parts: Sequence[str], *, parent: str, size_before: int, tools: str, model: str, marks: int) -> Recipe:
    """Return the recipe of a prompt.

    Args:
        parts: names of what it is made of, in order.
        parent: name of the call before on this branch; empty for the first one.
        size_before: how many parts the prompt of the parent had.
        tools: name of the text with the names of its tools.
        marks: marks for the provider's cache that it might have.
    """
    recipe: Recipe = {"call": _name(tools, model, str(marks), *parts)}
    if parent:
        recipe["parent"] = parent
    is_due = size_before // WHOLE_EVERY < len(parts) // WHOLE_EVERY
    # By name, since another message with the same words may stand in the place of one that left.
    if not is_due and parent == _name(tools, model, str(marks), *parts[:size_before]):
        recipe["adds"] = list(parts[size_before:])
        return recipe
    recipe |= {"shows": list(parts), "tools": tools, "model": model}
    if marks:
        recipe["marks"] = marks
    return recipe


def _name(*parts: str) -> str:
    """Name a call by all that its prompt is made of: the same prompt has the same name."""
    return hashlib.blake2b("\x00".join(parts).encode("utf-8", "replace"), digest_size=_NAME_BYTES).hexdigest()


def is_text(part: str) -> bool:
    """Tell whether a part is a text of the store, and not a message of the thread."""
    return part.startswith("#")


def calls_of(events: Iterable[Event]) -> list[Call]:
    """Return the calls of a thread with what each was sent, oldest first.

    Args:
        events: of the thread's ledger, oldest first.
    """
    calls: list[Call] = []
    by_name: dict[str, Call] = {}
    for event in events:
        if isinstance(event, PromptAssembled):
            call = _call(len(calls) + 1, event, by_name)
            by_name[call.name] = call
            calls.append(call)
    return calls


def _call(number: int, event: PromptAssembled, by_name: dict[str, Call]) -> Call:
    recipe = event.recipe
    if recipe is None:
        return Call(number, "", "", event, None, problem="an older version made this call and kept no recipe")
    name, parent = recipe["call"], recipe.get("parent", "")
    if "shows" in recipe:
        shown, tools, model = tuple(recipe["shows"]), recipe.get("tools", ""), recipe.get("model", "")
        return Call(number, name, parent, event, shown, model, tools, recipe.get("marks", 0))
    before = by_name.get(parent)
    if before is None or before.parts is None:
        why = "the recipe of an earlier call, with which it begins, is no longer in the ledger"
        return Call(number, name, parent, event, None, problem=why)
    parts = (*before.parts, *recipe.get("adds", ()))
    return Call(number, name, parent, event, parts, before.model, before.tools, before.marks)
