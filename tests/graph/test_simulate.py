"""What-if on conversations made for these tests."""

import json
import os
import signal
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from everthread import build_graph, open_storage
from everthread.agents import travel
from everthread.cli import main
from everthread.errors import EverthreadError, RecordError, SettingsError
from everthread.evals.needs import Rules, found_values, needed_values
from everthread.evals.pages import render_simulation
from everthread.evals.parallel import spread
from everthread.evals.prices import Prices, read_prices
from everthread.evals.records import Toolkit
from everthread.evals.simulate import Setting, Simulation, by_call, simulate, simulate_one
from everthread.evals.threads import record_of_thread
from everthread.forks import fork
from everthread.models.scripted import ScriptedModel
from everthread.state import Context
from everthread.state.marks import marked
from recordings import RULE, long_record, write

POLICIES = ("sliding_window", "head_tail", "token_budget", "salience", "summarize")


def setting(policy: Any = "token_budget", window: int = 2_500, **dials: Any) -> Setting:
    return Setting.of(Context(policy=policy, window=window, **dials))


@pytest.fixture(scope="module")
def found() -> Simulation:
    return simulate([long_record(11)], [setting(policy) for policy in POLICIES], read_prices())


def row(found: Simulation, policy: str) -> Any:
    return next(one for one in found.rows if one.setting.policy == policy)


def test_no_policy_goes_over_the_window_and_full_history_does(found: Simulation) -> None:
    assert [row(found, policy).sum("prompts_over_budget") for policy in POLICIES] == [0] * 5
    assert row(found, "full history").sum("prompts_over_budget") > 0
    assert found.is_clean


def test_a_value_of_the_first_result_is_in_the_prompt_or_one_recall_away(found: Simulation) -> None:
    for policy in POLICIES:
        case = row(found, policy).cases[0]
        assert (case.needed, case.in_prompt + case.by_handle + case.by_search) == (1, 1)
    assert row(found, "summarize").sum("in_prompt") == 1
    assert row(found, "truncate only").sum("in_prompt") == 0


def test_what_was_dropped_is_counted(found: Simulation) -> None:
    ours = row(found, "sliding_window")

    assert ours.sum("evicted_messages") > ours.sum("evicted_turns") > 0
    assert row(found, "token_budget").sum("masked_results") > 0
    assert ours.sum("lost_messages") == 0


def test_a_rule_of_the_user_is_in_every_prompt_of_ours_and_not_of_plain_truncation(found: Simulation) -> None:
    ours, plain = row(found, "summarize"), row(found, "truncate only")

    assert ours.sum("rules_kept") == ours.sum("rules") == 20
    assert plain.sum("rules_kept") < plain.sum("rules")


def test_a_pin_is_in_every_prompt() -> None:
    found = simulate([long_record(6)], [setting(pins=("Speak French.",))], read_prices())

    assert (found.rows[0].sum("pins"), found.rows[0].sum("pins_kept")) == (12, 12)


def test_prompt_tokens_and_cacheable_tokens_add_up_to_those_of_the_single_prompts(found: Simulation) -> None:
    case = row(found, "summarize").cases[0]

    assert (len(case.sizes), sum(tokens for tokens, _ in case.sizes)) == (case.calls, case.prompt_tokens)
    assert sum(head for _, head in case.sizes) == case.cacheable_tokens


def test_a_conversation_that_one_window_refuses_is_in_no_sum() -> None:
    found = simulate([long_record(4)], [setting(), setting(window=256)], read_prices())

    assert (found.records, found.compared, found.rows[1].refused) == (1, 0, 1)


def test_work_is_spread_over_processes_and_results_keep_the_order_of_the_items() -> None:
    assert spread(len, ["a", "bb", "ccc"], jobs=2) == [1, 2, 3]


def test_ctrl_c_ends_other_processes_without_a_traceback() -> None:
    assert spread(signal.getsignal, [signal.SIGINT] * 2, jobs=2) == [signal.SIG_DFL] * 2


def test_a_failure_in_another_process_is_raised_here() -> None:
    with pytest.raises(ZeroDivisionError):
        spread(partial(divmod, 1), [1, 0], jobs=2)


