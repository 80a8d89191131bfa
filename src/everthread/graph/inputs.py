"""The input of a run, read before anything is saved: once saved, what the graph cannot take would stop every run."""

import copy
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import NoneType
from typing import Any, get_args, get_origin
from uuid import uuid4

from langchain_core.messages import BaseMessage, HumanMessage, RemoveMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config
from langgraph.channels import BinaryOperatorAggregate, DeltaChannel
from langgraph.graph import END, START, add_messages
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, Send, StateSnapshot
from pydantic import BaseModel

from everthread.errors import SettingsError
from everthread.graph.holds import is_guarded
from everthread.graph.routing import after_start
from everthread.state.marks import is_recalled, marked_only, marks, of_others, recalled_id
from everthread.state.messages import as_messages, read_messages, reason, reduce_messages
from everthread.state.reducer import clean_content

AnyGraph = CompiledStateGraph[Any, Any, Any, Any]


def read_input(graph: AnyGraph, sent: Any, *, is_own: bool) -> tuple[Any, bool]:
    """Return an input whose messages are messages with ids, which every channel can tell apart.

    Args:
        sent: keys of the state, as a dict or as an object that has some of them; None stays as it is, and a `Command`
            but for what no checkpoint can hold of its answer.

    Returns:
        The input; and whether it brings messages and all of their ids are new, so that no thread can have them yet.

    Raises:
        SettingsError: it is none of these, a command is empty, a key or a node is none of the graph's, or the messages
            are nothing that LangChain reads as such or have an id that cannot be stored.
    """
    taken = _taken(graph)
    if isinstance(sent, Command) and sent.resume is None and not sent.update and not sent.goto:
        raise SettingsError("the command is empty: give `resume` an answer other than None, or use `update` or `goto`")
    if isinstance(sent, Command) and sent.graph is None:
        _check_names(graph, sent)
    if isinstance(sent, Command):
        return replace(sent, resume=clean_content(sent.resume)), False
    if sent is None or "__root__" in taken:
        return sent, False
    values = _as_dict(graph, sent)
    if unknown := values.keys() - taken.keys():
        # LangGraph would leave them out without a word.
        keys = " or ".join(f"`{name}`" for name in taken)
        raise SettingsError(f"the graph has no input {', '.join(map(repr, sorted(unknown, key=str)))}; send {keys}")
    ends = values.get("end_session", False)
    if is_own and not isinstance(ends, bool):
        raise SettingsError(f"`end_session` must be True or False, got {ends!r}")
    if is_own and not ends and not any(value != [] for name, value in values.items() if name != "end_session"):
        # LangGraph would return None or what the thread has, and run nothing.
        raise SettingsError("the input is empty: send a message of the user, or None to go on with an unfinished turn")
    if values.get("messages", []) == [] or not has_messages(graph):
        return values, False
    given = values["messages"] if isinstance(values["messages"], list) else [values["messages"]]
    messages = as_messages(given)
    last = messages[-1]
    if is_own and last.type == "human" and isinstance(last.content, str) and not last.content.strip():
        # Providers refuse it, and a turn without a word has no answer.
        raise SettingsError("a message of the user is empty: send a text")
    if is_own and answers_at_once(graph) and not any(isinstance(one, HumanMessage | RemoveMessage) for one in messages):
        raise SettingsError(
            f"the input has no message of the user, only of type {last.type!r}: send what the user says; others "
            "come into a thread by `update_state`, and instructions belong in `Agent(instructions=…)`"
        )
    # A crashed run may have left its wish to end the session in the state.
    ending = {"end_session": False} if "end_session" in taken else {}
    has_new_ids = all(message.id is None for message in messages)
    return {**ending, **values, "messages": [_identified(message) for message in messages]}, has_new_ids


def with_known_marks(sent: Any, state: Mapping[str, Any]) -> Any:
    """Return an input whose messages have the marks that the thread gave them, and none that a client wrote.

    What was recalled is left out when a client sends it back with its history: it is nothing that the user says.

    Args:
        sent: as `read_input` returns it.
        state: of the thread, which may have some of the messages already.
    """
    messages = sent.get("messages") if isinstance(sent, dict) and isinstance(state, Mapping) else None
    if not isinstance(messages, list) or not all(isinstance(one, BaseMessage) for one in messages):
        return sent
    known = {one.id: one for one in state.get("messages") or () if isinstance(one, BaseMessage)}

    def own(message: BaseMessage) -> Mapping[str, Any]:
        here = known.get(message.id)
        return marks(here) if here is not None and here.content == message.content else {}

    return {**sent, "messages": [marked_only(one, own(one)) for one in messages if not _was_recalled(one)]}


_PLAIN = frozenset({str, int, float, bool, bytes})
"""What no message is read from, as part of a list."""


def has_messages(graph: AnyGraph) -> bool:
    """Tell whether `messages` of a graph are LangChain's; another app may call a list of texts so, and keeps it.

    A channel that does not say what it holds, or holds what may be a message as LangChain reads it, counts as one.
    """
    channel: Any = graph.channels.get("messages")
    reducer = getattr(channel, "reducer", None) or getattr(channel, "operator", None)
    if channel is None or reducer in (reduce_messages, add_messages):
        return channel is not None
    kinds = set(_kinds_in(channel.ValueType))
    return not kinds or not kinds <= _PLAIN


def _kinds_in(hint: Any) -> Iterator[type]:
    """Yield the types that an annotation names, without those that say nothing of what is in them."""
    if get_origin(hint) in (tuple, dict):
        yield get_origin(hint)
    elif inner := get_args(hint):
        for one in inner:
            yield from _kinds_in(one)
    elif isinstance(hint, type) and hint not in (list, tuple, Sequence, NoneType, object, Any):
        yield hint


