"""Runs over HTTP: answers, streams, approvals, resends, cancellation."""

import asyncio
import itertools
import threading
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import httpx
import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from starlette.applications import Starlette
from starlette.routing import Mount

from conversation import call
from everthread import Context, EverthreadMiddleware
from everthread.errors import ModelError
from everthread.models.scripted import ScriptedModel
from everthread.storage.open import Storage
from everthread.web.auth import Identity
from everthread.web.runs import Event, LiveRun
from everthread.web.service import OwnThread
from small_agent import AGENT, calls, look
from web_worker import MakeWorker, events_of, new_thread, say, token

TEA = calls(call("approve", "c1", what="tea"))
APPROVALS = calls(call("approve", "c1", what="tea"), call("approve", "c2", what="cake"))
BLOCK = [{"type": "text", "text": "One?"}]


async def test_a_message_gets_its_answer(worker: MakeWorker) -> None:
    client = worker("Hello, Ada.").client()
    thread = await new_thread(client)

    answered = await say(client, thread, message_id="m-1")

    assert answered.status_code == 200
    assert answered.headers["location"] == f"/threads/{thread}/runs/m-1"
    assert answered.json() == {
        "id": "m-1",
        "thread_id": thread,
        "status": "done",
        "reply": "Hello, Ada.",
        "reply_id": answered.json()["reply_id"],
        "interrupts": [],
    }


async def test_a_stream_has_the_tokens_and_ends_with_the_run(worker: MakeWorker) -> None:
    client = worker("Hello, dear Ada.").client()
    thread = await new_thread(client)

    streamed = events_of((await say(client, thread, stream=True)).text)

    assert "".join(data["text"] for _, kind, data in streamed if kind == "token") == "Hello, dear Ada."
    assert {"node": "model"} in [data for _, kind, data in streamed if kind == "update"]
    assert [streamed[0][1], streamed[-1][1]] == ["run", "done"]
    assert streamed[-1][2]["reply"] == "Hello, dear Ada."


async def test_a_message_that_is_sent_again_gets_its_own_answer(worker: MakeWorker) -> None:
    one = worker("First.", "Second.")
    client = one.client()
    thread = await new_thread(client)
    await say(client, thread, "One?", message_id="m-1")
    await say(client, thread, "Two?", message_id="m-2")

    again = await say(client, thread, "One?", message_id="m-1")

    assert again.json()["reply"] == "First."
    assert len(one.model.prompts) == 2


async def test_a_message_is_kept_with_the_blanks_around_it(worker: MakeWorker) -> None:
    one = worker("It returns two.")
    client = one.client()
    thread = await new_thread(client)
    code = "    return 2\n\tpass\n"

    await say(client, thread, code)

    assert (await client.get(f"/threads/{thread}/messages")).json()["messages"][0]["content"] == code
    assert one.model.prompts[0][-1].content == code


async def test_a_message_comes_without_metadata(worker: MakeWorker) -> None:
    one = worker("First.")
    client = one.client()
    thread = await new_thread(client)

    refused = await say(client, thread, additional_kwargs={"everthread": {"counted": True}})

    assert (refused.status_code, one.model.prompts) == (422, [])


async def test_an_id_of_another_message_is_refused(worker: MakeWorker) -> None:
    client = worker("First.").client()
    thread = await new_thread(client)
    await say(client, thread, "One?", message_id="m-1")

    refused = await say(client, thread, "Something else?", message_id="m-1")

    assert refused.status_code == 409


async def test_an_id_of_another_message_is_refused_while_that_one_is_answered(worker: MakeWorker) -> None:
    gate = asyncio.Event()
    one = worker("First.", gate=gate)
    client = one.client()
    thread = await new_thread(client)
    first = asyncio.create_task(say(client, thread, "One?", message_id="m-1"))
    await one.until(lambda: bool(one.model.prompts))

    async with asyncio.timeout(5):  # a run that was joined would wait for the gate
        refused = await say(client, thread, "Something else?", message_id="m-1")
    gate.set()

    assert (refused.status_code, (await first).json()["reply"]) == (409, "First.")


