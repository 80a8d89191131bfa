"""The page steers: a message comes back, a sentence is pinned, a result masked, a note forgotten, a thread forked."""

import re

import httpx
from test_dashboard_actions import post, until

from conversation import call
from everthread.ledger import events
from everthread.web.dashboard import PREFIX
from small_agent import calls
from web_worker import MakeWorker, new_thread, say

TABLES = [one for n in range(6) for one in (calls(call("look", f"c{n}", n=60)), f"That was table {n}.")]
DIALS = {"policy": "sliding_window", "keep_last_turns": 1}


async def thread_of(client: httpx.AsyncClient, turns: int = 4) -> str:
    thread = await new_thread(client)
    for number in range(turns):
        await say(client, thread, f"Show table {number}, please.", context=DIALS)
    return thread


async def test_a_message_that_left_is_in_the_next_prompt(worker: MakeWorker) -> None:
    one = worker(*TABLES)
    client = one.client()
    thread = await thread_of(client)
    page = f"/threads/{thread}/messages"
    assert ">left<" in (await client.get(PREFIX + page)).text
    gone = one.storage.store.search(("threads", thread, "transcript"), filter={"seq": 3})[0]

    waiting = await post(client, page, f"/threads/{thread}/steer/bring-back", id=gone.key)
    assert "to come back" in (await client.get(waiting.headers["location"])).text
    await say(client, thread, "And now?", context=DIALS)

    recalled = [str(message.content) for message in one.model.prompts[-2] if "bring back" in str(message.content)]
    assert "assistant: That was table 0." in recalled[0]
    assert "to come back" not in (await client.get(PREFIX + page)).text
    asked = [event.actor for event in events(one.storage.store, thread) if event.event in ("steered", "recalled")]
    assert asked == ["ada", "ada"]


async def test_a_sentence_is_pinned_and_unpinned(worker: MakeWorker) -> None:
    one = worker("One.", "Two.", "Three.")
    client = one.client()
    thread = await thread_of(client, 1)
    page = f"/threads/{thread}/messages"

    await post(client, page, f"/threads/{thread}/steer/pin", text="The quay closes at noon.")
    await say(client, thread, "Go on.")
    pinned = [str(message.content) for message in one.model.prompts[-1]]
    asked = re.findall(r'name="id" value="(s-\w+)"', (await client.get(PREFIX + page)).text)[0]
    await post(client, page, f"/threads/{thread}/steer/withdraw", id=asked)
    await say(client, thread, "Go on.")

    assert any("- The quay closes at noon." in text for text in pinned)
    assert not any("noon" in str(message.content) for message in one.model.prompts[-1])


async def test_a_fork_makes_the_call_again(worker: MakeWorker) -> None:
    one = worker("One.", "Two.", "Two, otherwise.")
    client = one.client()
    thread = await thread_of(client, 2)
    timeline = (await client.get(f"{PREFIX}/threads/{thread}")).text
    newest = re.findall(r'href="([^"]*/calls/(\w+)[^"]*)"', timeline)[0]

    forked = await post(client, newest[0].removeprefix(PREFIX), f"/threads/{thread}/steer/fork", id=newest[1])
    chat = forked.headers["location"].removeprefix(PREFIX)
    assert "The last message has no answer." in (await client.get(PREFIX + chat)).text
    await post(client, chat, f"{chat}/resume")

    assert "Two, otherwise." in await until(client, chat, "otherwise")
    assert [str(one.content) for one in one.model.prompts[-1]] == [str(one.content) for one in one.model.prompts[-2]]


async def test_a_note_is_forgotten(worker: MakeWorker) -> None:
    one = worker()
    client = one.client()
    path = (await post(client, "/notes", "/notes", text="Likes cherry cake.")).headers["location"].removeprefix(PREFIX)
    edited = (
        (await post(client, path, f"{path}/edit", text="Likes plum cake.")).headers["location"].removeprefix(PREFIX)
    )

    forgotten = await post(client, edited, f"{edited}/forget")

    assert "cake" not in (await client.get(forgotten.headers["location"])).text
    assert not any("cake" in str(item.value) for item in one.storage.store.search((), limit=1_000))


async def test_what_cannot_be_done_is_said(worker: MakeWorker) -> None:
    client = worker("One.").client()
    thread = await thread_of(client, 1)
    page = f"/threads/{thread}/messages"

    for action, status in (("bring-back", 404), ("mask", 404), ("withdraw", 404), ("pin", 422), ("burn", 404)):
        refused = await post(client, page, f"/threads/{thread}/steer/{action}", id="none", text=" ")
        assert refused.status_code == status, action