def test_a_process_that_is_ended_from_outside_is_one_sentence() -> None:
    with pytest.raises(EverthreadError, match=r"ended from outside.*--jobs 1"):
        spread(os._exit, [1, 1], jobs=2)


def test_the_growth_of_prompts_ends_where_few_conversations_go_on() -> None:
    records = [long_record(2, f"short-{place}") for place in range(19)] + [long_record(5)]
    found = simulate(records, [setting()], read_prices())

    assert [call for call, _ in by_call(found.rows[0])] == [1, 2, 3, 4]


def test_needed_values_are_read_from_the_record_when_it_has_them() -> None:
    record = long_record(3, needed_values=[["a2", "code", "KX-4711", "t0", "t0", 1]])

    assert needed_values(record) == {"a2": ["KX-4711"]}


def test_needed_values_are_found_in_arguments_that_an_earlier_message_has() -> None:
    assert found_values(long_record(3).messages) == {"a2": ["KX-4711"]}


def test_needed_values_of_another_form_are_refused_by_file_and_line() -> None:
    with pytest.raises(RecordError, match=r"long\.jsonl:1: `gold\.needed_values` must be rows"):
        needed_values(long_record(2, needed_values=[3]))


def test_a_rule_counts_from_the_message_that_states_it() -> None:
    rules = Rules(long_record(3))

    rules.look([HumanMessage("question 0", id="h0")], "question 0")
    rules.look([HumanMessage("question 1", id="h1")], RULE)
    rules.look([HumanMessage("question 2", id="h2")], "nothing")

    assert (rules.seen, rules.kept, rules.missed) == (2, 1, {RULE: 1})


def test_cached_tokens_are_cheaper_and_short_heads_are_not_cached() -> None:
    prices = Prices(input=10, cached_input=1, output=20, cache_minimum=1000)

    cost = prices.cost([(5_000, 0), (6_000, 5_000), (900, 900)], 1_000)

    assert (cost.uncached, cost.cached, cost.output) == pytest.approx((0.069, 0.005, 0.02))


def test_a_models_own_prices_are_taken_by_its_name() -> None:
    prices = read_prices(Path("claude-haiku-4-5"))

    assert (prices.input, prices.cached_input, prices.cache_write, prices.output) == (1, 0.1, 1.25, 5)
    assert prices.name.startswith("claude-haiku-4-5, 20")