async def test_an_id_of_a_message_with_other_blocks_is_refused(worker: MakeWorker) -> None:
    client = worker("First.").client()
    thread = await new_thread(client)
    one, two = ([{"type": "text", "text": text}] for text in ("One?", "Something else?"))
    await client.post(f"/threads/{thread}/runs", json={"message": one, "message_id": "m-1"})

    again, refused = [
        await client.post(f"/threads/{thread}/runs", json={"message": blocks, "message_id": "m-1"})
        for blocks in (one, two)
    ]

    assert (again.json()["reply"], refused.status_code) == ("First.", 409)


@pytest.mark.parametrize(("first", "again"), [("One?", BLOCK), (BLOCK, "One?")])
async def test_a_message_may_be_sent_again_as_a_text_or_a_block(worker: MakeWorker, first: Any, again: Any) -> None:
    client = worker("First.").client()
    thread = await new_thread(client)

    answered = [
        await client.post(f"/threads/{thread}/runs", json={"message": one, "message_id": "m-1"})
        for one in (first, again)
    ]

    assert [one.json().get("reply") for one in answered] == ["First.", "First."]


async def test_an_id_of_another_message_is_refused_while_its_turn_goes_on(worker: MakeWorker) -> None:
    gate = asyncio.Event()
    one = worker("Too slow.", gate=gate)
    client = one.client()
    thread = await new_thread(client)
    cut_off = asyncio.create_task(say(client, thread, "One?", message_id="m-1"))
    await one.until(lambda: bool(one.model.prompts))
    await client.post(f"/threads/{thread}/runs/m-1/cancel")
    await cut_off
    accepted = await client.post(f"/threads/{thread}/resume", json={"background": True})

    async with asyncio.timeout(5):  # a run that was joined would wait for the gate
        refused = await say(client, thread, "Something else?", message_id="m-1")

    assert (accepted.status_code, refused.status_code) == (202, 409)


@pytest.mark.parametrize(("words", "statuses"), [(("yes", "no"), [200, 409]), (("yes", "yes"), [200, 200])])
async def test_of_two_answers_at_once_another_one_is_refused(
    worker: MakeWorker, monkeypatch: pytest.MonkeyPatch, words: tuple[str, str], statuses: list[int]
) -> None:
    client = worker(calls(call("approve", "c1", what="tea")), "Tea it is.").client()
    thread = await new_thread(client)
    asked = (await say(client, thread)).json()["interrupts"][0]["id"]
    barrier, reads, snapshot = threading.Barrier(2, timeout=10), itertools.count(), OwnThread.snapshot

    def both_at_once(own: OwnThread) -> Any:
        if next(reads) < 2:
            barrier.wait()
        return snapshot(own)

    monkeypatch.setattr(OwnThread, "snapshot", both_at_once)
    resume = f"/threads/{thread}/resume"

    answered = await asyncio.gather(*(client.post(resume, json={"answers": {asked: one}}) for one in words))

    assert sorted(one.status_code for one in answered) == statuses


@pytest.mark.parametrize(
    ("asked", "then"),
    [(TEA, "Tea it is."), (TEA, calls(call("approve", "c3", what="milk"))), (TEA, APPROVALS), (APPROVALS, "Done.")],
    ids=["turn over", "next question", "next questions", "other question"],
)
async def test_an_answer_behind_that_of_another_worker_is_told_so(
    worker: MakeWorker, monkeypatch: pytest.MonkeyPatch, asked: AIMessage, then: Any
) -> None:
    one, other = worker(asked, then), worker()
    thread = await new_thread(one.client())
    body = {"answers": {(await say(one.client(), thread)).json()["interrupts"][0]["id"]: "yes"}}
    before = (await one.app.state.service.own(Identity("ada", "token", ""), thread)).snapshot()
    first = await one.client().post(f"/threads/{thread}/resume", json=body)
    monkeypatch.setattr(OwnThread, "snapshot", lambda _: before)  # it read ahead of the other one's run

    second = await other.client().post(f"/threads/{thread}/resume", json=body)

    assert (first.status_code, second.status_code) == (200, 409)
    assert "answered already" in second.json()["detail"]
    assert other.model.prompts == []


async def test_an_answer_may_be_a_number_of_any_size(worker: MakeWorker) -> None:
    one = worker(calls(call("approve", "c1", what="tea")), "Tea it is.")
    client = one.client()
    thread = await new_thread(client)
    asked = (await say(client, thread)).json()["interrupts"][0]["id"]

    answered = await client.post(f"/threads/{thread}/resume", json={"answers": {asked: {"sum": 10**30}}})

    assert answered.json()["status"] == "done"
    assert str(10**30) in one.model.prompts[-1][-1].text


