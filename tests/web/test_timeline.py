"""Rows and bars of the timeline, as values."""

from everthread import open_storage
from everthread.ledger import events_of_turns, record
from everthread.ledger.events import Compacted, Masked, PinRepaired, PromptAssembled, Refetch
from everthread.web.dashboard.timeline import BAR, bar_of, timeline, timeline_values

PROMPT = PromptAssembled(
    window=8_000,
    budget=5_000,
    tokens=2_500,
    breakdown={"system": 400, "tools": 600, "history": 1_500, "free": 3_500, "safety": 1_000, "reply_reserve": 1_000},
    cacheable_tokens=2_000,
    accuracy="exact",
    messages=3,
    watermarks=(2_000, 4_000),
)
MASKED = Masked(reason="high watermark", message_id="a", handle="h", tokens_before=900, tokens_after=100)
COMPACTED = Compacted(
    reason="high watermark",
    message_ids=["a", "b"],
    tokens_before=900,
    tokens_after=300,
    summary_tokens=80,
    version=1,
    writer="extractive",
)


def test_a_bar_is_as_wide_as_the_window() -> None:
    bar = bar_of(PROMPT)

    assert [one.name for one in bar.segments] == ["system", "tools", "history", "free", "safety", "reply_reserve"]
    assert bar.segments[-1].x + bar.segments[-1].width == BAR
    assert bar.cacheable == 250


def test_watermarks_stand_behind_what_is_in_every_prompt() -> None:
    assert bar_of(PROMPT).watermarks == [375, 625]
    assert bar_of(PROMPT.model_copy(update={"watermarks": None})).watermarks == []


def test_a_category_that_is_over_its_share_keeps_the_bar_in_its_frame() -> None:
    over = PROMPT.model_copy(update={"breakdown": {"history": 12_000, "free": -4_000}})

    assert [(one.x, one.width) for one in bar_of(over).segments] == [(0, BAR)]


def test_what_happened_stands_with_the_call_behind_it() -> None:
    rows, since = timeline([PROMPT, MASKED, MASKED, COMPACTED, PROMPT, PinRepaired(pins=1), MASKED])

    assert [[one.kind for one in row.changes] for row in rows] == [[], ["masked", "compacted", "pinned"]]
    assert rows[1].changes[0].text == "2 messages masked: 1,800 → 200 tokens (high watermark)"
    assert [one.kind for one in since] == ["masked"]


def test_what_was_missed_is_told() -> None:
    missed = Refetch(why="read_back", message_ids=["a"], left="masked", left_turn=1, by="c")

    rows, _ = timeline([missed, PROMPT])

    assert [one.text for one in rows[0].changes] == [
        "1 message missed after it was masked: its full text was read back by its handle"
    ]


def test_a_ledger_is_read_by_turns() -> None:
    with open_storage("sqlite://") as storage:
        for turn in range(1, 13):
            record(storage.store, "t", [PROMPT], write=lambda _: None, turn=turn)

        assert [event.turn for event in events_of_turns(storage.store, "t", 9, 11)] == [9, 10, 11]


def test_calls_of_a_branch_that_was_left_are_not_of_the_newest_turn() -> None:
    with open_storage("sqlite://") as storage:
        for turn in (1, 2, 3, 2):
            record(storage.store, "t", [PROMPT], write=lambda _: None, turn=turn)

        values = timeline_values(storage, {"thread_id": "t", "turns": 2})

    assert [row.event.turn for row in values["current"]] == [2]
    assert [row.event.turn for row in values["past"]] == [3, 2, 1]