def test_input_that_enters_the_cache_can_have_a_price_of_its_own() -> None:
    prices = Prices(input=10, cached_input=1, output=20, cache_write=12)

    assert prices.cost([(1_000_000, 0)], 0).total == 12


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("input: 1\nouput: 2", "`cached_input` is missing.*`ouput` is not known"),
        ("- 1", "`input` is missing"),
        ("{", "not YAML"),
        ("input: -1", "`input`: .*, got -1"),
    ],
)
def test_a_file_of_prices_that_is_none_says_what_it_needs(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(text, encoding="utf-8")

    with pytest.raises(SettingsError, match=said):
        read_prices(file)


def test_the_page_needs_no_network_and_escapes_names(found: Simulation) -> None:
    cases = simulate_one(long_record(3, "<img src=x>"), [setting()])
    page = render_simulation(Simulation(found.rows, found.prices, 1, 1, tuple(cases)))

    assert "<svg" in page
    assert "<img" not in page
    assert "http" not in page.replace('http-equiv="Content', "")
    assert "<script" not in page


def test_a_page_can_say_that_nothing_could_be_compared() -> None:
    found = simulate([long_record(4)], [setting(window=256)], read_prices())

    assert "None of 1 conversation could be run" in render_simulation(found)


def test_a_thread_is_replayed_without_our_marks_and_without_calls_that_have_no_result() -> None:
    call = {"name": "read_tool_output", "args": {"handle": "h"}, "id": "c1", "type": "tool_call"}
    other = {**call, "id": "c2"}
    told = [
        marked(HumanMessage("Hello", id="h"), seq=0),
        AIMessage("", id="a", tool_calls=[call, other]),
        ToolMessage("text", tool_call_id="c1", name="read_tool_output", id="t"),
    ]

    record = record_of_thread("t-1", told, "travel")

    assert record.messages[0].additional_kwargs == {}
    assert [(one["id"], one["name"]) for one in record.messages[1].tool_calls] == [  # type: ignore[attr-defined]
        ("c1", "recorded_read_tool_output")
    ]


def talk(url: str, turns: int) -> None:
    with open_storage(url) as storage:
        graph = build_graph(travel, model=ScriptedModel(["fine " * 150] * turns), summarizer="offline", storage=storage)
        for turn in range(turns):
            given: Any = {"messages": f"question {turn}"}
            graph.invoke(given, {"configurable": {"thread_id": "t-1"}}, context=Context(window=5_500))


def test_the_command_takes_a_thread_of_the_database(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path}/own.db"
    talk(url, 4)

    arguments = ["--thread", "t-1", "--database", url, "--policy", "summarize", "--window", "6000", "--json"]
    code = main(["simulate", *arguments])

    told = json.loads(capsys.readouterr().out)
    assert (code, told["compared"], told["settings"][0]["calls"]) == (0, 1, 4)
    assert told["settings"][0]["prompt_tokens"] > 4 * 1_000  # the agent's instructions and tools are in every prompt


def test_a_thread_is_taken_without_the_branches_that_it_has_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path}/own.db"
    talk(url, 14)
    with open_storage(url) as storage:
        graph = build_graph(travel, model=ScriptedModel(["otherwise"]), summarizer="offline", storage=storage)
        fork(graph, "t-1", 1)
        graph.invoke({"messages": "another"}, {"configurable": {"thread_id": "t-1"}}, context=Context(window=5_500))

    main(["simulate", "--thread", "t-1", "--database", url, "--policy", "summarize", "--json"])
    simulated = json.loads(capsys.readouterr().out)
    main(["show", "t-1", "--database", url])

    with open_storage(url) as storage:
        assert "left branch" in storage.thread("t-1")._repr_html_()
    assert simulated["settings"][0]["calls"] == 1
    assert "on a branch that the thread has left" in capsys.readouterr().out


def test_the_command_prints_a_table_and_writes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, page = write(tmp_path / "r.jsonl", long_record(4)), tmp_path / "out.html"

    code = main(["simulate", str(file), "--policy", "summarize", "--window", "3000", "--html", str(page)])

    told = capsys.readouterr()
    assert code == 0
    assert "summarize" in told.out
    assert "1 of 1 conversation ran under every setting" in told.out
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "error: nothing to simulate"),
        (["none.jsonl"], 1, "error: none.jsonl: cannot be read"),
        (["none.jsonl", "--policy", "hope"], 2, "error: `policy` is 'hope'"),
        (["none.jsonl", "--price", "none.yaml"], 2, "error: cannot read 'none.yaml'"),
        (["none.jsonl", "--html", "no/such/folder.html"], 2, "error: cannot write"),
    ],
)
def test_what_cannot_be_simulated_is_one_sentence(
    arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", *arguments]) == code
    assert capsys.readouterr().err.startswith(said)


def test_the_command_takes_a_folder_and_says_what_it_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "r.jsonl", long_record(2))
    (tmp_path / "notes.jsonl").write_text('{"id": "n", "text": "a"}\n', encoding="utf-8")

    assert main(["simulate", str(tmp_path), "--policy", "summarize", "--window", "3000", "--jobs", "1"]) == 0
    assert "Left out: 1 of notes.jsonl (without `messages`)." in capsys.readouterr().err


def test_what_a_window_cannot_hold_is_told_once_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    large = replace(long_record(2, "large"), toolkit=Toolkit(system="Be kind. " * 900))
    file = write(tmp_path / "r.jsonl", long_record(2), large)

    assert main(["simulate", str(file), "--window", "2000", "--jobs", "1"]) == 0
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("window 2,000")]
    assert len(told) == 1
    assert "1 conversation refused; the first, large: `window` is 2,000 tokens" in told[0]


def test_a_window_that_nothing_fits_is_exit_code_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "r.jsonl", long_record(2))

    assert main(["simulate", str(file), "--window", "256", "--policy", "summarize"]) == 1
    told = capsys.readouterr()
    assert "error: no conversation ran under every setting: `window` is 256" in told.err
    assert told.out == ""
