"""What the page does: talk, approve, stop, keep notes, explain, compact; only with the page's own forms."""

import asyncio
import html
import re
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from conversation import call
from everthread import Context, set_profile
from everthread.errors import ModelError
from everthread.ledger import events
from everthread.storage.open import Storage
from everthread.web.dashboard import PREFIX, VIEWS
from small_agent import calls, graph_of
from web_worker import MakeWorker, new_thread, say

APPROVALS = calls(call("approve", "c1", what="tea"), call("approve", "c2", what="cake"))
LONG = [calls(call("look", f"c{n}", n=90)) if n % 2 == 0 else f"That was table {n}." for n in range(16)]


async def post(client: httpx.AsyncClient, page: str, path: str, **fields: str) -> httpx.Response:
    """Send a form of a page."""
    token = re.findall(r'name="token" value="(\w+)"', (await client.get(PREFIX + page)).text)[0]
    return await client.post(PREFIX + path, data={"token": token, **fields})


async def until(client: httpx.AsyncClient, page: str, words: str) -> str:
    """Load a page until it shows some words."""
    async with asyncio.timeout(10):
        while words not in (shown := html.unescape((await client.get(PREFIX + page)).text)):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return shown


async def test_a_message_is_sent_and_its_answer_shown(worker: MakeWorker) -> None:
    client = worker("Hello, Ada.").client()
    chat = (await post(client, "", "/threads")).headers["location"].removeprefix(PREFIX)

    sent = await post(client, chat, chat, message="Good day.")

    assert sent.headers["location"] == PREFIX + chat
    assert "Good day." in await until(client, chat, "Hello, Ada.")


@pytest.mark.parametrize("thread_id", ["a/b", "a%2Fb", "a?b#c"])
async def test_a_form_leads_back_to_its_thread_whatever_its_id(
    worker: MakeWorker, storage: Storage, thread_id: str
) -> None:
    graph, _ = graph_of(storage, "Hello.")
    await graph.ainvoke({"messages": "Hi."}, {"configurable": {"thread_id": thread_id}}, context=Context(user_id="ada"))
    client, page = worker().client(), f"/threads/{quote(thread_id, safe='')}/messages"

    pinned = await post(client, page, page.replace("messages", "steer/pin"), text="Be brief.")

    assert pinned.headers["location"] == PREFIX + page


async def test_a_blank_message_is_refused_with_a_sentence(worker: MakeWorker) -> None:
    client = worker().client()
    chat = f"/threads/{await new_thread(client)}/chat"

    refused = await post(client, chat, chat, message=" ")

    assert refused.status_code == 422
    assert "it is empty" in refused.text


async def test_several_approvals_get_different_answers(worker: MakeWorker) -> None:
    one = worker(APPROVALS, "Tea it is.")
    client = one.client()
    thread = await new_thread(client)
    chat = f"/threads/{thread}/chat"
    asked = (await say(client, thread)).json()["interrupts"]
    shown = (await client.get(PREFIX + chat)).text
    assert shown.count("<fieldset") == 2
    fields = {f"answer:{asked[0]['id']}": "yes", f"answer:{asked[1]['id']}": "no"}

    await post(client, chat, f"{chat}/answers", **fields, **{f"words:{asked[1]['id']}": "only a slice"})

    await until(client, chat, "Tea it is.")
    results = [str(message.content) for message in one.model.prompts[-1] if message.type == "tool"]
    assert results == ["approved: True", "approved: only a slice"]


async def test_nothing_answered_is_refused(worker: MakeWorker) -> None:
    client = worker(APPROVALS).client()
    thread = await new_thread(client)
    await say(client, thread)

    refused = await post(client, f"/threads/{thread}/chat", f"/threads/{thread}/chat/answers")

    assert refused.status_code == 422


async def test_a_run_is_stopped_and_gone_on_with(worker: MakeWorker) -> None:
    gate = asyncio.Event()
    # It may be stopped ahead of the first call, and gets its first reply afterwards then.
    one = worker("Again.", "Again.", gate=gate)
    client = one.client()
    chat = f"/threads/{await new_thread(client)}/chat"
    await post(client, chat, chat, message="Hello.")
    await until(client, chat, "Stop")

    await post(client, chat, f"{chat}/stop")
    gate.set()
    await until(client, chat, "Try again")
    await post(client, chat, f"{chat}/resume")

    await until(client, chat, "Again.")


async def test_a_failed_run_can_be_tried_again(worker: MakeWorker) -> None:
    client = worker(ModelError("down", kind="server"), "Here I am.").client()
    chat = f"/threads/{await new_thread(client)}/chat"
    await post(client, chat, chat, message="Hello?")
    await until(client, chat, "Try again")

    await post(client, chat, f"{chat}/resume")

    await until(client, chat, "Here I am.")


