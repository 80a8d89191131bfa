"""The page: threads, timelines and prompts as HTML, shown to their owner alone and as text alone."""

import html
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from conversation import call
from everthread import Context
from everthread.ledger import events
from everthread.storage.open import Storage
from everthread.web import ApiKeys, LocalUser
from everthread.web.auth import new_key
from everthread.web.dashboard.prompt import text_of
from everthread.web.dashboard.render import with_code
from small_agent import calls, graph_of
from web_worker import MakeWorker, Worker, new_thread, say

LONG = [calls(call("look", f"c{n}", n=90)) if n % 2 == 0 else f"That was table {n}." for n in range(16)]
"""Eight turns with a long result each, more than a window of 4,000 tokens holds."""


def messages(page: str) -> list[str]:
    """Return the messages of a prompt, as a browser shows them."""
    return [html.unescape(one) for one in re.findall(r'<pre [^>]*"Message [^>]*>(.*?)</pre>', page, re.S)]


def links(page: str, part: str) -> list[str]:
    return list(dict.fromkeys(html.unescape(one) for one in re.findall(f'href="([^"]*{part}[^"]*)"', page)))


async def talked(worker: MakeWorker, *replies: Any, window: int = 4_000) -> tuple[Worker, httpx.AsyncClient, str]:
    one = worker(*replies)
    client = one.client()
    thread = await new_thread(client)
    for number in range(sum(isinstance(reply, str) for reply in replies)):
        await say(client, thread, f"Show table {number}, please.", context={"window": window})
    return one, client, thread


async def test_the_list_has_the_callers_threads_with_their_sizes(worker: MakeWorker) -> None:
    one, client, thread = await talked(worker, "Hello.")

    own, others = (await client.get("/dashboard")).text, (await one.client("bob").get("/dashboard")).text

    assert thread in own
    assert "Show table 0, please." in own
    assert 'aria-label="newest prompt:' in own
    assert thread not in others


async def test_a_page_behind_the_last_says_so(worker: MakeWorker) -> None:
    _, client, _ = await talked(worker, "Hello.")
    await client.post("/notes", json={"text": "Prefers tea."})

    threads = (await client.get("/dashboard", params={"offset": 999})).text
    notes = (await client.get("/dashboard/notes", params={"offset": 999})).text

    assert "There are no threads behind these." in threads
    assert "There are no notes behind these." in notes


@pytest.mark.parametrize("thread_id", ["a/b", "a%2Fb", "😀 ?#"])
async def test_the_list_leads_to_a_thread_whatever_its_id(worker: MakeWorker, storage: Storage, thread_id: str) -> None:
    graph, _ = graph_of(storage, "Hello.")
    config: Any = {"configurable": {"thread_id": thread_id}}
    await graph.ainvoke({"messages": "Hi."}, config, context=Context(user_id="ada"))
    client = worker().client()

    link = re.findall(r'href="(/dashboard/threads/[^"]*)"', (await client.get("/dashboard")).text)[0]

    assert (await client.get(link)).status_code == 200
    assert (await client.get(f"/threads/{quote(thread_id, safe='')}")).json()["id"] == thread_id


async def test_a_list_without_threads_counts_those_of_other_users_for_who_can_choose_one(worker: MakeWorker) -> None:
    one, _, thread = await talked(worker, "Hello.")

    local = (await worker(auth=LocalUser(), storage=one.storage).client(host="localhost").get("/dashboard")).text

    assert "1 thread belongs to other users: start it with <code>--user NAME</code>" in local
    assert thread not in local
    assert not re.search(r"\bada\b", local)  # the page has random tokens, too
    assert "other users" not in (await one.client("bob").get("/dashboard")).text


async def test_the_bare_address_leads_to_the_page(worker: MakeWorker) -> None:
    answer = await worker().client("").get("/")

    assert (answer.status_code, answer.headers["location"]) == (307, "/dashboard")


async def test_threads_are_found_by_their_first_message(worker: MakeWorker) -> None:
    _, client, thread = await talked(worker, "Hello.")

    assert thread in (await client.get("/dashboard", params={"q": "TABLE 0"})).text
    assert thread not in (await client.get("/dashboard", params={"q": "<b>harbour"})).text