def answers_at_once(graph: AnyGraph) -> bool:
    """Whether no node stands ahead of ours, which could make a message of the user from any input."""
    return after_start.__name__ in graph.builder.branches.get(START, ())


class Intake(Runnable[Any, Any]):
    """Takes our marks off the messages that a run of a graph of ours brings, where no guard has done so.

    The reducer gives a message that the thread has already its own ones back; see `with_known_marks`.
    """

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        """Return an input without marks; inside another graph, replies and results keep those that they had there."""
        config = ensure_config(config)
        if not isinstance(input, Mapping) or "messages" not in input or is_guarded(config):
            return input
        read = [one for one in read_messages([input["messages"]]) if not _was_recalled(one)]
        is_inside = "|" in config["configurable"].get("checkpoint_ns", "")
        return {**input, "messages": of_others(read) if is_inside else [marked_only(one, {}) for one in read]}

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        """Return it at once, on the event loop."""
        return self.invoke(input, config)


def _was_recalled(message: BaseMessage) -> bool:
    return is_recalled(message) and message.id == recalled_id(marks(message).get("before"))


def check_values(graph: AnyGraph, sent: Any, state: Mapping[str, Any]) -> None:
    """Let the reducers of a graph try an input on a state; nothing is written.

    Args:
        sent: keys of the state as a dict, or a `Command` with such an `update`; all else is not looked at.

    Raises:
        SettingsError: a reducer refuses its value.
    """
    update = sent.update if isinstance(sent, Command) else sent
    for name, value in update.items() if isinstance(update, Mapping) else ():
        channel = graph.channels.get(name)
        if not isinstance(channel, BinaryOperatorAggregate | DeltaChannel):
            continue
        # Shallow copies: a reducer may add to the list that it gets, or take from it.
        tried = channel.from_checkpoint(copy.copy(state[name])) if name in state else channel.copy()
        try:
            tried.update([copy.copy(value)])
        except Exception as error:
            raise SettingsError(f"`{name}` of the input cannot be added to the state: {reason(error)}") from error


def can_take_saved(graph: AnyGraph, snapshot: StateSnapshot) -> bool:
    """Tell whether a graph can take the input that a run saved and no node consumed; also where there is none.

    Only its shape and the reducers are asked: keys that are gone may be those of another version of the agent.
    """
    if START not in snapshot.next or "__root__" in _taken(graph):
        return True
    checkpointer: Any = graph.checkpointer
    saved = checkpointer.get_tuple(snapshot.config)
    sent = saved.checkpoint["channel_values"].get(START) if saved is not None else None
    if sent is None or isinstance(sent, Command):
        return True
    try:
        check_values(graph, _as_dict(graph, sent), snapshot.values)
    except SettingsError:
        return False
    return True


def _check_names(graph: AnyGraph, command: "Command[Any]") -> None:
    """Refuse a command whose keys or nodes the graph does not have; LangGraph would leave these out.

    Raises:
        SettingsError: it names them.
    """
    update: Any = command.update
    is_listed = isinstance(update, str | list | tuple | BaseMessage)
    if is_listed and "__root__" not in graph.builder.channels:
        try:
            update = dict(update)
        except (TypeError, ValueError):
            raise SettingsError(f"`Command(update=…)` takes a dict of state keys, got {update!r:.80}") from None
    keys = update if isinstance(update, Mapping) else ()
    if unknown := [key for key in keys if key not in graph.builder.channels]:
        raise SettingsError(f"the graph has no state key {unknown[0]!r} that `Command(update=…)` could set")
    places = [command.goto] if isinstance(command.goto, str | Send) else command.goto
    for place in places:
        name = place.node if isinstance(place, Send) else place
        if name != END and name not in graph.builder.nodes:
            raise SettingsError(
                f"the graph has no node {name!r} for `Command(goto=…)`; it has {', '.join(graph.builder.nodes)}"
            )


def _taken(graph: AnyGraph) -> Mapping[str, Any]:
    """Return the inputs of a graph by name."""
    return graph.builder.schemas[graph.builder.input_schema]


def _as_dict(graph: AnyGraph, sent: Any) -> dict[str, Any]:
    """Return an input as LangGraph reads it: a dict, or an object with annotated keys.

    Raises:
        SettingsError: it is neither.
    """
    if isinstance(sent, Mapping):
        return dict(sent)
    taken = _taken(graph)
    names = {name for kind in type(sent).__mro__ for name in inspect.get_annotations(kind)} & taken.keys()
    if not names:
        keys = ", ".join(f'"{name}": …' for name in taken)
        example = '{"messages": "a text"}' if "messages" in taken else f"{{{keys}}}"
        raise SettingsError(f"the input must be a dict such as {example}, got {_kind(sent)}")
    defaults = type(sent).model_fields.keys() - sent.model_fields_set if isinstance(sent, BaseModel) else ()
    found = {name: getattr(sent, name) for name in names if hasattr(sent, name)}
    return {name: value for name, value in found.items() if value is not None or name not in defaults}


def _kind(value: Any) -> str:
    is_short = isinstance(value, str) and len(value) < 40
    return f"the text {value!r}" if is_short else f"a value of type {type(value).__name__}"


def _identified(message: BaseMessage) -> BaseMessage:
    try:
        str(message.id).encode()
    except UnicodeEncodeError as error:
        raise SettingsError(
            f"the id of a message has half of a surrogate pair, which no database stores, got {message.id!r}"
        ) from error
    content = clean_content(message.content)
    if message.id is not None and content == message.content:
        return message
    return message.model_copy(update={"id": message.id or str(uuid4()), "content": content})
