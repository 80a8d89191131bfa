"""The benchmark measures what it says: its workload, its probe, its clock, and a short thread from end to end."""

import importlib
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from conversation import tool_round

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

fakes, probes, reports, threads, work = (
    importlib.import_module(f"longrun.{name}") for name in ("fakes", "probe", "report", "thread", "workload")
)
WORKLOAD = work.WORKLOADS["b"]


def probe(**values: Any) -> Any:
    return probes.Probe(**{"rule": work.RULE, "window": 1_000, "question": "q2", **values})


def prompt(*texts: str) -> list[BaseMessage]:
    return [SystemMessage("Be brief."), *map(HumanMessage, texts)]


@pytest.mark.parametrize("workload", work.WORKLOADS.values(), ids=lambda workload: workload.name)
def test_only_turn_1_sets_the_rule(workload: Any) -> None:
    told = [work.RULE in work.question(workload, turn) for turn in (1, 2, 100)]

    assert told == ([True] * 3 if workload.single_turn else [True, False, False])


def test_tool_results_have_one_length_and_differ() -> None:
    results = {
        work.tool_result(work.reference(turn, round_, place))
        for turn in (1, 2, 999)
        for round_ in (0, 299)
        for place in range(3)
    }

    assert len(results) == 18
    assert {len(result) for result in results} == {work.RESULT_CHARACTERS}


def test_a_tool_result_is_the_same_in_every_process() -> None:
    work.tool_result.cache_clear()

    assert work.tool_result("RT0001-000A").startswith("Options for RT0001-000A:\n1. ")
    assert work.tool_result("RT0001-000A") == work.tool_result.__wrapped__("RT0001-000A")


def test_the_model_calls_tools_in_parallel_and_then_answers() -> None:
    script = fakes.Script(WORKLOAD)
    script.begin(7)

    first, second = script.next_reply(), script.next_reply()

    assert [call["args"]["reference"] for call in first.tool_calls] == ["RT0007-000A", "RT0007-000B", "RT0007-000C"]
    assert not second.tool_calls
    assert second.text == work.answer(7)


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        (tool_round(["a", "b"]), (0, 0)),
        (tool_round(["a", "b"])[:2], (0, 1)),
        (tool_round(["a", "b"])[1:], (2, 0)),
        ([tool_round(["a"])[0], HumanMessage("q"), tool_round(["a"])[1]], (1, 1)),
        ([*tool_round(["a"]), tool_round(["a"])[1]], (1, 0)),
    ],
    ids=["whole", "one result missing", "call missing", "result too late", "answered twice"],
)
def test_gaps_are_what_a_provider_refuses(messages: list[BaseMessage], expected: tuple[int, int]) -> None:
    probe = probes.Probe(rule="", window=1_000)

    probe.saw(messages, [])

    assert (probe.orphans, probe.unanswered) == expected


def test_the_cacheable_share_is_the_head_that_two_prompts_share() -> None:
    looked = probe()
    same, other = prompt("q1"), prompt("q2", "q3")

    looked.saw(same, [])
    looked.saw([*same, AIMessage("a1")], [])
    first, pairs = looked.repeated_tokens, looked.pairs_tokens
    looked.saw(other, [])

    assert first == looked.counter.messages(same) - 3
    assert pairs == looked.counter.messages([*same, AIMessage("a1")])
    assert looked.repeated_tokens == first + looked.counter.message(same[0])  # then only the system message


def test_other_tools_leave_nothing_to_cache() -> None:
    looked = probe()
    schema = {"type": "function", "function": {"name": "look", "description": "Look.", "parameters": {}}}

    looked.saw(prompt("q2"), [])
    looked.saw(prompt("q2"), [schema])

    assert looked.cacheable_share == 0.0


def test_the_probe_tells_what_a_prompt_lacks() -> None:
    looked = probe(window=40)

    looked.saw(prompt("q2", f"Please {work.RULE}."), [])
    looked.saw(prompt("q1", "word " * 60), [])

    assert (looked.without_question, looked.without_rule, looked.over_window) == (1, 1, 1)
    assert looked.last_has_rule is False


def test_a_prompt_costs_what_the_provider_would_count() -> None:
    messages = [*prompt("How many?"), *tool_round(["a", "b", "c"])]

    assert probe().saw(messages, []) == probes.new_counter().messages(messages)


def test_a_summary_knows_the_rule_only_when_it_was_told() -> None:
    knows, knows_not = (fakes.summary_of(given, work.RULE) for given in (f"user: {work.RULE}", "user: hello"))

    assert work.RULE in knows
    assert work.RULE not in knows_not


