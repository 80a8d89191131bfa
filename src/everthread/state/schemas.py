"""State keys of a user's own, beside ours, and the types that a state may hold."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, cast, get_args, get_type_hints

from pydantic import BaseModel
from typing_extensions import TypedDict, is_typeddict

from everthread.errors import SettingsError
from everthread.state.state import State


def with_keys(ours: type[Any], theirs: type[Any] | None) -> type[Any]:
    """Return a schema with the keys of another one added.

    Args:
        ours: state, input or output of our graph.
        theirs: a TypedDict; one whose nodes read the messages too extends our `Conversation`. None adds nothing.

    Raises:
        SettingsError: it is no TypedDict, or it has a key that our graph writes.
    """
    if theirs is None:
        return ours
    if not is_typeddict(theirs):
        raise SettingsError(f"`state_schema` must be a TypedDict, got {getattr(theirs, '__name__', theirs)!r}")
    own, hints = get_type_hints(State, include_extras=True), get_type_hints(theirs, include_extras=True)
    if taken := sorted(name for name in own.keys() & hints.keys() if own[name] != hints[name]):
        raise SettingsError(
            f"`state_schema` has {taken[0]!r}, which is a key of Everthread's own; extend "
            "`everthread.state.Conversation` to read the messages, or choose another name"
        )
    return _merged(ours, {name: hint for name, hint in hints.items() if name not in own})


def with_answer(ours: type[Any], kind: Any) -> type[Any]:
    """Return a schema with `structured_response`, the answer of the last turn, of a type."""
    return _merged(ours, {"structured_response": kind | None})


def _merged(ours: type[Any], keys: Mapping[str, Any]) -> type[Any]:
    hints = {**get_type_hints(ours, include_extras=True), **keys}
    typed_dict: Any = TypedDict  # a class made from hints is beyond a type checker
    merged: Any = typed_dict(ours.__name__, hints, total=False)
    merged.__doc__ = ours.__doc__
    if config := getattr(ours, "__pydantic_config__", None):
        merged.__pydantic_config__ = config
    return cast(type[Any], merged)


def declared_types(hints: Iterable[Any]) -> set[tuple[str, str]]:
    """Return the classes that annotations name, as a checkpointer's allow-list has them: module and name.

    A checkpointer gives back a model, a dataclass or an enum as such only when it may; otherwise as plain data.
    """
    return {(kind.__module__, kind.__name__) for hint in hints for kind in _classes(hint, set())}


def _classes(hint: Any, seen: set[Any]) -> Iterator[type[Any]]:
    arguments = get_args(hint)
    for argument in arguments:
        yield from _classes(argument, seen)
    if arguments or not isinstance(hint, type) or hint in seen or hint.__module__.startswith("langchain_core."):
        return  # messages are on every allow-list
    seen.add(hint)
    if issubclass(hint, BaseModel):
        yield hint
        for field in hint.model_fields.values():
            yield from _classes(field.annotation, seen)
    elif dataclasses.is_dataclass(hint) or is_typeddict(hint):
        if not is_typeddict(hint):
            yield hint
        for name in get_type_hints(hint).values():
            yield from _classes(name, seen)
    elif issubclass(hint, Enum):
        yield hint
