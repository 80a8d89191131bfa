"""The graph from end to end with a scripted model and a real database."""

import re
import threading
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.types import Command

from conversation import call
from everthread import Context, open_storage
from everthread.errors import BudgetError, ModelError, SettingsError
from everthread.ledger import events
from everthread.models.scripted import ScriptedModel
from everthread.state import namespaces
from everthread.state.marks import marks
from everthread.storage.open import Storage
from everthread.storage.transcript import transcript
from everthread.window.encoding import Encoding
from small_agent import CONFIG, ask, calls, graph_of, names


def test_a_turn_is_answered(storage: Storage) -> None:
    graph, model = graph_of(storage, "hello")

    result = ask(graph, "hi")

    assert [message.text for message in result["messages"]] == ["hi", "hello"]
    assert [message.type for message in model.prompts[0]] == ["system", "human"]


def test_a_turn_that_fits_skips_the_nodes_that_would_do_nothing(storage: Storage) -> None:
    graph, _ = graph_of(storage, calls(call("look", "c", n=2)), "found")

    steps = [next(iter(part)) for part in graph.stream({"messages": "hi"}, CONFIG, stream_mode="updates")]

    assert steps == ["inject_memory", "model", "tools", "model"]


@pytest.mark.parametrize(
    "message", ["hi", ("user", "hi"), {"role": "user", "content": "hi"}, HumanMessage("hi")], ids=str
)
def test_a_new_message_goes_straight_to_its_node_however_it_is_written(storage: Storage, message: Any) -> None:
    graph, _ = graph_of(storage, "hello", "there")
    ask(graph, "first")

    given = graph.invoke({"messages": message}, CONFIG)

    saved = list(graph.get_state_history(CONFIG))
    assert [one.next for one in saved[:3]] == [(), ("model",), ("inject_memory",)]
    assert [one.content for one in given["messages"]] == ["first", "hello", "hi", "there"]
    assert given["messages"] == saved[0].values["messages"]


def test_a_message_with_an_id_of_its_own_is_looked_up_first(storage: Storage) -> None:
    graph, _ = graph_of(storage, "hello")

    graph.invoke({"messages": [HumanMessage("hi", id="mine")]}, CONFIG)

    assert [one.next for one in graph.get_state_history(CONFIG)][-1] == ("__start__",)


@pytest.mark.parametrize("message", [None, 5, {"role": "captain", "content": "hi"}, [{"content": "hi"}]], ids=str)
def test_what_is_no_message_is_refused_before_anything_is_saved(storage: Storage, message: Any) -> None:
    graph, _ = graph_of(storage, "hello")

    with pytest.raises(SettingsError, match="`messages` cannot be read"):
        graph.invoke({"messages": message}, CONFIG)

    assert storage.store.get(namespaces.SESSIONS, "t") is None
    assert [one.text for one in ask(graph, "hi")["messages"]] == ["hi", "hello"]


def test_an_input_without_anything_to_do_says_what_to_send(storage: Storage) -> None:
    graph, _ = graph_of(storage)

    with pytest.raises(SettingsError, match="no input 'msgs'; send `messages` or `end_session`"):
        graph.invoke({"msgs": ["hi"]}, CONFIG)


def test_a_lone_surrogate_reads_the_same_from_the_run_and_from_its_checkpoint(storage: Storage) -> None:
    graph, _ = graph_of(storage, "one", "two")
    ask(graph, "a")

    result = ask(graph, "b\ud800c")

    assert result["messages"] == graph.get_state(CONFIG).values["messages"]


def test_who_streams_updates_cannot_change_what_the_model_reads(storage: Storage) -> None:
    graph, model = graph_of(storage, calls(call("look", "c", n=2)), "found")

    for part in graph.stream({"messages": "a question"}, CONFIG, stream_mode="updates"):
        for update in part.values():
            for message in (update or {}).get("messages", []):
                message.content = "[redacted]"

    assert [message.text for message in model.prompts[1][1:3]] == ["a question", ""]


