"""`spend`, and limits in `chat`."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata

from everthread import Context, Spend, build_graph, open_storage
from everthread.agents import travel
from everthread.cli import main
from everthread.ledger import record
from everthread.ledger.events import SpendGranted
from everthread.models.scripted import ScriptedModel
from everthread.spend.counters import Counters
from everthread.state import namespaces
from everthread.storage.open import Storage

PRICES = "date: 2026-01-02\nmodels:\n  offline: { input: 1000, output: 4000 }\n"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("prices.yaml").write_text(PRICES, encoding="utf-8")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def command(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return command


def reply(text: str = "Hello.", input_tokens: int = 100, output_tokens: int = 10, **about: Any) -> AIMessage:
    usage = UsageMetadata(input_tokens=input_tokens, output_tokens=output_tokens, total_tokens=0)
    return AIMessage(text, usage_metadata=usage, response_metadata=about)


def talk(storage: Storage, user_id: str, thread_id: str, *replies: Any, spend: Spend | None) -> None:
    model = ScriptedModel(replies)
    graph = build_graph(travel, model=model, summarizer="offline", storage=storage, spend=spend)
    config: Any = {"configurable": {"thread_id": thread_id}}
    for _ in replies:
        graph.invoke({"messages": "Hello?"}, config, context=Context(user_id=user_id))


@pytest.fixture
def _spent() -> None:
    counting = Spend(prices="prices.yaml")
    with open_storage("sqlite:///everthread.db") as storage:
        talk(storage, "ada", "t-1", reply(), reply(), spend=counting)
        talk(storage, "ada", "t-2", reply(), spend=counting)
        talk(storage, "bob", "t-3", "No report.", spend=counting)


@pytest.mark.usefixtures("_spent")
@pytest.mark.parametrize(
    ("by", "calls"),
    [
        ("user", [("ada", 3), ("bob", 1)]),
        ("thread", [("t-1", 2), ("t-2", 1), ("t-3", 1)]),
        ("model", [("offline", 4)]),
        ("purpose", [("reply", 4)]),
    ],
)
def test_calls_are_added_up_by_what_one_asks_for(run: Run, by: str, calls: list[tuple[str, int]]) -> None:
    code, out, err = run("spend", "--by", by, "--json")

    told = json.loads(out)
    assert (code, err, told["by"]) == (0, "", [by])
    assert [(row[by], row["calls"]) for row in told["rows"]] == calls


@pytest.mark.usefixtures("_spent")
def test_one_user_and_one_thread_can_be_picked(run: Run) -> None:
    _, of_user, _ = run("spend", "--user", "ada", "--by", "user,day,model", "--json")
    _, of_thread, _ = run("spend", "--thread", "t-1", "--by", "user", "--json")

    (row,) = json.loads(of_user)["rows"]
    assert (row["user"], row["calls"], row["input"], row["output"]) == ("ada", 3, 300, 30)
    assert row["cost"] == pytest.approx(0.42)
    assert [one["calls"] for one in json.loads(of_thread)["rows"]] == [2]


@pytest.mark.usefixtures("_spent")
def test_a_table_shows_cost_and_says_what_is_our_own_count(run: Run) -> None:
    code, out, err = run("spend", "--by", "user")

    assert code == 0
    assert "0.4200 USD" in out
    assert "1 call whose provider reports no tokens; these are our own count" in err


@pytest.mark.usefixtures("_spent")
@pytest.mark.parametrize("models", [{}, {"models": []}, {"models": {"m": {"reply": {"calls": "2"}}}}])
def test_a_damaged_counter_hides_no_other_one(
    run: Run, caplog: pytest.LogCaptureFixture, models: dict[str, Any]
) -> None:
    whole = run("spend", "--json")[1]
    with open_storage("sqlite:///everthread.db") as storage:
        storage.store.put(namespaces.spent_by("eve"), "2026-01-02", {"user_id": "eve", "open": {}, **models})

    assert run("spend", "--json")[:2] == (0, whole)
    assert "the record '2026-01-02' of `users.eve.spend` cannot be read" in caplog.text
    assert "'2026-01-02' of `users.eve.spend`" in run("doctor")[1]


def test_a_call_that_was_never_answered_is_told_apart(run: Run) -> None:
    with open_storage("sqlite:///everthread.db") as storage:
        talk(storage, "ada", "t-1", reply(), spend=Spend(prices="prices.yaml"))
        Counters(storage.store, "ada", "t-1").reserve({}, 0.5, purpose="reply", model="offline")

    _, out, err = run("spend", "--by", "user,model")
    _, as_json, _ = run("spend", "--by", "user,model", "--json")

    (row,) = json.loads(as_json)["rows"]
    assert (row["calls"], row["unanswered"], row["unanswered_most"]) == (1, 1, 0.5)
    assert "1 call under way or never answered, at most 0.5000 USD more" in err
    assert "0.1400 USD" in out


def test_without_counters_the_kept_replies_tell(run: Run) -> None:
    with open_storage("sqlite:///everthread.db") as storage:
        named = reply(
            model_name="gpt-5-mini-2025-08-07", model_provider="openai", finish_reason="stop", input_tokens=1_000_000
        )
        talk(storage, "ada", "t-1", named, reply(), spend=None)

    _, out, _ = run("spend", "--by", "user,model", "--json")
    _, _, err = run("spend")

    rows = {row["model"]: row for row in json.loads(out)["rows"]}
    assert rows["gpt-5-mini-2025-08-07"]["cost"] == pytest.approx(0.25002)
    assert (rows["unknown"]["unpriced"], rows["unknown"]["from_replies"]) == (1, 1)
    assert "2 calls of agents without `Spend`, by the replies that were kept" in err


def test_a_user_whose_threads_are_erased_is_still_in_the_sum(run: Run) -> None:
    with open_storage("sqlite:///everthread.db") as storage:
        talk(storage, "ada", "t-1", reply(), spend=Spend(prices="prices.yaml"))
    assert run("forget", "--thread", "t-1", "--yes")[0] == 0

    _, out, _ = run("spend", "--by", "user", "--json")

    assert [(row["user"], row["calls"]) for row in json.loads(out)["rows"]] == [("ada", 1)]


@pytest.mark.parametrize("others", [(), ("t-2",)])
def test_sums_by_thread_say_what_erased_threads_took(others: tuple[str, ...], run: Run) -> None:
    with open_storage("sqlite:///everthread.db") as storage:
        for thread in ("t-1", *others):
            talk(storage, "ada", thread, reply(), spend=Spend(prices="prices.yaml"))
    assert run("forget", "--thread", "t-1", "--yes")[0] == 0

    _, _, err = run("spend", "--by", "thread")

    assert err.strip() == "1 call of threads that are erased since; `--by user` has them too"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--by", "week"), "`--by` takes user, day, model, thread, purpose, got 'week'"),
        (("--by", ","), "`--by` is empty"),
        (("--thread", "t-9"), "there is no thread 't-9'"),
    ],
)
def test_what_cannot_be_shown_is_one_sentence(run: Run, arguments: tuple[str, ...], says: str) -> None:
    open_storage("sqlite:///everthread.db").close()

    code, out, err = run("spend", *arguments)

    assert code != 0
    assert out == ""
    assert says in err


@pytest.fixture
def chat(run: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str, str]]:
    def talked(model: ScriptedModel, *lines: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        monkeypatch.setattr("everthread.cli.chat.resolve", lambda name: model)
        return run("chat", "--thread", "t", "--window", "8000", "--spend", "thread=0.05,prices=prices.yaml")

    return talked


@pytest.mark.parametrize("answer", ["yes", "20", "20.00 USD"])
def test_chat_asks_and_a_grant_goes_on(chat: Callable[..., tuple[int, str, str]], answer: str) -> None:
    code, out, _ = chat(ScriptedModel([reply("Hello, Ada.")]), "hi", answer)

    assert code == 0
    assert "0.00 of 0.05 USD are spent in this thread, and the next call costs up to" in out
    assert "Hello, Ada." in out


@pytest.mark.parametrize("answer", ["no", "", "perhaps"])
def test_chat_shows_the_reply_of_a_turn_that_is_refused(chat: Callable[..., tuple[int, str, str]], answer: str) -> None:
    model = ScriptedModel([])

    code, out, _ = chat(model, "hi", answer)

    assert (code, model.prompts) == (0, [])
    assert "I stopped here: 0.00 of 0.05 USD are spent in this thread" in out
    assert "Nothing more was asked of the model." in out


def test_limits_that_cannot_be_read_are_refused_before_a_file_is_made(run: Run) -> None:
    code, _, err = run("chat", "--agent", "travel", "--spend", "2.00")

    assert code == 2
    assert "`--spend` takes limits such as `user_day=2.00,thread=1.00`, got '2.00'" in err
    assert not Path("everthread.db").exists()


@pytest.mark.usefixtures("_spent")
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "nothing was spent since 2999-01-31"),
        (["--user", "ada"], "user 'ada' has spent nothing since 2999-01-31"),
    ],
)
def test_a_day_to_come_is_named_with_what_was_spent_since(run: Run, arguments: list[str], sentence: str) -> None:
    assert run("spend", "--since", "2999-01-31", *arguments) == (0, "", f"{sentence}\n")


def test_calls_that_reported_no_usage_are_not_nothing(run: Run) -> None:
    with open_storage("sqlite:///everthread.db") as storage:
        talk(storage, "ada", "t-1", "Hello.", "Hello again.", spend=None)

    silent = "no usage was reported for 2 calls; `Spend` counts the tokens of such calls\n"
    assert run("spend", "--thread", "t-1") == (0, "", silent)
    assert run("spend", "--user", "bob") == (0, "", "user 'bob' has spent nothing\n")


def test_a_day_that_is_none_is_refused(run: Run) -> None:
    refused = "error: `--since` must be a day such as 2026-01-31, got 'yesterday'\n"

    assert run("spend", "--since", "yesterday") == (2, "", refused)


def test_the_ledger_prints_what_was_granted(run: Run) -> None:
    with open_storage("sqlite:///everthread.db") as storage:
        talk(storage, "ada", "t-1", reply(), spend=None)
        record(storage.store, "t-1", [SpendGranted(amounts={"thread": 0.25})], turn=1)

    code, out, _ = run("ledger", "t-1", "--kind", "spend_granted")

    assert (code, out.split("spend_granted  ")[1]) == (0, "amounts=thread:0.25 currency=USD\n")
