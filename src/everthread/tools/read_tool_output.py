"""The tool that reads back what a mask left out."""

from typing import Annotated, Any

from langchain_core.tools import ToolException, tool
from langgraph.prebuilt import ToolRuntime

from everthread.state import namespaces
from everthread.state.marks import handle_of, is_masked
from everthread.storage.transcript import full_text
from everthread.tools.runtime import dials_of, thread_of
from everthread.window.encoding import encoding

_MARGIN = 60
"""Tokens kept free for the line that says what was returned."""


@tool
def read_tool_output(
    handle: Annotated[str, "The handle shown where text was left out, such as 'h1a2b3c4d'."],
    runtime: ToolRuntime[Any, Any],
    offset: Annotated[int, "First token to return, from 0."] = 0,
    limit: Annotated[int, "Tokens to return."] = 1000,
) -> str:
    """Read a part of a long text that was shortened in this conversation."""
    thread_id = thread_of(runtime)
    text = None
    if runtime.store is not None:
        pointer = runtime.store.get(namespaces.thread(thread_id, "handles"), handle)
        text = full_text(runtime.store, thread_id, str(pointer.value["message_id"])) if pointer else None
    if text is None:
        # A run that keeps nothing has shortened it for the prompt alone.
        messages = (runtime.state or {}).get("messages", [])
        whole = (str(one.text) for one in messages if handle_of(str(one.id)) == handle and not is_masked(one))
        text = next(whole, None)
    if text is None:
        raise ToolException(f"there is no handle {handle!r} in this conversation; copy it exactly as shown")
    encoder = encoding("o200k_base")
    tokens = encoder.encode_ordinary(text)
    limit = max(1, min(limit, dials_of(runtime).tool_output_tokens - _MARGIN))
    if not 0 <= offset < max(len(tokens), 1):
        raise ToolException(f"`offset` must be from 0 to {len(tokens) - 1}, got {offset}")
    part = tokens[offset : offset + limit]
    after = len(tokens) - offset - len(part)
    note = f"[tokens {offset:,} to {offset + len(part):,} of {len(tokens):,}; {after:,} more follow]"
    return f"{note}\n{encoder.decode(part)}"
