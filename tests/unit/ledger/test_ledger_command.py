"""`everthread ledger` and `everthread why --refetches`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from everthread import open_storage
from everthread.cli import main
from everthread.ledger import EVENTS, record
from everthread.ledger.events import Evicted, Injected, PromptAssembled, Refetch
from everthread.state import namespaces

EVICTED = Evicted(policy="salience", reason="over budget", message_ids=["a"], tokens_before=9, tokens_after=5, budget=6)
REFETCH = Refetch(why="repeated_call", message_ids=["a"], left="evicted", left_turn=1)

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    url = f"sqlite:///{tmp_path}/a.db"
    with open_storage(url) as storage:
        session = {"thread_id": "t", "user_id": "ada", "turns": 2, "last_activity": "2026-01-01T00:00:00+00:00"}
        storage.store.put(namespaces.SESSIONS, "t", session, index=False)
        record(storage.store, "t", [EVICTED, REFETCH, Injected()], write=lambda _: None, turn=2)

    def command(*arguments: str) -> tuple[int, str, str]:
        return main([*arguments, "--database", url]), *capsys.readouterr()

    return command


def test_a_line_has_the_parts_of_a_prompt_that_are_not_empty(run: Run, tmp_path: Path) -> None:
    prompt = PromptAssembled(
        window=8_000,
        budget=7_000,
        tokens=1_250,
        breakdown={"system": 50, "notes": 0, "history": 1_200},
        cacheable_tokens=0,
        accuracy="exact",
        messages=3,
    )
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        record(storage.store, "t", [prompt], write=lambda _: None, turn=3)

    _, out, _ = run("ledger", "t", "--kind", "prompt_assembled")

    assert "tokens=1,250 breakdown=system:50+history:1,200" in out


def test_each_line_of_json_is_an_event(run: Run) -> None:
    _, out, _ = run("ledger", "t", "--json")

    told = [EVENTS.validate_json(line) for line in out.splitlines()]
    assert [event.event for event in told] == ["evicted", "regret", "injected"]


def test_kinds_and_the_newest_can_be_chosen(run: Run) -> None:
    _, out, _ = run("ledger", "t", "--kind", "evicted", "--kind", "regret", "--limit", "1")

    assert "regret  why=repeated_call" in out
    assert len(out.splitlines()) == 1


def test_the_schema_is_one_document(run: Run) -> None:
    _, out, _ = run("ledger", "--schema")

    assert "prompt_assembled" in json.loads(out)["discriminator"]["mapping"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("ledger",), "which thread?"),
        (("ledger", "t", "--kind", "evict"), "unknown kind of event 'evict'"),
        (("ledger", "nowhere"), "no thread 'nowhere'"),
        (("why", "x"), "which thread?"),
        (("why", "--thread", "t"), "say what to explain"),
        (("why", "x", "--refetches", "--thread", "t"), "either `everthread why TEXT"),
    ],
)
def test_a_wrong_use_says_what_to_do(run: Run, arguments: tuple[str, ...], says: str) -> None:
    code, out, err = run(*arguments)

    assert code != 0
    assert says in err
    assert out == ""


def test_refetches_are_counted_by_reason(run: Run) -> None:
    _, out, _ = run("why", "--refetches", "--thread", "t", "--json")

    told: dict[str, Any] = json.loads(out)
    assert (told["left"], told["refetches"], told["by_reason"]["repeated_call"]) == (1, 1, 1)
