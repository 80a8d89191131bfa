"""Steering over HTTP: what is asked for is in the next prompt, and what is taken back is not."""

from typing import Any

import pytest
from langchain.agents import create_agent

from conversation import call
from everthread import EverthreadMiddleware
from everthread.models.scripted import ScriptedModel
from everthread.storage.open import Storage
from small_agent import calls
from web_worker import MakeWorker, new_thread, say


def prompt_of(one: Any) -> str:
    return "\n".join(message.text for message in one.model.prompts[-1])


async def test_a_pinned_sentence_is_in_the_next_prompt_until_it_is_unpinned(worker: MakeWorker) -> None:
    one = worker("Hello.", "Yes.", "No.")
    client = one.client()
    at = f"/threads/{(thread := await new_thread(client))}/steering"
    await say(client, thread)

    pinned = await client.post(at, json={"action": "pin", "text": "Answer in Latin."})
    await say(client, thread, "Go on.")
    with_pin = prompt_of(one)
    listed = (await client.get(at)).json()["steering"]
    unpinned = await client.delete(f"{at}/{pinned.json()['id']}")
    await say(client, thread, "And on.")

    assert (pinned.status_code, unpinned.status_code) == (201, 200)
    assert listed == [pinned.json()]
    assert "Answer in Latin." in with_pin
    assert "Answer in Latin." not in prompt_of(one)


async def test_a_message_is_brought_back_and_a_result_masked(worker: MakeWorker) -> None:
    one = worker(calls(call("look", "c1", n=90)), "Seen.", "Two.", "Three.")
    client = one.client()
    thread = await new_thread(client)
    await say(client, thread, "The code is 4711.", message_id="m-1")
    result = next(
        each for each in (await client.get(f"/threads/{thread}/messages")).json()["messages"] if each["role"] == "tool"
    )

    masked = await client.post(f"/threads/{thread}/steering", json={"action": "mask", "message_id": result["id"]})
    await say(client, thread, "Two?")
    without = prompt_of(one)
    back = await client.post(f"/threads/{thread}/steering", json={"action": "bring_back", "message_id": result["id"]})
    await say(client, thread, "Three?")

    assert (masked.status_code, back.status_code) == (201, 201)
    assert "row 50 of the table" not in without
    assert "row 50 of the table" in prompt_of(one)


async def test_a_thread_is_compacted_as_its_preview_said(worker: MakeWorker) -> None:
    client = worker(*["word " * 200] * 6).client()
    at = f"/threads/{(thread := await new_thread(client))}"
    for number in range(6):
        await say(client, thread, f"question {number}", context={"window": 4_000})

    told = (await client.get(f"{at}/compaction")).json()
    done = (await client.post(f"{at}/compaction")).json()
    left = (await client.get(f"{at}/context")).json()["messages"]

    assert told["evicted"]
    assert done == told
    assert not {each["id"] for each in left} & {*told["evicted"]}


async def test_a_thread_of_the_middleware_is_compacted_as_its_preview_said(
    worker: MakeWorker, storage: Storage
) -> None:
    model, middleware = ScriptedModel(["word " * 200] * 7), EverthreadMiddleware(window=4_500, summarizer="offline")
    saved: Any = {"checkpointer": storage.checkpointer, "store": storage.store, "name": "app"}
    client = worker(agents=[storage.guard(create_agent(model, [], middleware=[middleware], **saved))]).client()
    at = f"/threads/{(thread := await new_thread(client))}"
    for number in range(6):
        await say(client, thread, f"question {number}")

    told = (await client.get(f"{at}/compaction")).json()
    page = (await client.get(f"/dashboard{at}/compaction")).text
    done = (await client.post(f"{at}/compaction")).json()
    answer = await say(client, thread, "And now?")

    assert told["evicted"]
    assert f"{len(told['evicted'])} messages leave" in page
    assert done == told
    assert answer.json()["status"] == "done"
    assert not {str(one.id) for one in model.prompts[-1]} & {*told["evicted"]}


async def test_a_fork_makes_a_call_again(worker: MakeWorker) -> None:
    client = worker("First.", "Second.").client()
    thread = await new_thread(client)
    await say(client, thread)

    forked = await client.post(f"/threads/{thread}/fork", json={"call": -1})
    gone_on = await client.post(f"/threads/{thread}/resume")

    assert forked.json()["call"] == forked.json()["left_call"]
    assert gone_on.json()["reply"] == "Second."


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"action": "pin"}, 422),
        ({"action": "mask", "text": "Answer in Latin."}, 422),
        ({"action": "pin", "text": "Be brief.", "message_id": "m-1"}, 422),
        ({"action": "mask", "message_id": "m-1"}, 422),
        ({"action": "bring_back", "message_id": "none"}, 404),
    ],
)
async def test_what_cannot_be_done_is_refused(worker: MakeWorker, body: dict[str, Any], status: int) -> None:
    client = worker("Hello.").client()
    thread = await new_thread(client)
    await say(client, thread, message_id="m-1")

    assert (await client.post(f"/threads/{thread}/steering", json=body)).status_code == status
    assert (await client.delete(f"/threads/{thread}/steering/none")).status_code == 404


async def test_a_note_is_deleted_for_good(worker: MakeWorker) -> None:
    client = worker().client()
    note = (await client.post("/notes", json={"text": "Prefers aisle seats."})).json()["id"]

    gone = await client.delete(f"/notes/{note}")

    assert gone.json()["action"] == "forget"
    assert (await client.get(f"/notes/{note}")).status_code == 404
