"""Counting what calls cost, and asking before a limit is passed."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ModelRetryMiddleware
from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.tools import tool
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from everthread import Context, EverthreadMiddleware, Spend, build_graph, open_storage
from everthread.errors import SettingsError
from everthread.ledger import events
from everthread.models.scripted import ScriptedModel
from everthread.nodes.spending import amount_of
from everthread.spend.counters import Counters, Reservation
from everthread.spend.prices import read_price_list
from everthread.spend.usage import Usage
from everthread.state import namespaces
from everthread.state.records import items
from everthread.storage.erasure import erase
from everthread.storage.open import Storage
from everthread.storage.reader import Reader
from everthread.storage.spending import spend_rows
from small_agent import AGENT, CONFIG, calls, names

PRICES = """
date: 2026-01-02
models:
  offline: { input: 1000, cached_input: 100, cache_write: 2000, output: 4000, reasoning: 5000 }
"""
"""A thousand times what a real one costs: a hundred tokens of input are 10 cents."""


def reply(text: str = "Hello.", input_tokens: int = 100, output_tokens: int = 10, **details: int) -> AIMessage:
    usage = UsageMetadata(input_tokens=input_tokens, output_tokens=output_tokens, total_tokens=0)
    if details:
        cached, write = details.get("cached", 0), details.get("write", 0)
        usage["input_token_details"] = {"cache_read": cached, "cache_creation": write}
        usage["output_token_details"] = {"reasoning": details.get("reasoning", 0)}
    return AIMessage(text, usage_metadata=usage)


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    file = tmp_path / "prices.yaml"
    file.write_text(PRICES, encoding="utf-8")
    return file


Make = Callable[..., tuple[Any, ScriptedModel]]


@pytest.fixture(params=["graph", "middleware"])
def make(request: pytest.FixtureRequest, storage: Storage, prices: Path) -> Make:
    """Return what makes an agent on scripted replies: our graph, and somebody else's with our middleware."""

    def made(*replies: Any, summarizer: Any = "offline", **limits: Any) -> tuple[Any, ScriptedModel]:
        model, spend = ScriptedModel(replies), Spend(prices=prices, **limits)
        if request.param == "graph":
            return build_graph(AGENT, model=model, summarizer=summarizer, storage=storage, spend=spend), model
        middleware = EverthreadMiddleware(spend=spend, summarizer=summarizer, window=4_000, max_output_tokens=100)
        tools = list(AGENT.tools)[1:]
        stored: Any = {"checkpointer": storage.checkpointer, "store": storage.store}
        agent: Any = create_agent(model, tools, middleware=[middleware], **stored)
        return storage.guard(agent), model

    return made


USER: Any = {"configurable": {"thread_id": "t", "user_id": "ada"}}
DIALS = {"window": 4_000, "max_output_tokens": 100}


def run(graph: Any, given: Any, config: Any = USER) -> dict[str, Any]:
    sent = {"messages": [{"role": "user", "content": given}]} if isinstance(given, str) else given
    context = Context(user_id="ada", **DIALS) if "inject_memory" in graph.nodes else None
    answered = graph.invoke(sent, config, **({"context": context} if context else {}))
    assert isinstance(answered, dict)
    return answered


def spent(storage: Storage, user_id: str = "ada") -> dict[str, Any]:
    """Return the only counter of a user's day."""
    (record,) = [item.value for item in items(storage.store, namespaces.spent_by(user_id))]
    return dict(record)


def said(answered: dict[str, Any]) -> str:
    return str(answered["messages"][-1].text)


def test_a_call_is_counted_by_kind_of_tokens_for_user_thread_and_day(make: Make, storage: Storage) -> None:
    graph, _ = make(reply(input_tokens=100, output_tokens=20, cached=30, write=40, reasoning=5))

    run(graph, "Hello?")

    (thread,) = [item.value for item in items(storage.store, namespaces.spent_in("t"))]
    counted = spent(storage)["models"]["offline"]["reply"]
    assert counted == thread["models"]["offline"]["reply"]
    assert {name: counted[name] for name in ("calls", "input", "cached", "cache_write", "output", "reasoning")} == {
        "calls": 1,
        "input": 30,
        "cached": 30,
        "cache_write": 40,
        "output": 15,
        "reasoning": 5,
    }
    assert counted["cost"] == pytest.approx(0.03 + 0.003 + 0.08 + 0.06 + 0.025)
    assert (thread["open"], counted["counted"], counted["unpriced"]) == ({}, 0, 0)


