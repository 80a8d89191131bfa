"""LangGraph's serializer, which writes messages as they are and makes them again without checking them anew.

A run begins with reading every message of its working set, and most of that time goes into validating fields
that were valid when they were saved. Writing one takes as long as walking through it twice.
"""

from collections.abc import Callable, Iterable
from typing import Any

import ormsgpack
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import (
    EXT_DELTA_SNAPSHOT,
    EXT_PYDANTIC_V2,
    JsonPlusSerializer,
    _msgpack_default,
    _option,
)
from langgraph.checkpoint.serde.types import _DeltaSnapshot

__all__ = ["MessageSerializer"]

Hook = Callable[[int, bytes], Any]

_KINDS: dict[tuple[str, str], type[BaseMessage]] = {
    (kind.__module__, kind.__name__): kind for kind in (AIMessage, HumanMessage, SystemMessage, ToolMessage)
}
_FIELDS = {kind: frozenset(kind.model_fields) for kind in _KINDS.values()}


class MessageSerializer(JsonPlusSerializer):
    """Reads and writes what `JsonPlusSerializer` does, with the strict list: a crafted row must not run code."""

    def __init__(self) -> None:
        super().__init__(allowed_msgpack_modules=None)
        self._unpack_ext_hook = _reviving(self._unpack_ext_hook)

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Write a value with the name of its form; see LangGraph's serializer."""
        if obj is None or isinstance(obj, bytes | bytearray):
            return super().dumps_typed(obj)
        return "msgpack", ormsgpack.packb(obj, default=_packed, option=_option)

    def with_msgpack_allowlist(self, extra_allowlist: Iterable[tuple[str, ...] | type]) -> JsonPlusSerializer:
        """Return a serializer that may also revive these types."""
        made = super().with_msgpack_allowlist(extra_allowlist)
        if made is not self:
            made._unpack_ext_hook = _reviving(made._unpack_ext_hook)
        return made


def _packed(obj: Any) -> Any:
    """Write a message that holds nothing but plain values in one go, and everything else as LangGraph does."""
    kind = type(obj)
    if kind in _FIELDS and not obj.__pydantic_extra__ and obj.__dict__.keys() == _FIELDS[kind]:
        told = (kind.__module__, kind.__name__, obj.__dict__, "model_validate_json")
        try:
            return ormsgpack.Ext(EXT_PYDANTIC_V2, ormsgpack.packb(told, default=_refused, option=_option))
        except ormsgpack.MsgpackEncodeError:
            return _msgpack_default(obj)
    if kind is _DeltaSnapshot:
        return ormsgpack.Ext(EXT_DELTA_SNAPSHOT, ormsgpack.packb(obj.value, default=_packed, option=_option))
    return _msgpack_default(obj)


def _refused(obj: Any) -> Any:
    raise TypeError(type(obj).__name__)


def _reviving(stock: Hook) -> Hook:
    """Return a hook that makes messages and leaves everything else to LangGraph's."""

    def hook(code: int, data: bytes) -> Any:
        if code == EXT_DELTA_SNAPSHOT:
            return _DeltaSnapshot(_unpacked(data))
        if code == EXT_PYDANTIC_V2:
            told = _unpacked(data)
            kind = _KINDS.get((told[0], told[1])) if isinstance(told, list) and len(told) > 2 else None
            if kind is not None and isinstance(told[2], dict) and _is_whole(told[2], _FIELDS[kind]):
                return _made(kind, told[2])
        return stock(code, data)

    def _unpacked(data: bytes) -> Any:
        return ormsgpack.unpackb(data, ext_hook=hook, option=ormsgpack.OPT_NON_STR_KEYS)

    return hook


def _is_whole(fields: dict[str, Any], names: frozenset[str]) -> bool:
    """Tell whether fields are as pydantic makes them; somebody may have set others on a message later."""
    return (
        fields.keys() == names
        and type(fields["content"]) in (str, list)
        and (fields["id"] is None or type(fields["id"]) is str)
        and type(fields.get("tool_call_id", "")) is str
        and (not fields.get("tool_calls") or all("type" in call for call in fields["tool_calls"]))
    )


def _made(kind: type[BaseMessage], fields: dict[str, Any]) -> BaseMessage:
    message = kind.__new__(kind)
    object.__setattr__(message, "__dict__", fields)
    object.__setattr__(message, "__pydantic_fields_set__", set(fields))
    object.__setattr__(message, "__pydantic_extra__", {})
    object.__setattr__(message, "__pydantic_private__", None)
    return message