async def test_threads_are_found_by_what_was_said_in_them(worker: MakeWorker) -> None:
    one, client, thread = await talked(worker, "The <b>umbrella</b> is in the attic.", "Hello.")
    await talked(worker, "Hello.")

    found = (await client.get("/dashboard", params={"q": "umbrella attic"})).text

    assert thread in found
    assert "1 thread." in found
    assert "assistant: The &lt;b&gt;umbrella&lt;/b&gt; is in the attic." in found
    assert thread not in (await one.client("bob").get("/dashboard", params={"q": "umbrella attic"})).text


async def test_the_timeline_has_a_bar_for_each_call_and_marks_what_left(worker: MakeWorker) -> None:
    one, client, thread = await talked(worker, *LONG)

    shown = (await client.get(f"/dashboard/threads/{thread}")).text

    recorded = events(one.storage.store, thread)
    prompts = [event for event in recorded if event.event == "prompt_assembled"]
    assert len(links(shown, "/calls/")) == len(prompts)
    assert "compacted into summary" in shown
    assert shown.count('class="mark high"') == len(prompts) + 1
    assert f"<b>{prompts[-1].tokens:,}</b> of 4,000 tokens" in shown


async def test_every_call_shows_what_the_model_got(worker: MakeWorker) -> None:
    one, client, thread = await talked(worker, *LONG)
    timeline = (await client.get(f"/dashboard/threads/{thread}")).text

    for address, prompt in zip(links(timeline, "/calls/")[::-1], one.model.prompts, strict=True):
        shown = (await client.get(address)).text
        assert messages(shown) == [text_of(message)[:2_000] for message in prompt]


async def test_a_call_shows_what_changed_and_why_it_left(worker: MakeWorker) -> None:
    _, client, thread = await talked(worker, *LONG)
    pages = [
        (await client.get(address)).text
        for address in links((await client.get(f"/dashboard/threads/{thread}")).text, "/calls/")
    ]

    compacted = next(page for page in pages if "Messages that left" in page)

    assert re.search(r"\d+ messages left: folded into summary \d", compacted)
    assert '<span class="tag summary">summary</span>' in compacted
    assert any('<span class="tag masked">masked</span>' in page for page in pages)


async def test_pages_of_a_long_thread_lead_to_each_other(worker: MakeWorker) -> None:
    _, client, thread = await talked(worker, *["Yes."] * 30, window=8_000)

    newest = (await client.get(f"/dashboard/threads/{thread}")).text
    earlier = (await client.get(links(newest, "before=")[0])).text

    assert len(links(newest, "/calls/")) == 25
    assert len(links(earlier, "/calls/")) == 5


HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31mred\u202etxt.exe\x00"


async def test_hostile_content_is_shown_as_text(worker: MakeWorker) -> None:
    one = worker(HOSTILE)
    client = one.client()
    thread = await new_thread(client)
    await say(client, thread, HOSTILE.replace("\x00", ""))
    timeline = (await client.get(f"/dashboard/threads/{thread}")).text

    for page in (
        timeline,
        (await client.get("/dashboard")).text,
        (await client.get(links(timeline, "/calls/")[0])).text,
    ):
        assert "<script>alert" not in page
        assert "<img" not in page
        assert not set(page) & set("\x1b\u202e\x00")
    assert "\ufffd[31mred\ufffdtxt.exe" in page


async def test_a_long_text_is_cut_with_a_link_to_the_whole(worker: MakeWorker) -> None:
    one = worker("Read.", body_bytes=10_000_000)
    client = one.client()
    thread = await new_thread(client)
    await say(client, thread, "word " * 400_000, context={"window": 1_000_000})
    shown = (await client.get(links((await client.get(f"/dashboard/threads/{thread}")).text, "/calls/")[0])).text

    whole = await client.get(links(shown, "/parts/")[-1])

    assert len(shown) < 100_000
    assert len(whole.text) > 1_900_000
    assert whole.headers["content-type"].startswith("text/plain")
    assert "sandbox" in whole.headers["content-security-policy"]


async def test_pages_allow_no_script_or_style_but_their_files(worker: MakeWorker) -> None:
    _, client, thread = await talked(worker, "Hello.")

    for path in ("/dashboard", f"/dashboard/threads/{thread}", "/dashboard/sign-in"):
        answered = await client.get(path)
        policy = answered.headers["content-security-policy"]
        assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
        assert "unsafe" not in policy
        assert not re.search(r'<script>|<style|\sstyle="|\son\w+="|https?://', answered.text)
        for name in re.findall(r'(?:src|href)="(/dashboard/static/[^"]*)"', answered.text):
            assert (await client.get(name, headers={"authorization": ""})).status_code == 200


