"""Recorded conversations through the real graph, with fixtures written for these tests."""

import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from conversation import tool_round
from everthread.cli import main
from everthread.evals import replay as module
from everthread.evals.recording import ENDING, exchanges
from everthread.evals.records import Record, Toolkit, read_records
from everthread.evals.replay import replay, total
from everthread.state import Context
from everthread.window.turns import legal

FIXTURE = Path(__file__).parents[1] / "fixtures" / "bakery.jsonl"


def record(number: int) -> Record:
    return read_records(FIXTURE)[number]


def long_record(turns: int) -> Record:
    messages: list[BaseMessage] = []
    for turn in range(turns):
        call = {"name": "look", "args": {"n": turn}, "id": f"c{turn}", "type": "tool_call"}
        messages += [
            HumanMessage(f"question {turn}", id=f"h{turn}"),
            AIMessage("", tool_calls=[call], id=f"a{turn}"),
            ToolMessage(f"row {turn} " * 150, tool_call_id=f"c{turn}", name="look", id=f"t{turn}"),
            AIMessage(f"answer {turn}", id=f"b{turn}"),
        ]
    return Record("long", "long.jsonl:1", tuple(messages), toolkit=Toolkit(system="Be brief."))


def ids(messages: list[BaseMessage]) -> list[str | None]:
    return [message.id for message in messages]


def test_a_run_begins_with_the_user_and_ends_with_the_first_reply_without_calls() -> None:
    runs, left = exchanges(record(0).messages)

    assert [ids(run.input) for run in runs] == [["m0", "m1"], ["m6", "m7", "m8"]]
    assert [[reply.id for reply in run.replies] for run in runs] == [["m2", "m5"], ["m9", "m11", "m13"]]
    assert ids(left) == ["m14"]


def test_a_record_that_stops_at_a_tool_result_gets_an_ending_so_that_the_last_prompt_is_checked() -> None:
    (run,), left = exchanges(record(1).messages)

    assert [reply.text for reply in run.replies] == ["", ENDING]
    assert left == []


def test_a_turn_that_the_user_broke_off_is_sent_ahead_of_the_next_question() -> None:
    told = [message for message in long_record(2).messages if message.id != "b0"]

    (run,), _ = exchanges(told)

    assert ids(run.input) == ["h0", "a0", "t0", "h1"]


def test_every_record_of_the_fixture_replays_without_a_violation() -> None:
    result = replay(record(0), Context(window=4_000))

    assert (result.outcome, result.violations, result.error) == ("replayed", (), None)
    assert (result.turns, result.calls, result.skipped_messages) == (3, 5, 1)
    assert result.prompt_tokens > result.max_prompt_tokens > 0
    assert result.prompt_tokens > result.cacheable_prefix_tokens > 0


def test_the_model_sees_recorded_results_and_errors_in_the_order_of_its_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    prompts = watched(monkeypatch)

    replay(record(0), Context(window=4_000))

    results = [message for message in prompts[-1] if isinstance(message, ToolMessage)]
    told = [(message.tool_call_id, message.text, message.status) for message in results]
    assert told == [
        ("call_1", '{"left": 1}', "success"),
        ("call_2", '{"left": 12}', "success"),
        ("call_3", "ordered", "success"),
        ("call_4", "pieces must be a number", "error"),
    ]


def test_the_schemas_of_the_toolkit_are_bound_and_an_unknown_tool_gets_an_open_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bound: list[Any] = []
    watched(monkeypatch, bound)

    replay(record(1), Context(window=4_000))

    names = [tool["function"]["name"] for tool in bound[-1]]
    assert names == ["look_up_shelf", "place_order", "ask_the_baker"]
    assert bound[-1][0]["function"]["parameters"]["required"] == ["product"]


def watched(monkeypatch: pytest.MonkeyPatch, bound: list[Any] | None = None) -> list[list[BaseMessage]]:
    """Keep every prompt that reaches the checker, and its tools."""
    prompts: list[list[BaseMessage]] = []
    check = module.PromptChecker.check

    def keep(self: module.PromptChecker, messages: list[BaseMessage], tools: Any) -> None:
        prompts.append(list(messages))
        if bound is not None:
            bound.append(tools)
        check(self, messages, tools)

    monkeypatch.setattr(module.PromptChecker, "check", keep)
    return prompts


@pytest.mark.parametrize("policy", ["summarize", "token_budget", "sliding_window", "head_tail", "salience"])
def test_a_long_record_stays_in_a_small_window_and_loses_nothing(policy: Any) -> None:
    result = replay(long_record(12), Context(window=3_000, policy=policy))

    assert (result.outcome, result.violations, result.calls) == ("replayed", (), 24)
    assert result.max_prompt_tokens <= 3_000 - 375
    assert result.evicted_messages + result.masked_results + result.compactions > 0


def test_a_window_too_small_for_what_is_in_every_prompt_is_refused_and_keeps_the_question() -> None:
    result = replay(record(0), Context(window=256))

    assert result.outcome == "refused"
    assert "`window` is 256 tokens" in str(result.error)
    assert (result.calls, result.lost_messages, result.violations) == (0, 0, ())