def test_the_same_words_at_the_same_place_of_a_fork_are_a_new_message(storage: Storage) -> None:
    graph, model = graph_of(storage, *(f"r{number} " + "reply " * 60 for number in range(7)))
    dials: dict[str, Any] = {"policy": "sliding_window", "keep_last_turns": 1, "window": 1_400, "safety_fraction": 1.0}
    for number in range(5):
        ask(graph, f"q{number} " + "word " * 120, **dials)
    second = next(one for one in graph.get_state_history(CONFIG) if not one.next and one.values.get("turns") == 2)
    graph.update_state(second.config, {"turns": 2}, as_node="model")

    ask(graph, "q2 " + "word " * 120, **dials)

    assert model.prompts[-1][-1].text.startswith("q2")


def test_trim_runs_before_every_model_call_that_might_not_fit(storage: Storage) -> None:
    graph, _ = graph_of(storage, calls(call("look", "c", n=2)), "found")
    dials = Context(policy="sliding_window", distillation=("turn",))

    updates = graph.stream({"messages": "hi"}, CONFIG, context=dials, stream_mode="updates")
    steps = [next(iter(part)) for part in updates]

    assert steps == ["inject_memory", "trim", "model", "tools", "trim", "model", "distill_notes"]


def test_a_failing_tool_answers_its_call_with_the_error(storage: Storage) -> None:
    graph, model = graph_of(storage, calls(call("fail", "c")), "sorry")

    ask(graph, "hi")

    assert "the shelf is empty" in model.prompts[1][-1].text


def test_a_call_of_an_unknown_tool_is_answered(storage: Storage) -> None:
    graph, model = graph_of(storage, calls(call("fly", "c")), "sorry")

    ask(graph, "hi")

    assert isinstance(model.prompts[1][-1], ToolMessage)


def test_calls_without_ids_get_ids_of_their_own(storage: Storage) -> None:
    graph, model = graph_of(storage, calls(call("look", "", n=1), call("look", "", n=1)), "done")

    ask(graph, "hi")

    ids = [message.tool_call_id for message in model.prompts[1] if isinstance(message, ToolMessage)]
    assert len(set(ids)) == 2


def test_a_malformed_call_is_answered_with_what_is_missing(storage: Storage) -> None:
    broken = AIMessage(
        "", invalid_tool_calls=[{"name": "look", "args": "{", "id": "c", "error": "", "type": "invalid_tool_call"}]
    )
    graph, model = graph_of(storage, broken, "again")

    ask(graph, "hi")

    assert "n: Field required" in model.prompts[1][-1].text


def test_a_long_tool_result_is_offloaded_and_can_be_read_back(storage: Storage) -> None:
    graph, model = graph_of(storage, calls(call("look", "c", n=3000)), "long", calls(), "read")

    ask(graph, "hi", tool_output_tokens=200)

    masked = model.prompts[1][-1]
    handle = marks(masked)["handle"]
    assert f'read_tool_output(handle="{handle}")' in masked.text
    assert "read_tool_output" in str(model.tools[1])
    assert "read_tool_output" not in str(model.tools[0])


def test_a_handle_is_read_back_by_the_model(storage: Storage) -> None:
    graph, model = graph_of(storage, calls(call("look", "c", n=3000)), "long")
    masked = ask(graph, "hi", tool_output_tokens=500)["messages"][2]
    handle = marks(masked)["handle"]
    more, model = graph_of(storage, calls(call("read_tool_output", "d", handle=handle, offset=6000)), "read")

    ask(more, "go on", tool_output_tokens=500)

    assert "row 900 of the table" in model.prompts[1][-1].text


def test_an_interrupt_pauses_and_resumes(storage: Storage) -> None:
    graph, _ = graph_of(storage, calls(call("approve", "c", what="Paris")), "booked")

    paused = ask(graph, "book it")
    result = graph.invoke(Command(resume="yes"), CONFIG, context=Context())

    assert paused["__interrupt__"][0].value == {"what": "Paris"}
    assert result["messages"][-2].text == "approved: yes"


def test_a_new_message_instead_of_an_approval_leaves_no_call_unanswered(storage: Storage) -> None:
    graph, model = graph_of(storage, calls(call("approve", "c", what="Paris")), "fine, no booking")
    ask(graph, "book it")

    ask(graph, "forget it")

    assert [message.type for message in model.prompts[1]] == ["system", "human", "ai", "tool", "human"]