async def streamed(one: Any, path: str, words: str, begun: asyncio.Event | None = None, root: str = "") -> str:
    """Return what a stream of the page sends until some words come; httpx's transport waits for the end of a body."""
    sent: list[str] = []
    over = asyncio.Event()
    client = one.client()
    request = client.build_request("GET", root + PREFIX + path)
    headers = [(name.lower(), value) for name, value in request.headers.raw]
    scope = {"type": "http", "method": "GET", "path": request.url.path, "raw_path": request.url.raw_path}
    scope |= {
        "query_string": request.url.query,
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("testserver", 80),
    }
    scope |= {"scheme": "http", "http_version": "1.1", "root_path": root, "asgi": {"version": "3.0"}}

    async def receive() -> dict[str, str]:
        await over.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message.get("body", b"").decode())
        if begun and sent[-1]:
            begun.set()
        if words in "".join(sent):
            over.set()

    async with asyncio.timeout(10):
        await one.app(scope, receive, send)
    return "".join(sent)


async def test_the_timeline_follows_a_run(worker: MakeWorker) -> None:
    gate = asyncio.Event()
    one = worker("Hello there.", gate=gate)
    client = one.client()
    thread = await new_thread(client)
    watching = asyncio.create_task(streamed(one, f"/threads/{thread}/live", "newest prompt, turn 1"))

    await client.post(f"/threads/{thread}/runs", json={"message": "Hi.", "background": True})
    sent = await watching
    gate.set()

    assert sent.startswith("event: timeline\ndata: ")
    assert "The ledger has no calls here." in sent


async def test_each_who_watches_gets_links_of_their_own_address(worker: MakeWorker) -> None:
    one = worker("Hello there.")
    client = one.client()
    thread = await new_thread(client)
    live, begun = f"/threads/{thread}/live", [asyncio.Event(), asyncio.Event()]
    watching = [
        asyncio.create_task(streamed(one, live, "newest prompt, turn 1", event, root))
        for event, root in zip(begun, ("/a", "/b"), strict=True)
    ]
    await asyncio.gather(*(event.wait() for event in begun))

    await say(client, thread)

    sent = await asyncio.gather(*watching)
    assert [set(re.findall('href="(/.)', each)) for each in sent] == [{"/a"}, {"/b"}]


async def test_two_who_watch_see_a_turn_end_and_the_next_begin(worker: MakeWorker) -> None:
    one = worker("Hello there.", "And again.")
    client = one.client()
    thread = await new_thread(client)
    await say(client, thread)
    watching = [asyncio.create_task(streamed(one, f"/threads/{thread}/live", "newest prompt, turn 2")) for _ in "ab"]
    await until(client, f"/threads/{thread}", "newest prompt, turn 1")

    await say(client, thread)

    for sent in await asyncio.gather(*watching):
        changes = sent.partition("event: past")[2]
        assert changes.partition("event: current")[0].count('class="call"') == 1
        assert "newest prompt, turn 2" in changes


async def test_the_timeline_follows_a_branch_back_to_an_earlier_turn(worker: MakeWorker) -> None:
    one = worker("One.", "Two.", "Three.", "Two, otherwise.")
    client = one.client()
    thread = await new_thread(client)
    for _ in range(3):
        await say(client, thread)
    await client.post(f"/threads/{thread}/fork", json={"call": 1})
    begun = asyncio.Event()
    watching = asyncio.create_task(streamed(one, f"/threads/{thread}/live", "newest prompt, turn 2", begun))
    await begun.wait()

    await say(client, thread, "Otherwise.")

    changes = (await watching).partition("event: past")[2]
    past, _, current = changes.partition("event: current")
    assert (past.count('class="call"'), current.count('class="call"')) == (1, 1)


async def test_turns_of_another_worker_between_two_looks_are_all_told(worker: MakeWorker) -> None:
    watched, other = worker(), worker("One.", "Two.", "Three.", "Four.")
    client = other.client()
    thread = await new_thread(client)
    await say(client, thread)
    begun = asyncio.Event()
    watching = asyncio.create_task(streamed(watched, f"/threads/{thread}/live", "newest prompt, turn 4", begun))
    await begun.wait()

    for _ in range(3):
        await say(client, thread)

    sent = (await watching).partition("event: past")[2]
    assert [f"turn</span> {turn}</span>" in sent for turn in (1, 2, 3, 4)] == [True] * 4


async def test_a_watched_thread_that_is_erased_ends_the_stream(worker: MakeWorker) -> None:
    one = worker("Hello there.")
    client = one.client()
    thread = await new_thread(client)
    await say(client, thread)
    begun = asyncio.Event()
    watching = asyncio.create_task(streamed(one, f"/threads/{thread}/live", "no such words", begun))
    await begun.wait()

    await one.storage.store.adelete(("sessions",), thread)

    assert "newest prompt, turn 1" in await watching


async def test_the_chat_follows_a_reply_as_it_is_written(worker: MakeWorker) -> None:
    gate = asyncio.Event()
    one = worker("Hello there, Ada.", gate=gate)
    client = one.client()
    thread = await new_thread(client)
    await client.post(f"/threads/{thread}/runs", json={"message": "Hi.", "background": True})

    sent = await streamed(one, f"/threads/{thread}/chat/live", "Hello")
    gate.set()

    assert "Ada." not in sent
    assert "answering" in sent