async def test_several_approvals_get_different_answers(worker: MakeWorker) -> None:
    one = worker(APPROVALS, "Tea it is.")
    client = one.client()
    thread = await new_thread(client)
    asked = (await say(client, thread, message_id="m-1")).json()
    assert asked["status"] == "interrupted"
    first, second = asked["interrupts"]
    answers = {first["id"]: f"{first['value']['what']}: yes", second["id"]: f"{second['value']['what']}: no"}

    done = await client.post(f"/threads/{thread}/resume", json={"answers": answers})

    assert (done.json()["id"], done.json()["status"], done.json()["reply"]) == ("m-1", "done", "Tea it is.")
    results = [message.text for message in one.model.prompts[-1] if message.type == "tool"]
    assert results == ["approved: tea: yes", "approved: cake: no"]


@pytest.mark.parametrize(
    ("reply", "status", "shown"),
    [
        ("Fine.", "idle", "session open"),
        (APPROVALS, "interrupted", "waits for an approval"),
        (RuntimeError("no power"), "unfinished", "last turn unfinished"),
    ],
)
async def test_the_list_tells_what_became_of_the_last_turn(
    worker: MakeWorker, reply: Any, status: str, shown: str
) -> None:
    client = worker(reply).client()
    thread = await new_thread(client)
    await say(client, thread)

    (listed,) = (await client.get("/threads")).json()["threads"]

    assert listed["status"] == (await client.get(f"/threads/{thread}")).json()["status"] == status
    assert shown in (await client.get("/dashboard")).text


async def test_approvals_may_be_answered_one_by_one(worker: MakeWorker) -> None:
    client = worker(APPROVALS, "Done.").client()
    thread = await new_thread(client)
    first, second = (await say(client, thread)).json()["interrupts"]

    after = await client.post(f"/threads/{thread}/resume", json={"answers": {first["id"]: "yes"}})
    done = await client.post(f"/threads/{thread}/resume", json={"answers": {second["id"]: "no"}})

    assert after.json()["interrupts"] == [second]
    assert done.json()["status"] == "done"


@pytest.mark.parametrize(
    ("body", "status"), [({"answers": {"0" * 32: "yes"}}, 409), ({}, 422), ({"answers": ["yes"]}, 422)]
)
async def test_answers_to_nothing_are_refused(worker: MakeWorker, body: Any, status: int) -> None:
    client = worker(APPROVALS).client()
    thread = await new_thread(client)
    await say(client, thread)

    assert (await client.post(f"/threads/{thread}/resume", json=body)).status_code == status


async def test_nothing_to_resume_is_a_conflict(worker: MakeWorker) -> None:
    client = worker("Hello.").client()
    thread = await new_thread(client)
    await say(client, thread)

    assert (await client.post(f"/threads/{thread}/resume")).status_code == 409


async def test_a_run_goes_on_when_its_client_leaves(worker: MakeWorker) -> None:
    gate = asyncio.Event()
    one = worker("Still here.", gate=gate)
    client = one.client()
    thread = await new_thread(client)
    request = asyncio.create_task(say(client, thread, message_id="m-1", stream=True))
    await one.until(lambda: bool(one.model.prompts))

    request.cancel()
    await asyncio.gather(request, return_exceptions=True)
    running = (await client.get(f"/threads/{thread}/runs/m-1")).json()
    gate.set()
    followed = events_of((await client.get(f"/threads/{thread}/runs/m-1/stream")).text)

    assert running["status"] == "running"
    assert followed[-1][2]["reply"] == "Still here."
    assert (await client.get(f"/threads/{thread}")).json()["status"] == "idle"