# Signing in.


@pytest.fixture
def signed(worker: MakeWorker, tmp_path: Path) -> tuple[Worker, Path, str]:
    key, line = new_key("ada")
    file = tmp_path / "keys"
    file.write_text(line)
    return worker(auth=ApiKeys(file)), file, key


def browser(one: Worker) -> httpx.AsyncClient:
    """Return a client that keeps cookies and sends no credentials."""
    client = one.client()
    del client.headers["authorization"]
    return client


async def test_a_key_is_given_once_and_kept_in_a_cookie_that_does_not_show_it(signed: tuple[Worker, Path, str]) -> None:
    one, _, key = signed
    client = browser(one)
    away = await client.get("/dashboard")
    entered = await client.post("/dashboard/sign-in", data={"credential": key})

    shown = await client.get("/dashboard")

    assert (away.status_code, away.headers["location"]) == (303, "/dashboard/sign-in")
    cookie = entered.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert key not in cookie
    assert shown.status_code == 200
    assert "ada" in shown.text
    assert (await client.get("/threads")).status_code == 401


async def test_any_worker_on_the_database_accepts_the_cookie(
    signed: tuple[Worker, Path, str], worker: MakeWorker
) -> None:
    one, file, key = signed
    client, other = browser(one), browser(worker(auth=ApiKeys(file)))
    await client.post("/dashboard/sign-in", data={"credential": key})
    other.cookies = client.cookies

    assert (await other.get("/dashboard")).status_code == 200


async def test_a_withdrawn_key_ends_the_session(signed: tuple[Worker, Path, str]) -> None:
    one, file, key = signed
    client = browser(one)
    await client.post("/dashboard/sign-in", data={"credential": key})

    file.write_text(new_key("bob")[1])

    assert (await client.get("/dashboard")).status_code == 303


@pytest.mark.parametrize("cookie", ["", "x", "gAAAA" + "A" * 95, "é"])
async def test_a_cookie_of_somebody_elses_making_is_none(signed: tuple[Worker, Path, str], cookie: str) -> None:
    one, _, _ = signed

    answered = await browser(one).get("/dashboard", headers={"cookie": f"everthread_session={cookie}".encode()})

    assert answered.status_code == 303


async def test_a_wrong_key_is_told_and_tries_are_limited(signed: tuple[Worker, Path, str]) -> None:
    one, _, _ = signed
    client = browser(one)

    tries = [(await client.post("/dashboard/sign-in", data={"credential": "ek_no"})).status_code for _ in range(31)]

    assert set(tries[:30]) == {401}
    assert tries[30] == 429


async def test_signing_in_from_another_site_is_refused(signed: tuple[Worker, Path, str]) -> None:
    one, _, key = signed

    refused = await browser(one).post(
        "/dashboard/sign-in", data={"credential": key}, headers={"sec-fetch-site": "cross-site"}
    )

    assert refused.status_code == 403
    assert "set-cookie" not in refused.headers


async def test_signing_out_removes_the_cookie(signed: tuple[Worker, Path, str]) -> None:
    one, _, key = signed
    client = browser(one)
    await client.post("/dashboard/sign-in", data={"credential": key})
    token = re.findall(r'name="token" value="(\w+)"', (await client.get("/dashboard")).text)[0]

    await client.post("/dashboard/sign-out", data={"token": token})

    assert (await client.get("/dashboard")).status_code == 303


@pytest.mark.parametrize("headers", [{"host": "evil.example"}, {"sec-fetch-site": "cross-site"}])
async def test_without_sign_in_only_pages_of_this_machine_are_answered(
    worker: MakeWorker, headers: dict[str, str]
) -> None:
    client = worker(auth=LocalUser()).client(host="localhost")

    answered = [(await client.get("/dashboard", headers=more)).status_code for more in ({}, headers)]

    assert answered == [200, 403]


async def test_the_secret_of_the_cookies_is_made_once(worker: MakeWorker, storage: Storage) -> None:
    for one in (worker(), worker()):
        await one.client().get("/dashboard")

    secrets = storage.store.search(("dashboard",))

    assert len(secrets) == 1


def test_code_in_a_sentence_is_escaped_too() -> None:
    assert with_code("`<b>` & <i>") == "<code>&lt;b&gt;</code> &amp; &lt;i&gt;"
