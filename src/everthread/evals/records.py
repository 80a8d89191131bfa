"""Read recorded conversations: one JSON object a line; errors name file and line."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from everthread.errors import RecordError

TOOLKITS = "toolkits.json"
"""File beside the records that holds system prompts and tool schemas by toolkit."""


class _Lenient(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class RecordedFunction(_Lenient):
    """Name and arguments of a recorded call."""

    name: str = Field(min_length=1)
    arguments: str = "{}"
    """JSON object as text, as a provider sends it."""


class RecordedCall(_Lenient):
    """A tool call of a recorded assistant message."""

    id: str = Field(min_length=1)
    function: RecordedFunction


class RecordedMessage(_Lenient):
    """One message in OpenAI's chat format; a missing `id` becomes `m0000`, `m0001`, … by place."""

    role: Literal["user", "assistant", "tool"]
    id: str = ""
    content: str | list[dict[str, Any]] | None = None
    tool_calls: list[RecordedCall] | None = None
    tool_call_id: str | None = None
    name: str | None = None
    error: bool = False
    """The tool failed, and `content` says how."""


class Toolkit(_Lenient):
    """System prompt and tool schemas that several records share."""

    system: str = ""
    tools: list[dict[str, Any]] = []
    """OpenAI function schemas."""


class _Meta(_Lenient):
    system: str = ""


class _Line(_Lenient):
    id: str = Field(min_length=1)
    toolkit: str | None = None
    messages: list[RecordedMessage] = Field(min_length=1)
    tools: list[dict[str, Any]] = []
    """OpenAI function schemas of a record without a toolkit."""
    meta: _Meta = _Meta()
    gold: Any = None
    sessions: Any = None


@dataclass(frozen=True)
class Record:
    """A recorded conversation that was checked."""

    id: str
    where: str
    """File and line, for messages to people."""
    messages: tuple[BaseMessage, ...]
    """In order, with the recorded ids."""
    toolkit: Toolkit = field(default_factory=Toolkit)
    gold: Mapping[str, Any] = field(default_factory=dict)
    """Annotations as they are recorded; who uses one checks its form."""
    session_ends: tuple[int, ...] = ()
    """Number of messages at the end of each session."""


def read_records(path: Path, toolkits: Path | None = None) -> list[Record]:
    """Read a file of records.

    Args:
        path: JSON Lines in UTF-8; blank lines are skipped.
        toolkits: system prompts and schemas by toolkit; None takes `toolkits.json` beside the file.

    Raises:
        RecordError: the file cannot be read, or a line is malformed; the message names file and line.
    """
    kits = _Toolkits(toolkits or path.with_name(TOOLKITS))
    seen: dict[str, str] = {}
    records = []
    for where, value in objects(path):
        record = _record(where, value, kits)
        if record.id in seen:
            raise RecordError(f"{where}: record {record.id!r} is already on {seen[record.id]}; make the ids unique")
        seen[record.id] = where
        records.append(record)
    return records