async def test_a_stream_goes_on_behind_the_last_event(worker: MakeWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = asyncio.Event()
    one = worker("One two three.", gate=gate)
    client = one.client()
    thread = await new_thread(client)
    first = asyncio.create_task(say(client, thread, message_id="m-1", stream=True))
    await one.until(lambda: bool(one.model.prompts))
    live = one.app.state.service.runs.find(thread, "m-1")
    await one.until(lambda: any(event.kind == "token" for event in live.events))
    seen, follow = live.events[-1].id, Mock(wraps=live.follow)
    monkeypatch.setattr(live, "follow", follow)

    second = asyncio.create_task(client.get(f"/threads/{thread}/runs/m-1/stream", headers={"last-event-id": seen}))
    await one.until(lambda: follow.called)
    gate.set()
    every, rest = events_of((await first).text), events_of((await second).text)

    assert rest == every[-len(rest) :]
    assert [data["text"] for _, kind, data in rest if kind == "token"] == [" two", " three."]


async def test_a_run_is_followed_from_its_beginning_behind_an_event_that_it_does_not_have() -> None:
    live = LiveRun("m-1", "t")
    live.emit("run", {})
    live.is_over = True
    attempt = live.events[0].id.partition(".")[0]

    followed = [event async for event in live.follow(f"{attempt}.{'9' * 5_000}")]

    assert followed == live.events


@pytest.mark.parametrize("run_id", ["a/b", "a%2Fb", "a b?c#d", "😀", "a\r\nX-Other: 1"])
async def test_the_place_of_a_run_leads_to_it_whatever_its_id(worker: MakeWorker, run_id: str) -> None:
    client = worker("Hello.").client()
    thread = await new_thread(client)

    answered = await say(client, thread, message_id=run_id)

    assert (await client.get(answered.headers["location"])).json() == answered.json()


async def test_the_place_of_a_run_leads_to_it_whatever_the_id_of_its_thread(worker: MakeWorker) -> None:
    one = worker("Hello.", "Hello again.")
    client, config = one.client(), {"configurable": {"thread_id": "a/b 漢"}}
    await one.app.state.service.graphs["test"].ainvoke({"messages": "Hi."}, config, context=Context(user_id="ada"))

    answered = await say(client, "a%2Fb%20%E6%BC%A2", message_id="m-1")

    assert (await client.get(answered.headers["location"])).json() == answered.json()


async def test_a_run_in_the_background_can_be_read_later(worker: MakeWorker) -> None:
    one = worker("Later.")
    client = one.client()
    thread = await new_thread(client)

    accepted = await say(client, thread, background=True)
    await one.until(lambda: not one.app.state.service.runs.is_live(thread))

    assert (accepted.status_code, accepted.json()["status"]) == (202, "running")
    assert (await client.get(accepted.headers["location"])).json()["reply"] == "Later."


async def test_a_run_in_the_background_is_accepted_before_its_first_step_ends(worker: MakeWorker) -> None:
    gate = asyncio.Event()

    async def wait(state: MessagesState) -> dict[str, Any]:
        await gate.wait()
        return {"messages": [AIMessage("Later.")]}

    builder = StateGraph(MessagesState).add_node(wait).add_edge(START, "wait")
    storage = worker().storage
    graph = builder.compile(checkpointer=storage.checkpointer, store=storage.store, name="waits")
    client = worker(agents=[storage.guard(graph)]).client()
    thread = await new_thread(client)

    async with asyncio.timeout(5):
        accepted = await say(client, thread, background=True)
    gate.set()

    assert accepted.status_code == 202


async def test_a_cancelled_turn_is_kept_and_can_go_on(worker: MakeWorker) -> None:
    gate = asyncio.Event()
    one = worker("Too slow.", "In time.", gate=gate)
    client = one.client()
    thread = await new_thread(client)
    request = asyncio.create_task(say(client, thread, message_id="m-1"))
    await one.until(lambda: bool(one.model.prompts))

    cancelled = await client.post(f"/threads/{thread}/runs/m-1/cancel")
    gate.set()
    gone_on = await client.post(f"/threads/{thread}/resume")

    assert (cancelled.status_code, cancelled.json()["status"]) == (200, "unfinished")
    assert (await request).status_code == 409
    assert (gone_on.json()["id"], gone_on.json()["reply"]) == ("m-1", "In time.")


async def test_a_run_of_another_worker_is_cancelled(worker: MakeWorker) -> None:
    gate = asyncio.Event()
    one, other = worker("Too slow.", gate=gate), worker()
    thread = await new_thread(one.client())
    request = asyncio.create_task(say(one.client(), thread, message_id="m-1"))
    await one.until(lambda: bool(one.model.prompts))
    live = one.app.state.service.runs.find(thread, "m-1")

    asked = await other.client().post(f"/threads/{thread}/runs/m-1/cancel")

    assert (asked.status_code, asked.json()["status"]) == (202, "running")
    assert await one.app.state.service._is_cancelled(live)
    live.stop(live.problem)
    await asyncio.gather(request)


@pytest.mark.parametrize("way", [{}, {"stream": True}, {"background": True}])
async def test_a_thread_that_is_busy_elsewhere_is_a_conflict(worker: MakeWorker, way: dict[str, Any]) -> None:
    one = worker("Hello.")
    client = one.client()
    thread = await new_thread(client)

    with one.storage.locks.hold(thread):
        refused = await say(client, thread, **way)
        shown = (await client.get(f"/threads/{thread}")).json()

    assert (refused.status_code, refused.headers["retry-after"]) == (409, "5")
    assert shown["status"] == "running"


async def test_a_failed_model_is_a_bad_gateway_and_the_turn_goes_on(worker: MakeWorker) -> None:
    client = worker(ModelError("sk-secret was refused", kind="authentication"), "Back again.").client()
    thread = await new_thread(client)

    failed = await say(client, thread, message_id="m-1")
    gone_on = await client.post(f"/threads/{thread}/resume")

    assert failed.status_code == 502
    assert "sk-secret" not in failed.text
    assert gone_on.json()["reply"] == "Back again."


async def test_an_error_behind_the_first_event_ends_the_stream(worker: MakeWorker) -> None:
    client = worker(ModelError("no", kind="server")).client()
    thread = await new_thread(client)

    streamed = events_of((await say(client, thread, stream=True)).text)

    assert (streamed[-1][1], streamed[-1][2]["status"]) == ("error", 502)


async def test_a_server_that_stops_lets_runs_finish(worker: MakeWorker) -> None:
    gate = asyncio.Event()
    one = worker("Just in time.", gate=gate)
    client = one.client()
    thread = await new_thread(client)
    request = asyncio.create_task(say(client, thread, message_id="m-1"))
    await one.until(lambda: bool(one.model.prompts))

    closing = asyncio.create_task(one.app.state.service.runs.close(10))
    await asyncio.sleep(0)
    refused, ready = await say(client, thread, "More?"), await client.get("/readyz")
    gate.set()
    await closing

    assert (refused.status_code, ready.status_code) == (503, 503)
    assert (await request).json()["reply"] == "Just in time."


async def test_a_server_that_stops_hands_a_turn_back(worker: MakeWorker) -> None:
    one, other = worker("Too slow.", gate=asyncio.Event()), worker("Taken up.")
    client = one.client()
    thread = await new_thread(client)
    request = asyncio.create_task(say(client, thread, message_id="m-1"))
    await one.until(lambda: bool(one.model.prompts))

    await one.app.state.service.runs.close(0)
    taken_up = await say(other.client(), thread, "Hello.", message_id="m-1")

    assert (await request).status_code == 503
    assert taken_up.json()["reply"] == "Taken up."


async def test_more_runs_than_allowed_are_refused(worker: MakeWorker) -> None:
    gate = asyncio.Event()
    one = worker("One.", gate=gate, runs=1)
    client = one.client()
    first, second = await new_thread(client), await new_thread(client)
    request = asyncio.create_task(say(client, first))
    await one.until(lambda: bool(one.model.prompts))

    assert (await say(client, second)).status_code == 503
    gate.set()
    await request


async def test_an_answer_beside_a_run_that_goes_on_is_not_lost(worker: MakeWorker) -> None:
    gate = asyncio.Event()
    one = worker(APPROVALS, "Done.", gate=gate)
    client = one.client()
    thread = await new_thread(client)
    gate.set()
    first, second = (await say(client, thread)).json()["interrupts"]
    gate.clear()
    both = {first["id"]: "yes", second["id"]: "no"}
    request = asyncio.create_task(client.post(f"/threads/{thread}/resume", json={"answers": both}))
    await one.until(lambda: len(one.model.prompts) == 2)

    beside = await client.post(f"/threads/{thread}/resume", json={"answers": {second["id"]: "yes"}})
    gate.set()

    assert beside.status_code == 409
    assert (await request).json()["status"] == "done"


async def test_a_thread_can_be_read_steered_and_ended_where_its_agent_does_not_run(
    worker: MakeWorker, storage: Storage
) -> None:
    kept: Any = {"checkpointer": storage.checkpointer, "store": storage.store}
    model = ScriptedModel(["Noted."])
    own = create_agent(model, [look], middleware=[EverthreadMiddleware(window=16_000)], **kept, name="own")
    config: Any = {"configurable": {"thread_id": "t-1", "user_id": "ann"}}
    await storage.guard(own).ainvoke({"messages": "My desk is on floor 4."}, config)
    client = worker().client("ann")
    page = "/dashboard/threads/t-1"

    read = [await client.get(f"/threads/t-1/{one}") for one in ("messages", "context", "ledger", "why?q=floor")]
    shown = [await client.get(page + one) for one in ("", "/messages", "/why?q=floor")]
    pinned = await client.post("/threads/t-1/steering", json={"action": "pin", "text": "Be brief."})
    ended = await client.post("/threads/t-1/end")
    chat = await client.get(f"{page}/chat")

    assert [one.status_code for one in (*read, *shown, pinned, ended)] == [200] * 7 + [201, 200]
    assert [one["content"] for one in read[0].json()["messages"]] == ["My desk is on floor 4.", "Noted."]
    assert "My desk is on floor 4." in shown[1].text
    assert f'{page}/chat"' not in shown[0].text
    assert (chat.status_code, "goes on where its agent runs" in chat.text) == (409, True)


async def test_what_a_run_asks_can_be_read_where_its_agent_does_not_run(worker: MakeWorker) -> None:
    there, here = worker(APPROVALS).client(), worker(agents=[replace(AGENT, name="other")]).client()
    thread = await new_thread(there)
    first, second = (await say(there, thread, message_id="m-1")).json()["interrupts"]
    await there.post(f"/threads/{thread}/resume", json={"answers": {first["id"]: "yes"}})

    read = [(await here.get(f"/threads/{thread}{rest}")).json() for rest in ("", "/runs/m-1")]
    streamed = events_of((await here.get(f"/threads/{thread}/runs/m-1/stream")).text)

    assert [(one["status"], one["interrupts"]) for one in read] == [("interrupted", [second])] * 2
    assert (read[0]["run_id"], streamed[-1][2]) == ("m-1", read[1])


async def test_a_graph_of_ones_own_is_served(worker: MakeWorker, storage: Storage) -> None:
    model = ScriptedModel([calls(call("look", "c1", n=2)), "Two rows."])
    own = create_agent(
        model,
        [look],
        middleware=[EverthreadMiddleware(window=16_000)],
        checkpointer=storage.checkpointer,
        store=storage.store,
        name="own",
    )
    client = worker(agents=[storage.guard(own)]).client()
    thread = await new_thread(client)

    streamed = events_of((await say(client, thread, "How many?", message_id="m-1", stream=True)).text)
    refused = await say(client, thread, context={"window": 8_000})
    ended = await client.post(f"/threads/{thread}/end")

    assert streamed[-1][2]["reply"] == "Two rows."
    assert [data["content"] for _, kind, data in streamed if kind == "tool_result"] == [
        "row 0 of the table\nrow 1 of the table"
    ]
    assert (await client.get(f"/threads/{thread}/messages")).json()["total"] == 4
    assert (refused.status_code, ended.status_code) == (422, 200)


def test_an_event_with_half_of_a_surrogate_pair_is_sent_all_the_same() -> None:
    assert b"data: " in Event("1", "token", {"text": "bad \ud83d"}).encode()


async def test_a_mounted_app_is_healthy_without_a_key_and_says_where_its_runs_are(worker: MakeWorker) -> None:
    one = worker("Hello.")
    outer = httpx.ASGITransport(Starlette(routes=[Mount("/agents", one.app)]))
    async with httpx.AsyncClient(transport=outer, base_url="http://testserver") as client:
        healthy, stranger = await client.get("/agents/healthz"), await client.get("/agents/me")
        client.headers["authorization"] = f"Bearer {token('ada')}"
        made = await client.post("/agents/threads")
        thread = made.headers["location"]
        answered = await client.post(f"{thread}/runs", json={"message": "Hi.", "message_id": "a/b"})

    assert (healthy.status_code, stranger.status_code) == (200, 401)
    assert (thread, answered.headers["location"]) == (f"/agents/threads/{made.json()['id']}", f"{thread}/runs/a%2Fb")


async def test_a_path_that_was_changed_on_the_way_here_is_the_one_that_counts(worker: MakeWorker) -> None:
    app = worker().app

    async def outer(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, "path": scope["path"].removeprefix("/api")}, receive, send)

    async with httpx.AsyncClient(transport=httpx.ASGITransport(outer), base_url="http://testserver") as client:
        assert (await client.get("/api/healthz")).status_code == 200