def test_a_paused_clock_leaves_out_the_cpu_inside() -> None:
    clock = fakes.Clock()
    before = clock.cpu

    with clock.paused():
        began = time.thread_time()
        while time.thread_time() - began < 0.05:
            pass

    assert clock.cpu - before < 0.04


def test_growth_compares_the_end_with_turn_100() -> None:
    slower = [1.0] * 150 + [2.0] * 150

    assert threads.growth(slower)["growth"] == pytest.approx(2.0)
    assert threads.growth([1.0] * 100)["growth"] is None


def test_turn_1_is_readable_only_word_for_word() -> None:
    wanted = threads.first_texts(WORKLOAD)
    whole = [HumanMessage(wanted[0]), *(ToolMessage(text, tool_call_id="c") for text in wanted[1:])]
    cut = [*whole[:-1], ToolMessage(wanted[-1][:500], tool_call_id="c")]

    assert threads.holds(whole, wanted)
    assert not threads.holds(cut, wanted)


@pytest.mark.parametrize("mode", ["sync", "async", "async-8"])
@pytest.mark.parametrize("contender", ["everthread", "langgraph"])
def test_a_short_thread_is_measured_from_end_to_end(contender: str, mode: str, tmp_path: Path) -> None:
    job = threads.Job(contender, "b", turns=3, durability="exit", window=16_000, seconds=60.0, mode=mode)

    with threads.opened(job, tmp_path) as thread:
        thread.advance(10)
        report = thread.report()

    assert (report["status"], report["units"], report["prompts"]) == ("done", 3, 6)
    assert (report["orphans"], report["unanswered_calls"], report["prompts_without_rule"]) == (0, 0, 0)
    assert report["turn_1"] in ("state", "transcript")
    assert report["threads"] == threads.MODES[mode]
    assert threads.database_bytes(tmp_path) > report["threads"] * 3 * 3 * work.RESULT_CHARACTERS


def test_a_cached_token_costs_a_tenth(tmp_path: Path) -> None:
    job = threads.Job("langgraph", "a", turns=2, durability="exit", window=16_000, seconds=60.0)

    with threads.opened(job, tmp_path) as thread:
        thread.advance(2)
        conversation = thread.conversations[0]
        conversation.summarized.append(1_000)
        report = thread.report()

    probe = conversation.probe
    assert probe.repeated_tokens > 0
    assert report["priced_tokens"] == pytest.approx((probe.tokens - 0.9 * probe.repeated_tokens + 1_000) / 2)


def test_a_contender_out_of_time_is_stopped(tmp_path: Path) -> None:
    job = threads.Job("langgraph", "c1", turns=50, durability="exit", window=16_000, seconds=0.0)

    with threads.opened(job, tmp_path) as thread:
        thread.advance(1)

        assert thread.report()["status"] == "stopped"
        assert thread.report()["units"] < 50


def test_the_table_shows_a_contender_that_cannot_run() -> None:
    row = {
        "contender": "langmem",
        "workload": "a",
        "turns": 30,
        "durability": "exit",
        "mode": "sync",
        "status": "error",
    }

    shown = reports.markdown([{**row, "error": "ModuleNotFoundError: No module named 'langmem'"}])

    assert "| langmem | error: ModuleNotFoundError: No module named 'langmem' |" in shown


def test_ratios_are_to_everthread() -> None:
    shared = {"workload": "a", "turns": 100, "durability": "exit", "status": "done", "units": 100, "seconds": 1.0}
    shared |= {"prompts": 200, "prompts_without_rule": 50, "rule_in_last_prompt": True}

    shown = reports.table(
        [{**shared, "contender": "everthread", "cpu_ms": 5.0}, {**shared, "contender": "langgraph", "cpu_ms": 10.0}]
    )

    assert "| everthread | 5.0 |" in shown
    assert "| langgraph | 10.0 (2.00×) |" in shown
    assert "75%, yes" in shown


def test_a_mark_is_judged_within_one_run() -> None:
    shared = {"workload": "a", "mode": "async"}

    told = reports.marks(
        [
            {**shared, "contender": "everthread", "cpu_ms": 5.0, "cacheable_share": 0.9},
            {**shared, "contender": "SummarizationMiddleware", "cpu_ms": 4.0},
        ]
    )

    assert "CPU of everthread / SummarizationMiddleware: 1.25 (≤ 1.0: missed)" in told
    assert "repeated head of everthread: 90.0% (≥ 88%: met)" in told