async def test_a_form_that_waits_is_not_sent_again(worker: MakeWorker) -> None:
    one = worker(APPROVALS)
    client = one.client()
    thread = await new_thread(client)
    await say(client, thread)
    page = (await client.get(f"{PREFIX}/threads/{thread}/chat")).text
    connect = html.unescape(re.findall(r'sse-connect="([^"]*)"', page)[0]).removeprefix(PREFIX)

    sent = asyncio.create_task(streamed(one, connect, "event: turn"))
    await asyncio.wait([sent], timeout=0.4)
    first = await streamed(one, connect.partition("?")[0], "event: turn")

    assert not sent.done()
    assert "<fieldset" in first
    sent.cancel()


async def test_a_note_is_saved_edited_retracted_and_brought_back(worker: MakeWorker) -> None:
    client = worker().client()
    first = (await post(client, "/notes", "/notes", text="Likes cherry cake.")).headers["location"]
    path = first.removeprefix(PREFIX)

    second = (await post(client, path, f"{path}/edit", text="Likes plum cake.")).headers["location"]
    edited = second.removeprefix(PREFIX)
    await post(client, edited, f"{edited}/retract")
    retracted = (await client.get(second)).text
    await post(client, edited, f"{edited}/confirm")

    assert "Likes plum cake." in retracted
    assert ">retracted<" in retracted
    assert "Likes cherry cake." in retracted
    assert ">active<" in (await client.get(second)).text


async def test_the_profile_stands_above_the_notes(worker: MakeWorker, storage: Storage) -> None:
    set_profile(storage, "ada", {"home_airport": "<b>FRA", "seats": ["aisle", "window"]})

    shown = (await worker().client().get(f"{PREFIX}/notes")).text

    assert "<dt>home_airport</dt><dd>&lt;b&gt;FRA</dd>" in shown
    assert "- aisle\n- window" in shown


async def test_a_session_is_ended(worker: MakeWorker) -> None:
    client = worker("Noted.").client()
    path = f"/threads/{await new_thread(client)}"
    await say(client, path.rpartition("/")[2], "I prefer aisle seats on every flight.")

    ended = await post(client, path, f"{path}/end")

    assert ended.headers["location"] == f"{PREFIX}/notes"
    assert "End the session" not in (await client.get(PREFIX + path)).text


async def test_why_shows_where_something_is(worker: MakeWorker) -> None:
    client = worker("Noted.").client()
    thread = await new_thread(client)
    await say(client, thread, "The word is heron.")

    shown = (await client.get(f"{PREFIX}/threads/{thread}/why", params={"q": "heron"})).text

    assert "It is in the prompt word for word" in shown
    assert "Nothing in this thread" in (await client.get(f"{PREFIX}/threads/{thread}/why?q=zzz")).text


async def test_a_compaction_is_shown_ahead_and_made_now(worker: MakeWorker) -> None:
    one = worker(*LONG)
    client = one.client()
    thread = await new_thread(client)
    for number in range(5):
        await say(client, thread, f"Show table {number}.", context={"window": 8_000})
    path = f"/threads/{thread}/compaction"
    shown = (await client.get(PREFIX + path)).text

    done = await post(client, path, path)

    assert "Compact now" in shown
    assert "tokens at the full input price" in shown
    assert done.status_code == 303
    assert any(event.event in ("compacted", "masked") for event in events(one.storage.store, thread))


@pytest.mark.parametrize("token", ["", "0" * 64, "é"])
async def test_no_form_works_without_the_pages_token(worker: MakeWorker, token: str) -> None:
    one = worker("Hello.")
    client = one.client()
    thread = await new_thread(client)
    await say(client, thread)
    note = (await client.post("/notes", json={"text": "Likes tea."})).json()["id"]
    paths = [
        view.path.format(thread_id=thread, note_id=note, action="retract") for view in VIEWS if view.method == "POST"
    ]
    form = {"token": token, "message": "Hi.", "text": "Likes cake."}

    statuses = {path: (await client.post(PREFIX + path, data=form)).status_code for path in paths}

    assert set(statuses.values()) == {403}, statuses


@pytest.mark.parametrize(("more", "status"), [({"content": b"x" * 2_000}, 413), ({"json": {"token": "x"}}, 415)])
async def test_a_form_is_small_and_a_form(worker: MakeWorker, more: dict[str, Any], status: int) -> None:
    client = worker(body_bytes=1_000).client()

    assert (await client.post(f"{PREFIX}/notes", **more)).status_code == status


async def test_300_results_in_one_turn_are_shown(worker: MakeWorker) -> None:
    many = calls(*(call("look", f"c{number}", n=3) for number in range(300)))
    client = worker(many, "Done.").client()
    thread = await new_thread(client)
    await say(client, thread, context={"window": 100_000})
    timeline = (await client.get(f"{PREFIX}/threads/{thread}")).text
    newest = re.findall(r'href="([^"]*/calls/[^"]*)"', timeline)[0]

    shown, chat = [(await client.get(path)).text for path in (newest, f"{PREFIX}/threads/{thread}/chat")]

    assert shown.count("<pre ") == 100
    assert "from=100" in shown
    assert "Done." in chat