def test_a_call_without_a_report_is_counted_by_us_and_marked(make: Make, storage: Storage) -> None:
    graph, _ = make("Hello.")

    run(graph, "Hello?")

    counted = spent(storage)["models"]["offline"]["reply"]
    assert counted["counted"] == 1
    assert counted["input"] > 10
    assert counted["output"] > 1
    assert [(one.by, one.purpose) for one in events(storage.store, "t") if one.event == "model_called"] == [
        ("count", "reply")
    ]


def test_a_report_of_the_reply_alone_has_our_count_of_the_prompt(make: Make, storage: Storage) -> None:
    graph, _ = make(reply(input_tokens=0, output_tokens=7))

    run(graph, "Hello?")

    counted = spent(storage)["models"]["offline"]["reply"]
    assert (counted["output"], counted["counted"]) == (7, 1)
    assert counted["input"] > 50


def test_a_run_stops_before_the_call_that_would_pass_a_limit(make: Make, storage: Storage) -> None:
    graph, model = make(reply(), user_day=0.05)

    answered = run(graph, "Hello?")

    (interrupt,) = answered["__interrupt__"]
    assert len(model.prompts) == 0
    assert interrupt.value["type"] == "spend"
    assert interrupt.value["limits"] == [{"limit": "user_day", "allowed": 0.05, "spent": 0.0, "under_way": 0.0}]
    assert interrupt.value["next_call"]["most"] > 0.05
    assert "0 of 0.05 USD are spent today" in interrupt.value["summary"] or "0.00 of 0.05" in interrupt.value["summary"]
    assert "prompt_assembled" not in names(storage)


@pytest.mark.parametrize("answer", [True, "yes", 20, "20.00", "$20", "20 usd", {"grant": 20}])
def test_a_grant_lets_the_call_be_made(make: Make, storage: Storage, answer: object) -> None:
    graph, model = make(reply("Hello, Ada."), thread=0.05, user_day=0.05)
    run(graph, "Hello?")

    answered = run(graph, Command(resume=answer))

    assert said(answered) == "Hello, Ada."
    assert len(model.prompts) == 1
    assert names(storage).count("spend_granted") == 1


@pytest.mark.parametrize(
    "answer",
    [
        False,
        "no",
        "hm",
        "50 yen",
        "500 JPY",
        "€50",
        "5 not",
        0,
        -1,
        float("inf"),
        pytest.param(10**400, id="huge"),
        {"grant": "x"},
    ],
)
def test_a_refusal_ends_the_turn_without_a_call(make: Make, storage: Storage, answer: object) -> None:
    graph, model = make(reply(), thread=0.05)
    run(graph, "Hello?")

    answered = run(graph, Command(resume=answer))

    assert said(answered).startswith("I stopped here: 0.00 of 0.05 USD are spent in this thread")
    assert "__interrupt__" not in answered
    assert len(model.prompts) == 0
    assert graph.get_state(USER).next == ()


@pytest.mark.parametrize(
    ("text", "amount"),
    [("1,000", 1_000), ("1,234.50", 1_234.5), ("USD 1,000,000", 1_000_000), ("0,50", 0.5), ("2,5", 2.5)],
)
def test_a_comma_ahead_of_three_digits_parts_thousands(text: str, amount: float) -> None:
    assert amount_of(text, "USD") == amount


def test_a_sign_names_the_currency_of_the_prices_or_no_amount() -> None:
    assert [amount_of(text, "EUR") for text in ("€5", "5 EUR", "5", "$5")] == [5, 5, 5, None]
    assert amount_of("$5", "CAD") == 5


def test_after_a_refusal_the_next_turn_asks_again(make: Make) -> None:
    graph, model = make(reply(), thread=0.05)
    run(graph, "Hello?")
    run(graph, Command(resume=False))

    answered = run(graph, "And now?")

    assert answered["__interrupt__"]
    assert len(model.prompts) == 0


def test_a_grant_that_is_too_small_is_asked_about_again(make: Make, storage: Storage) -> None:
    graph, model = make(reply(), thread=0.05)
    run(graph, "Hello?")

    asked = run(graph, Command(resume=0.01))
    answered = run(graph, Command(resume=20))

    granted = [one.amounts for one in events(storage.store, "t") if one.event == "spend_granted"]
    assert granted == [{"thread": 0.01}, {"thread": 20.0}]

    assert asked["__interrupt__"][0].value["limits"][0]["allowed"] == pytest.approx(0.06)
    assert said(answered) == "Hello."
    assert len(model.prompts) == 1