def test_the_prompt_stays_in_the_window_however_long_the_thread(storage: Storage) -> None:
    graph, model = graph_of(storage, *[f"answer {number} " + "word " * 80 for number in range(16)])

    for number in range(16):
        ask(graph, f"question {number} " + "word " * 80, window=2_000)

    assembled = [event for event in events(storage.store, "t") if event.event == "prompt_assembled"]
    assert max(event.tokens + event.breakdown["reply_reserve"] for event in assembled) <= 2_000
    assert all(prompt[1].text.startswith("question 0 ") for prompt in model.prompts)


def test_nothing_is_lost_by_eviction_and_compaction(storage: Storage) -> None:
    graph, _ = graph_of(storage, *[f"answer {number} " + "word " * 80 for number in range(14)])
    for number in range(14):
        result = ask(graph, f"question {number} " + "word " * 80, window=2_000)

    told = [message.text.split(" word")[0] for message in transcript(storage.store, "t", result["messages"])]

    assert told == [f"{who} {number}" for number in range(14) for who in ("question", "answer")]
    assert "compacted" in names(storage)


def test_context_limit_compacts_all_but_the_last_turns_after_the_reply(storage: Storage) -> None:
    graph, _ = graph_of(storage, *"abcde")
    for text in ("1", "2", "3", "4"):
        result = ask(graph, text, context_limit=4, keep_last_turns=2)
    assert len(result["messages"]) == 8

    result = ask(graph, "5", context_limit=4, keep_last_turns=2)

    assert [message.text for message in result["messages"]] == ["1", "4", "d", "5", "e"]
    assert result["summary"]["covers"] == 5


def test_the_summary_is_written_by_the_summarizer_and_shown_as_a_pair(storage: Storage) -> None:
    summarizer = ScriptedModel(["The user counts and the assistant spells the alphabet."])
    graph, model = graph_of(storage, *"abcd", summarizer=summarizer)
    for text in ("1", "2", "3"):
        ask(graph, text, context_limit=2, keep_last_turns=1)

    ledger = [event for event in events(storage.store, "t") if event.event == "compacted"]
    assert [event.writer for event in ledger] == ["model"]
    ask(graph, "4", context_limit=9)
    assert [message.text for message in model.prompts[3][2:4]] == [
        "Summarize the conversation so far.",
        "The user counts and the assistant spells the alphabet.",
    ]


@pytest.mark.parametrize("reply", ["", "ok", RuntimeError("no credit"), "far too long " * 3_000])
def test_a_summarizer_that_fails_costs_nothing_but_an_event(storage: Storage, reply: Any) -> None:
    graph, _ = graph_of(storage, *"abc", summarizer=ScriptedModel([reply]))

    for text in ("the budget is 900 EUR", "2", "3"):
        result = ask(graph, text, context_limit=2, keep_last_turns=1)

    assert result["messages"][-1].text == "c"
    assert result["summary"]["writer"] == "extractive"


def test_an_unchanged_head_is_cacheable(storage: Storage) -> None:
    graph, _ = graph_of(storage, "a", "b")
    ask(graph, "1")
    ask(graph, "2")

    second = [event for event in events(storage.store, "t") if event.event == "prompt_assembled"][1]

    assert second.tokens - second.cacheable_tokens < 20


def test_an_overflow_is_retried_with_a_smaller_budget(storage: Storage) -> None:
    refusal = RuntimeError("This model's maximum context length is 900 tokens. However, your messages resulted in 1000")
    graph, _ = graph_of(storage, *["word " * 100] * 6, refusal, refusal, "short")
    for number in range(6):
        ask(graph, f"{number} " + "word " * 100, window=8_000)

    result = ask(graph, "now", window=8_000)

    assert result["messages"][-1].text == "short"
    refused = [event for event in events(storage.store, "t") if event.event == "prompt_assembled"][-3:]
    assert refused[0].tokens > refused[1].tokens > refused[2].tokens
    assert names(storage).count("overflow") == 2


