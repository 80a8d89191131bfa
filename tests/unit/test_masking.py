"""Masked texts."""

import pytest
from langchain_core.messages import ToolMessage

from everthread.state.marks import marks
from everthread.window.draft import as_text
from everthread.window.masking import handle_of, mask, stub
from everthread.window.tokens import counter_for

COUNTER = counter_for("gpt-4o")
COUNT = COUNTER.text
LOG = "\n".join(f"line {number} of the log" for number in range(2000))


def _result(text: str = LOG) -> ToolMessage:
    return ToolMessage(text, tool_call_id="c", id="r-1")


@pytest.mark.parametrize("limit", [100, 500, 2000])
def test_a_mask_is_about_as_long_as_asked(limit: int) -> None:
    assert COUNT(mask(_result(), limit, COUNTER).text) <= limit + 40


def test_a_mask_keeps_head_and_tail_at_line_borders() -> None:
    lines = mask(_result(), 200, COUNTER).text.splitlines()

    assert lines[0] == "line 0 of the log"
    assert lines[-1] == "line 1999 of the log"
    assert all(line in LOG or "left out" in line for line in lines)


def test_a_mask_says_what_is_left_out_and_how_to_read_it() -> None:
    text = mask(_result(), 200, COUNTER).text

    assert f"of {COUNT(LOG):,} tokens left out" in text
    assert f'read_tool_output(handle="{handle_of("r-1")}")' in text


def test_a_second_mask_keeps_handle_and_full_size() -> None:
    once = mask(_result(), 800, COUNTER)

    twice = mask(once, 100, COUNTER)

    assert marks(twice)["handle"] == marks(once)["handle"]
    assert f"of {COUNT(LOG):,} tokens" in twice.text


def test_a_text_without_any_border_is_cut_all_the_same() -> None:
    assert COUNT(mask(_result("x" * 50_000), 100, COUNTER).text) <= 140


def test_a_stub_keeps_the_identifiers_of_what_it_leaves_out() -> None:
    text = stub(_result("Order list\n" + "blah " * 400 + "#W2378156 ships 2026-03-04 " + "blah " * 400), COUNTER).text

    assert "Mentions: #W2378156 2026-03-04" in text
    assert COUNT(text) < 120


IMAGE = {"type": "image", "base64": "iVBORw0KGgo=", "mime_type": "image/png"}


def _with_image(text: str = LOG) -> ToolMessage:
    return ToolMessage([{"type": "text", "text": text}, IMAGE], tool_call_id="c", id="r-1")


def test_a_mask_cuts_the_text_alone_and_keeps_an_image() -> None:
    masked = mask(_with_image(), 200, COUNTER)

    assert masked.content == [{"type": "text", "text": mask(_result(), 200, COUNTER).text}, IMAGE]


def test_of_other_blocks_a_mask_says_that_they_left() -> None:
    data = {"type": "json", "json": {"rows": ["word"] * 9_000}}
    message = _with_image().model_copy(update={"content": [*_with_image().content, data]})

    masked = mask(message, 200, COUNTER)

    assert masked.content[1:] == [IMAGE]
    assert masked.text.startswith("[1 attachment left out]\n")


def test_a_stub_says_that_an_image_is_left_out() -> None:
    assert stub(as_text(_with_image()), COUNTER).text.startswith("[1 attachment left out]\n")