def test_a_grant_counts_once_though_its_task_is_run_again_on_another_day(
    make: Make, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, _ = make(reply(), thread=0.05)
    run(graph, "Hello?")
    run(graph, Command(resume=0.01))

    monkeypatch.setattr("everthread.spend.counters._today", lambda: "2099-01-01")
    run(graph, Command(resume=20))

    days = storage.store.search(namespaces.spent_in("t"), limit=10)
    assert sorted(sum(day.value["granted"].values()) for day in days) == [0.01, 20.0]


def test_without_asking_the_turn_ends_at_the_limit(make: Make, storage: Storage) -> None:
    graph, model = make(reply(), thread=0.05, asks=False)

    answered = run(graph, "Hello?")

    assert said(answered).startswith("I stopped here")
    assert len(model.prompts) == 0
    assert [one.by for one in events(storage.store, "t") if one.event == "spend_refused"] == ["limit"]


def test_what_was_spent_on_other_threads_counts_for_the_day(make: Make) -> None:
    graph, model = make(reply(output_tokens=1_000), reply(), user_day=5.0)
    run(graph, "Hello?")

    answered = run(graph, "Hello?", {"configurable": {"thread_id": "t-2", "user_id": "ada"}})

    assert answered["__interrupt__"][0].value["limits"][0]["spent"] == pytest.approx(4.1)
    assert len(model.prompts) == 1


def test_another_user_has_a_day_of_their_own(storage: Storage, prices: Path) -> None:
    model = ScriptedModel([reply(output_tokens=2_000), reply()])
    graph = build_graph(AGENT, model=model, storage=storage, spend=Spend(user_day=9.0, prices=prices))
    for user_id, thread_id in (("ada", "t-1"), ("bob", "t-2")):
        config: Any = {"configurable": {"thread_id": thread_id}}
        answered = graph.invoke({"messages": "Hello?"}, config, context=Context(user_id=user_id, **DIALS))
        assert "__interrupt__" not in answered

    assert (len(model.prompts), spent(storage, "bob")["user_id"]) == (2, "bob")


def test_a_limit_may_be_reached_in_the_middle_of_a_turn(make: Make) -> None:
    look = calls({"name": "look", "args": {"n": 1}, "id": "c-1"}).model_copy(
        update={"usage_metadata": reply(output_tokens=2_000).usage_metadata}
    )
    graph, model = make(look, reply("Done."), thread=9.0)

    asked = run(graph, "Look.")
    answered = run(graph, Command(resume=True))

    assert asked["__interrupt__"]
    assert said(answered) == "Done."
    assert len(model.prompts) == 2


def test_a_call_that_the_provider_refuses_costs_nothing(make: Make, storage: Storage) -> None:
    graph, _ = make(RuntimeError("Error code: 429 - rate limit"), reply())
    with pytest.raises(Exception, match="429"):
        run(graph, "Hello?")

    assert spent(storage)["open"] == {}

    run(graph, None)
    assert spent(storage)["models"]["offline"]["reply"]["calls"] == 1


def test_a_call_that_timed_out_counts_at_its_most(make: Make, storage: Storage) -> None:
    graph, _ = make(TimeoutError("Request timed out."))
    with pytest.raises(Exception, match="timed out"):
        run(graph, "Hello?")

    (call,) = spent(storage)["open"].values()
    assert call["most"] > 0.4  # the reply reserve alone


async def test_it_asks_and_grants_under_ainvoke(storage: Storage, prices: Path) -> None:
    model = ScriptedModel([reply("Hello, Ada.")])
    graph = build_graph(AGENT, model=model, storage=storage, spend=Spend(thread=0.05, prices=prices))

    asked = await graph.ainvoke({"messages": "Hello?"}, CONFIG, context=Context(**DIALS))
    answered = await graph.ainvoke(Command(resume=True), CONFIG, context=Context(**DIALS))

    assert asked["__interrupt__"]
    assert said(answered) == "Hello, Ada."


def test_no_spend_writes_nothing(storage: Storage) -> None:
    graph = build_graph(AGENT, model=ScriptedModel([reply()]), storage=storage)

    graph.invoke({"messages": "Hello?"}, CONFIG)

    assert items(storage.store, namespaces.spent_by("local")) == []
    assert "model_called" not in names(storage)


def test_what_was_spent_in_another_currency_is_counted_apart(storage: Storage, prices: Path, tmp_path: Path) -> None:
    euros = tmp_path / "euros.yaml"
    euros.write_text(f"currency: EUR\n{PRICES}", encoding="utf-8")
    for file in (prices, euros):
        graph = build_graph(AGENT, model=ScriptedModel([reply()]), storage=storage, spend=Spend(prices=file))
        run(graph, "Hello?")

    rows = spend_rows(Reader(storage.tables), ["day"], read_price_list(prices))

    assert {row.currency: row.cost for row in rows} == pytest.approx({"EUR": 0.14, "USD": 0.14})


def test_a_limit_knows_amounts_of_its_own_currency_only(storage: Storage) -> None:
    dollars, euros = Counters(storage.store, "ada", "t"), Counters(storage.store, "ada", "t", "EUR")
    limits = {"thread": 1.0, "user_day": 1.0}

    made = [one.reserve(limits, 0.9, purpose="reply", model="offline") for one in (dollars, euros, euros)]

    assert [isinstance(one, Reservation) for one in made] == [True, True, False]


def test_a_limit_counts_what_an_older_release_recorded_that_day_in_its_currency(storage: Storage) -> None:
    euros = Counters(storage.store, "ada", "t", "EUR")
    euros.reserve({}, 0.9, purpose="reply", model="offline")
    (record,) = items(storage.store, namespaces.spent_by("ada"))
    storage.store.delete(record.namespace, record.key)
    storage.store.put(record.namespace, record.key[:10], record.value)  # An older release named it so.

    assert not isinstance(euros.reserve({"user_day": 1.0}, 0.9, purpose="reply", model="offline"), Reservation)


def test_a_limit_needs_a_price(storage: Storage) -> None:
    model = ScriptedModel([])
    model_without: Any = model.bind()
    assert build_graph(AGENT, model=model_without, storage=storage, spend=Spend(thread=1.0))
    file = Path(__file__)
    with pytest.raises(SettingsError, match=r"not YAML|models"):
        build_graph(AGENT, model=model, storage=storage, spend=Spend(thread=1.0, prices=file))


class Named(ScriptedModel):
    """A scripted model with a name of its own."""

    model_name: str = ""

    def __init__(self, name: str, *replies: Any) -> None:
        super().__init__(replies)
        self.model_name = name


def test_a_fallback_that_is_dearer_counts_ahead_of_the_call(storage: Storage, prices: Path) -> None:
    prices.write_text(PRICES + "  cheap: { input: 1, output: 1 }\n", encoding="utf-8")
    model: Any = Named("cheap", ConnectionError("down")).with_fallbacks([Named("offline", reply())])

    graph = build_graph(AGENT, model=model, storage=storage, spend=Spend(prices=prices, thread=0.10))

    assert run(graph, "Hello?")["__interrupt__"][0].value["type"] == "spend"


SUMMARY = "## Goal\n- A trip [1].\n## Decisions\n- The night train [1]."
"""What a summariser says of the turns below."""
FOLDING = {**DIALS, "context_limit": 2, "keep_last_turns": 1}


def talk(storage: Storage, spend: Spend, summarizer: ScriptedModel, *, turns: int = 3) -> list[str]:
    replies = [reply(f"The night train it is, number {number}.") for number in range(turns)]
    graph = build_graph(AGENT, model=ScriptedModel(replies), summarizer=summarizer, storage=storage, spend=spend)
    for number in range(turns):
        text = f"I want to go to Rome for trip {number} by train."
        graph.invoke({"messages": text}, CONFIG, context=Context(user_id="ada", **FOLDING))
    return [one.writer for one in events(storage.store, "t") if one.event == "compacted"]


def test_the_calls_of_a_summariser_are_counted_apart(storage: Storage, prices: Path) -> None:
    summarizer = ScriptedModel([reply(SUMMARY, 300, 30)])

    talk(storage, Spend(prices=prices), summarizer)

    by_purpose = spent(storage)["models"]["offline"]
    assert {name: (one["calls"], one["input"], one["output"]) for name, one in by_purpose.items()} == {
        "reply": (3, 300, 30),
        "summarize": (1, 300, 30),
    }


def test_a_summary_that_would_pass_a_limit_is_written_by_rules_and_says_why(storage: Storage, prices: Path) -> None:
    summarizer = ScriptedModel([])

    # Three replies fit, with the reserve of the third; the reply reserve of a summariser does not.
    written = talk(storage, Spend(thread=4.0, prices=prices), summarizer)

    refused = [one for one in events(storage.store, "t") if one.event == "spend_refused"]
    assert written == ["extractive"]
    assert summarizer.prompts == []
    assert [(one.purpose, one.by) for one in refused] == [("summarize", "limit")]
    assert "of 4.00 USD are spent in this thread" in refused[0].reason
    assert "fallback_used" in names(storage)


def test_no_model_is_called_behind_a_refusal(storage: Storage, prices: Path) -> None:
    model = ScriptedModel([])
    reader = ScriptedModel([])
    spend = Spend(thread=0.05, prices=prices)
    graph = build_graph(AGENT, model=model, summarizer=reader, storage=storage, spend=spend)
    dials = Context(**DIALS, distillation="turn", distiller="model")
    graph.invoke({"messages": "I prefer trains."}, CONFIG, context=dials)

    graph.invoke(Command(resume=False), CONFIG, context=dials)

    assert (model.prompts, reader.prompts) == ([], [])
    assert {one.by for one in events(storage.store, "t") if one.event == "spend_refused"} == {"user"}


def test_a_task_that_runs_again_after_its_grant_does_not_grant_twice(storage: Storage, prices: Path) -> None:
    model = ScriptedModel([RuntimeError("Error code: 500 - server error"), reply("Hello, Ada.")])
    graph = build_graph(AGENT, model=model, storage=storage, spend=Spend(thread=0.05, prices=prices))
    dials = Context(**DIALS)
    graph.invoke({"messages": "Hello?"}, CONFIG, context=dials)
    with pytest.raises(Exception, match="500"):
        graph.invoke(Command(resume=20), CONFIG, context=dials)

    answered = graph.invoke(None, CONFIG, context=dials)

    (thread,) = [item.value for item in items(storage.store, namespaces.spent_in("t"))]
    assert said(answered) == "Hello, Ada."
    assert list(thread["granted"].values()) == [20.0]


def test_a_fork_counts_on(storage: Storage, prices: Path) -> None:
    graph = build_graph(AGENT, model=ScriptedModel([reply(), reply()]), storage=storage, spend=Spend(prices=prices))
    graph.invoke({"messages": "Hello?"}, CONFIG)
    before = next(one for one in graph.get_state_history(CONFIG) if one.next == ("model",) or "model" in one.next)

    graph.invoke(None, before.config)

    assert spent(storage, "local")["models"]["offline"]["reply"]["calls"] == 2


def test_a_forgotten_thread_leaves_the_amount_of_the_day_and_no_name(tmp_path: Path, prices: Path) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        graph = build_graph(AGENT, model=ScriptedModel([reply()]), storage=storage, spend=Spend(prices=prices))
        graph.invoke(
            {"messages": "Hello?"}, {"configurable": {"thread_id": "t-secret"}}, context=Context(user_id="ada")
        )

        receipt = erase(storage, thread_id="t-secret")

        assert receipt.is_verified
        assert spent(storage)["models"]["offline"]["reply"]["calls"] == 1
        assert items(storage.store, namespaces.spent_in("t-secret")) == []
    assert b"t-secret" not in (tmp_path / "a.db").read_bytes()


def test_a_forgotten_user_leaves_no_counter(tmp_path: Path, prices: Path) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        graph = build_graph(AGENT, model=ScriptedModel([reply()]), storage=storage, spend=Spend(prices=prices))
        graph.invoke({"messages": "Hello?"}, CONFIG, context=Context(user_id="ada"))

        receipt = erase(storage, user_id="ada")

        assert receipt.is_verified
        assert items(storage.store, namespaces.spent_by("ada")) == items(storage.store, namespaces.spent_in("t")) == []


async def test_the_middleware_asks_and_grants_under_ainvoke(storage: Storage, prices: Path) -> None:
    model = ScriptedModel([reply("Hello, Ada.")])
    middleware = EverthreadMiddleware(spend=Spend(thread=0.05, prices=prices), window=4_000)
    stored: Any = {"checkpointer": storage.checkpointer, "store": storage.store}
    agent: Any = create_agent(model, [], middleware=[middleware, ModelRetryMiddleware()], **stored)

    asked = await agent.ainvoke({"messages": [{"role": "user", "content": "Hello?"}]}, USER)
    answered = await agent.ainvoke(Command(resume=True), USER)

    assert asked["__interrupt__"]
    assert said(answered) == "Hello, Ada."


def test_a_new_message_at_a_limit_asks_again_and_is_answered_after_the_grant(storage: Storage, prices: Path) -> None:
    model = ScriptedModel([reply("Both.")])
    graph = build_graph(AGENT, model=model, storage=storage, spend=Spend(thread=0.05, prices=prices))
    run(graph, "One?")

    asked = run(graph, "Two?")
    answered = run(graph, Command(resume=20))

    assert asked["__interrupt__"]
    assert said(answered) == "Both."
    assert [one.text for one in model.prompts[0] if one.type == "human"] == ["One?", "Two?"]


def test_calls_inside_a_tool_of_another_graph_count_on_its_thread(storage: Storage, prices: Path) -> None:
    inner = build_graph(AGENT, model=ScriptedModel([reply()]), storage=storage, spend=Spend(prices=prices))

    @tool
    def consult(question: str) -> str:
        """Ask another agent."""
        return said(inner.invoke({"messages": question}))

    outer = ScriptedModel([calls({"name": "consult", "args": {"question": "Hello?"}, "id": "c-1"}), "Done."])
    stored: Any = {"checkpointer": storage.checkpointer, "store": storage.store}
    agent: Any = create_agent(outer, [consult], **stored)

    agent.invoke({"messages": [{"role": "user", "content": "Ask."}]}, USER)

    assert [item.value["thread_id"] for item in items(storage.store, namespaces.spent_in("t"))] == ["t"]
    assert spent(storage)["models"]["offline"]["reply"]["calls"] == 1


def test_the_calls_of_a_judge_are_counted(storage: Storage, prices: Path) -> None:
    note = {"name": "save_memory_note", "args": {"text": "Prefers trains.", "keywords": ["trains"]}, "id": "c-1"}
    judge = ScriptedModel([reply("{}")])
    model = ScriptedModel([calls(note), reply()])
    graph = build_graph(AGENT, model=model, summarizer=judge, storage=storage, spend=Spend(prices=prices))

    graph.invoke({"messages": "I prefer trains."}, CONFIG, context=Context(user_id="ada", guard="model"))

    assert spent(storage)["models"]["offline"]["guard_note"]["calls"] == len(judge.prompts) == 1


def test_a_refusal_holds_when_the_task_runs_again_and_there_is_money(storage: Storage, prices: Path) -> None:
    model = ScriptedModel([])
    graph = build_graph(AGENT, model=model, storage=storage, spend=Spend(thread=0.05, prices=prices))
    (interrupt,) = run(graph, "Hello?")["__interrupt__"]
    Counters(storage.store, "ada", "t").grant({"thread": 20.0}, "by hand")

    answered = run(graph, Command(resume={interrupt.id: False}))

    assert said(answered).startswith("I stopped here")
    assert model.prompts == []


def test_a_call_is_settled_once(storage: Storage) -> None:
    counters = Counters(storage.store, "ada", "t")
    made: Any = counters.reserve({}, 1.0, purpose="reply", model="m")
    for _ in range(2):
        counters.settle(made, Usage(input=5), 0.5, model="m")

    assert spent(storage)["models"]["m"]["reply"]["calls"] == 1
    assert spent(storage)["open"] == {}


def test_threads_that_reserve_at_once_pass_no_limit(storage: Storage) -> None:
    def reserve(number: int) -> bool:
        counters = Counters(storage.store, "ada", f"t-{number}")
        return isinstance(counters.reserve({"user_day": 5.0}, 1.0, purpose="reply", model="m"), Reservation)

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(reserve, range(24)))

    assert sum(made) == len(spent(storage)["open"]) == 5


def test_a_call_that_costs_nothing_is_made_beyond_a_limit(storage: Storage) -> None:
    counters = Counters(storage.store, "ada", "t")
    paid: Any = counters.reserve({"thread": 2.0}, 2.0, purpose="reply", model="m")
    counters.settle(paid, Usage(output=5), 3.0, model="m")  # longer than its reserve

    assert isinstance(counters.reserve({"thread": 2.0}, 0.0, purpose="reply", model="free"), Reservation)


def test_a_store_of_somebody_else_counts_too() -> None:
    store: Any = InMemoryStore()
    counters = Counters(store, "ada", "t")
    made: Any = counters.reserve({"thread": 2.0}, 1.0, purpose="reply", model="m")

    over, _ = cast(Any, counters.reserve({"thread": 2.0}, 1.5, purpose="reply", model="m"))
    counters.settle(made, Usage(input=5), 0.5, model="m")

    assert (over[0].limit, over[0].under_way) == ("thread", 1.0)
    assert isinstance(counters.reserve({"thread": 2.0}, 1.5, purpose="reply", model="m"), Reservation)