def test_a_prompt_refused_six_times_ends_with_how_far_it_got(storage: Storage) -> None:
    graph, model = graph_of(storage, *[RuntimeError("prompt is too long: context_length_exceeded")] * 6)

    with pytest.raises((ModelError, BudgetError)):
        ask(graph, "hi")

    assert len(model.prompts) <= 6


def test_a_window_wider_by_what_the_refusal_says_is_wide_enough(storage: Storage) -> None:
    graph, model = graph_of(storage, "read")
    with pytest.raises(BudgetError) as refusal:
        ask(graph, "word " * 9_000, window=4_000)
    told = re.search(r"raise `window` by ([\d,]+)", str(refusal.value))
    assert told is not None
    wider = int(told[1].replace(",", ""))

    ask(graph, "word " * 9_000, window=4_000 + wider)

    assert len(model.prompts) == 1


def test_a_window_too_small_for_the_system_prompt_is_refused_with_the_numbers(storage: Storage) -> None:
    graph, _ = graph_of(storage, "never")

    with pytest.raises(BudgetError, match="`window` is 300 tokens"):
        ask(graph, "hi", window=300)


@pytest.mark.parametrize("reported", [9_000, 80_000, 10**9])
def test_an_absurd_usage_report_does_not_cost_the_thread(storage: Storage, reported: int) -> None:
    usage: Any = {"input_tokens": reported, "output_tokens": 1, "total_tokens": reported + 1}
    graph, _ = graph_of(storage, AIMessage("one", usage_metadata=usage), "two")
    ask(graph, "1", window=8_000)

    assert ask(graph, "2", window=8_000)["messages"][-1].text == "two"


def test_a_report_teaches_its_input_tokens_and_never_the_total(storage: Storage) -> None:
    usage: Any = {"input_tokens": 900, "output_tokens": 4_000, "total_tokens": 4_900}
    graph, _ = graph_of(storage, "one", AIMessage("two", usage_metadata=usage))

    ask(graph, "1", window=8_000)
    assert graph.get_state(CONFIG).values.get("calibration") is None

    ask(graph, "2", window=8_000)
    assert [reported for _, reported in graph.get_state(CONFIG).values["calibration"]["anchors"]] == [900]


def test_a_first_message_of_many_images_does_not_cost_the_thread(storage: Storage) -> None:
    image = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    graph, _ = graph_of(storage, *"abcd")
    graph.invoke({"messages": [HumanMessage([image] * 6)]}, CONFIG, context=Context(window=9_000))
    for _ in range(2):
        result = ask(graph, "word " * 1_500, window=6_000)

    assert result["messages"][-1].text == "c"


@pytest.mark.parametrize("policy", ["sliding_window", "head_tail", "token_budget", "salience", "summarize"])
def test_a_rule_of_the_user_survives_every_policy(policy: str) -> None:
    with open_storage("sqlite://") as storage:
        graph, model = graph_of(storage, *["fine " * 120] * 12)
        ask(graph, "hello", window=2_500, policy=policy)
        ask(graph, "Ask me before you book anything.", window=2_500, policy=policy)
        for number in range(10):
            ask(graph, f"question {number} " + "word " * 120, window=2_500, policy=policy)

    assert all(any("Ask me before you book anything." in m.text for m in prompt) for prompt in model.prompts[1:])


def test_a_long_result_never_enters_a_checkpoint_whole(storage: Storage) -> None:
    graph, _ = graph_of(storage, calls(call("look", "c", n=3000)), "long")
    ask(graph, "hi", tool_output_tokens=200)

    states = list(graph.get_state_history(CONFIG))

    assert all(len(message.text) < 3_000 for state in states for message in state.values.get("messages", []))


async def test_a_long_message_is_not_counted_on_the_event_loop(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, _ = graph_of(storage, "hello")
    text = f"a long message that nobody has sent to {storage.url} " * 50
    counted_on: list[int] = []
    encode = Encoding.encode_ordinary

    def noted(self: Encoding, words: str) -> list[int]:
        if text in words:
            counted_on.append(threading.get_ident())
        return encode(self, words)

    monkeypatch.setattr(Encoding, "encode_ordinary", noted)
    await graph.ainvoke({"messages": text}, CONFIG)

    assert counted_on
    assert threading.get_ident() not in counted_on