class _Toolkits:
    """Toolkits of one file, read when the first record names one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kits: dict[str, Toolkit] | None = None

    def named(self, name: str, where: str) -> Toolkit:
        """Return a toolkit.

        Raises:
            RecordError: there is no such toolkit, or no readable file of toolkits.
        """
        if not self._path.is_file():
            raise RecordError(
                f"{where}: the record names the toolkit {name!r} but there is no file {str(self._path)!r}; "
                "pass `--toolkits FILE`"
            )
        self._kits = kits = self._kits or _read_toolkits(self._path)
        if name not in kits:
            raise RecordError(
                f"{where}: unknown toolkit {name!r}; {self._path} has {', '.join(sorted(kits)) or 'none'}"
            )
        return kits[name]


def _read_toolkits(path: Path) -> dict[str, Toolkit]:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(values, dict):
            raise RecordError(f"{path}: expected a JSON object of toolkits, got {_kind(values)}")
        kits = {name: Toolkit.model_validate(value) for name, value in values.items()}
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise RecordError(f"{path}: {first_problem(error)}") from error
    except ValueError as error:
        raise RecordError(f"{path}: not JSON: {error}") from error
    for name, kit in kits.items():
        if not all(isinstance(tool.get("function"), dict) and tool["function"].get("name") for tool in kit.tools):
            raise RecordError(f"{path}: a tool of {name!r} is not an OpenAI function schema with `function.name`")
    return kits


def lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield place, as file and line, and text of every line that is not blank.

    Raises:
        RecordError: the file cannot be read, or a line is not UTF-8.
    """
    try:
        raw = path.read_bytes()
    except IsADirectoryError:
        raise RecordError(f"{path}: this is a folder; name the files in it") from None
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {error.strerror}") from error
    # Bytes are split, not text: `str.splitlines` also breaks at U+2028, which JSON allows inside a string.
    for number, line in enumerate(raw.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        where = f"{path}:{number}"
        try:
            text = line.decode("utf-8").strip()
        except UnicodeDecodeError as error:
            raise RecordError(f"{where}: not UTF-8 at byte {error.start:,} of the line") from error
        if text:
            yield where, text


def objects(path: Path, *, may_be_empty: bool = False) -> list[tuple[str, dict[str, Any]]]:
    """Return place, as file and line, and value of every line that is not blank.

    Raises:
        RecordError: the file cannot be read, a line is no JSON object, or there is none although there must be one.
    """
    values: list[tuple[str, dict[str, Any]]] = []
    for where, line in lines(path):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise RecordError(f"{where}: not JSON: {error}; it must be one JSON object a line") from error
        if not isinstance(value, dict):
            raise RecordError(f"{where}: expected a JSON object, got {_kind(value)}")
        values.append((where, value))
    if not values and not may_be_empty:
        raise RecordError(f"{path}: the file is empty; it must hold one JSON object a line")
    return values


def _record(where: str, value: dict[str, Any], kits: _Toolkits) -> Record:
    value, instructions = without_instructions({"id": f"line-{where.rpartition(':')[2]}", **value})
    try:
        read = _Line.model_validate(value)
        kit = kits.named(read.toolkit, where) if read.toolkit else Toolkit(system=read.meta.system, tools=read.tools)
    except ValidationError as error:
        raise RecordError(f"{where}: {first_problem(error)}") from error
    if instructions:
        kit = kit.model_copy(update={"system": "\n\n".join(filter(None, [kit.system, *instructions]))})
    gold = read.gold if isinstance(read.gold, dict) else {}
    messages = tuple(to_messages(where, read.messages))
    return Record(read.id, where, messages, toolkit=kit, gold=gold, session_ends=tuple(_ends(read.sessions)))


def without_instructions(value: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Take the system messages out of a transcript as OpenAI records it: they are the agent's instructions."""
    messages = value.get("messages")
    if not isinstance(messages, list):
        return value, []
    instructions: list[Any] = []
    conversation: list[Any] = []
    for message in messages:
        is_system = isinstance(message, dict) and message.get("role") in ("system", "developer")
        (instructions if is_system else conversation).append(message)
    texts = [str(message.get("content") or "") for message in instructions]
    return ({**value, "messages": conversation}, texts) if texts else (value, [])


def _ends(sessions: Any) -> Iterator[int]:
    """Yield where sessions end; a record without sessions, or with others, is one session."""
    for session in sessions if isinstance(sessions, list) else ():
        if isinstance(session, dict) and isinstance(session.get("end"), int):
            yield session["end"]


def to_messages(where: str, messages: Iterable[RecordedMessage]) -> Iterator[BaseMessage]:
    """Check that every call is answered before anything else follows, and convert to LangChain's messages.

    Raises:
        RecordError: a call or a result stands alone, or an id stands twice.
    """
    ids: set[str] = set()
    waiting: dict[str, str] = {}
    for place, message in enumerate(messages):
        message_id = message.id or f"m{place:04d}"
        at = f"{where}: message {place} ({message_id!r})"
        if message_id in ids:
            raise RecordError(f"{at} has the id of an earlier message; make the ids unique")
        ids.add(message_id)
        if message.role == "tool":
            yield _result(at, message, message_id, waiting)
            continue
        if waiting:
            raise RecordError(f"{at} comes before the result of call {next(iter(waiting))!r}")
        if message.role == "user":
            yield HumanMessage(content=_content(message), id=message_id, name=message.name)
        else:
            calls = [_call(at, call) for call in message.tool_calls or ()]
            waiting = {str(call["id"]): call["name"] for call in calls}
            if len(waiting) < len(calls):
                raise RecordError(f"{at} has two calls with the same id")
            yield AIMessage(content=_content(message), id=message_id, name=message.name, tool_calls=calls)
    if waiting:
        raise RecordError(f"{where}: call {next(iter(waiting))!r} has no result when the record ends")


def _result(at: str, message: RecordedMessage, message_id: str, waiting: dict[str, str]) -> ToolMessage:
    call_id = message.tool_call_id
    if call_id is None or call_id not in waiting:
        raise RecordError(f"{at} answers the call {call_id!r}, which the assistant message before it did not make")
    return ToolMessage(
        content=_content(message),
        id=message_id,
        tool_call_id=call_id,
        name=waiting.pop(call_id),
        status="error" if message.error else "success",
    )


def _call(at: str, call: RecordedCall) -> ToolCall:
    try:
        arguments = json.loads(call.function.arguments or "{}")
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{at}: the arguments of call {call.id!r} are not JSON: {error}") from error
    if not isinstance(arguments, dict):
        raise RecordError(f"{at}: the arguments of call {call.id!r} must be a JSON object, got {_kind(arguments)}")
    return ToolCall(name=call.function.name, args=arguments, id=call.id, type="tool_call")


def _content(message: RecordedMessage) -> Any:
    return "" if message.content is None else message.content


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "null")


def first_problem(error: ValidationError) -> str:
    """Say in one line what is wrong first, as `messages[3].role`."""
    problem = error.errors(include_url=False)[0]
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in problem["loc"]).lstrip(".")
    if problem["type"] == "missing":
        return f"`{path}` is missing"
    got = problem.get("input")
    shown = f", got {got!r:.80}" if isinstance(got, str | int | float | None) else f", got {_kind(got)}"
    return f"`{path}`: {problem['msg']}{shown}"
