"""The suite `constraints`, on conversations made for these tests."""

from pathlib import Path

import pytest

from benchmarks.suites import constraints
from benchmarks.suites.constraints import roomy
from benchmarks.suites.planted import WORDINGS, make_records, plant
from everthread.evals.suites import Options, Report
from everthread.memory.text.constraints import constraints_in
from everthread.window.tokens import counter_for
from recordings import RULE, long_record, write

pytestmark = pytest.mark.slow


def measured(path: Path, budget: int) -> Report:
    return constraints.run([path], Options(budget=budget), lambda done, total, name: None)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Report:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constraints, "_MADE", 1)
        patch.setattr(constraints, "_TURNS", 8)
        return measured(write(tmp_path_factory.mktemp("records") / "r.jsonl", long_record(7)), budget=1_000)


def test_pinned_constraints_are_in_every_prompt(kept: Report) -> None:
    assert (kept.figures["pinned.in_prompts"], kept.figures["pinned.always"]) == (1, 1)


def test_rules_that_the_recording_has_survive_a_small_window(kept: Report) -> None:
    assert kept.figures["found.always"] == 1


def test_the_baselines_of_constraints_lose_some_and_full_history_none(kept: Report) -> None:
    assert kept.figures["baseline.full_history.always"] == 1
    assert kept.figures["baseline.no_memory.always"] == 0


def test_a_lost_constraint_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constraints, "_MADE", 0)
    monkeypatch.setattr("everthread.window.compaction.constraints_in", lambda *_: [])

    report = measured(write(tmp_path / "r.jsonl", long_record(12)), budget=700)

    assert report.figures["found.always"] < 1


def test_a_planted_sentence_stands_in_an_early_message_and_nowhere_else() -> None:
    record, stated, category = plant(long_record(8), seed=3)

    ((message_id, sentence),) = stated.items()
    holders = [message.id for message in record.messages if sentence in str(message.text)]
    assert holders == [message_id]
    assert sentence in WORDINGS[category]


def test_some_planted_wordings_are_unknown_to_the_rules() -> None:
    wordings = [one for told in WORDINGS.values() for one in told]

    assert 0 < sum(bool(constraints_in(one)) for one in wordings) < len(wordings)


def test_made_conversations_are_the_same_for_one_seed() -> None:
    one, same, other = (next(make_records(1, 4, seed)).messages for seed in (1, 1, 2))

    assert one == same
    assert one != other


def test_a_roomy_window_leaves_what_was_asked_for_the_history() -> None:
    record = long_record(1)
    small, large = (roomy(record, history, counter_for("gpt-4.1")).window or 0 for history in (500, 1_500))

    assert large - small == 1_000


def test_rule_is_a_standing_instruction() -> None:
    assert constraints_in(RULE) == [RULE]