def test_a_record_without_an_answer_is_refused_by_file_and_line() -> None:
    result = replay(record(2), Context(window=4_000))

    assert result.outcome == "refused"
    assert str(result.error).startswith(f"{FIXTURE}:3: no message of the user has a recorded answer")


def test_torn_pairs_are_found_out_whatever_the_graph_believes(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_calls(messages: Any) -> list[BaseMessage]:
        return [message for message in legal(messages) if not getattr(message, "tool_calls", None)]

    monkeypatch.setattr("everthread.window.assembly.legal", without_calls)

    result = replay(long_record(2), Context(window=4_000))

    # The second call of each turn has the result of this turn, and the second turn that of the first as well.
    assert (result.orphan_tool_messages, result.unanswered_calls, result.is_clean) == (4, 0, False)


def test_messages_that_leave_without_a_copy_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everthread.nodes.trim.append_operations", lambda *_, **__: [])

    result = replay(long_record(6), Context(window=1_500, policy="token_budget"))

    assert result.lost_messages > 0
    assert not result.is_clean


def test_a_question_answered_by_more_tool_rounds_than_fit_stays_in_every_prompt() -> None:
    rounds = [message for place in range(16) for message in tool_round([f"r{place}"], "row of a table " * 40)]
    told = [*long_record(1).messages, HumanMessage("Look at all rows.", id="q"), *rounds]

    result = replay(Record("rounds", "rounds.jsonl:1", tuple(told)), Context(window=2_000))

    assert (result.missing_questions, result.violations) == (0, ())


def test_an_overrun_is_found_out_when_the_budget_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everthread.nodes.sizes.input_limit", lambda *_: 100_000)

    result = replay(long_record(6), Context(window=1_500))

    assert result.overruns > 0
    assert result.violations[0].tokens + 187 > 1_500


def test_an_unforeseen_error_is_a_failure_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "build_graph", lambda *_, **__: 1 / 0)

    result = replay(record(0), Context(window=4_000))

    assert (result.outcome, result.error, result.is_clean) == ("failed", "ZeroDivisionError: division by zero", False)


def test_the_summary_adds_up() -> None:
    results = [replay(record(number), Context(window=4_000)) for number in range(3)]

    summary = total(results)

    assert (summary["records"], summary["replayed"], summary["refused"], summary["failed"]) == (3, 2, 1, 0)
    assert summary["calls"] == sum(result.calls for result in results) == 7


def test_the_same_record_gives_the_same_figures() -> None:
    first, second = (replay(long_record(6), Context(window=2_000)).line() for _ in range(2))

    assert {**first, "seconds": 0} == {**second, "seconds": 0}


def test_the_command_prints_one_json_line_a_record_and_a_summary(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["replay", str(FIXTURE), "--window", "4000", "--json"])

    printed = capsys.readouterr()
    lines = [json.loads(line) for line in printed.out.splitlines()]
    assert code == 0
    assert [line.get("id") for line in lines] == ["bakery/order", "bakery/broken-off", "bakery/no-answer", None]
    assert (lines[-1]["summary"], lines[-1]["violations"]) == (True, 0)
    assert "refused: bakery/no-answer" in printed.err


def test_only_and_limit_choose_records(capsys: pytest.CaptureFixture[str]) -> None:
    main(["replay", str(FIXTURE), "--only", "bakery/o", "--json"])
    main(["replay", str(FIXTURE), "--limit", "1", "--json"])

    told = [json.loads(line).get("id") for line in capsys.readouterr().out.splitlines()]
    assert told == ["bakery/order", None] * 2


def test_the_command_prints_a_table_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["replay", str(FIXTURE), "--only", "bakery/order"])

    told = capsys.readouterr().out
    assert code == 0
    assert "bakery/order" in told
    assert "1 record: 1 replayed, 0 refused, 0 failed; 5 calls, 0 violations" in told


def test_a_violation_is_exit_code_one_and_the_first_offending_call(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("everthread.nodes.sizes.input_limit", lambda *_: 100_000)

    code = main(["replay", str(FIXTURE), "--window", "256", "--only", "bakery/order", "--json"])

    assert code == 1
    assert capsys.readouterr().err.startswith("error: bakery/order: call 1, ")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["none.jsonl"], 1, "error: none.jsonl: cannot be read: No such file or directory"),
        ([str(FIXTURE), "--only", "florist"], 1, "error: no record has 'florist' in its id"),
        ([str(FIXTURE), "--only", "no-answer"], 1, "refused: bakery/no-answer: "),
        ([str(FIXTURE), "--window", "10"], 2, "error: `--window` must be a whole number of at least 256, got 10"),
        ([str(FIXTURE), "--policy", "hope"], 2, "error: `policy` is 'hope'; choose one of "),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", *arguments]) == code

    told = capsys.readouterr().err
    assert told.startswith(said)
    assert "Traceback" not in told


def test_the_command_takes_a_folder_and_says_what_it_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(FIXTURE.parent), "--window", "4000"]) == 0

    told = capsys.readouterr()
    assert "2 records: 2 replayed, 0 refused" in told.out
    assert "Left out: 1 of bakery.jsonl (without a recorded reply to replay)." in told.err
