"""The page in a real browser, on the real server: what a person sees and does. `make test-web` runs it.

With `PICTURES=1` it draws the pictures of docs/dashboard.md anew.
"""

import asyncio
import os
import shutil
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from conversation import call
from everthread.storage.open import Storage
from everthread.web import LocalUser, create_app
from everthread.web.dashboard.prompt import text_of
from small_agent import AGENT, calls
from web_worker import GatedModel

playwright = pytest.importorskip("playwright.async_api", reason="playwright is not installed: pip install -e '.[dev]'")
CHROMIUM = shutil.which("chromium") or ""
PICTURES = Path(__file__).parents[2] / "docs" / "images"
KEPT = [
    *(f"dashboard-{name}-light-1280.png" for name in ("thread", "call", "messages", "why")),
    *(f"dashboard-{name}-dark-360.png" for name in ("chat", "compaction", "note")),
]
"""Pictures of the docs; another folder than `1` gets those of every view."""

pytestmark = [
    pytest.mark.web,
    pytest.mark.skipif(not CHROMIUM, reason="there is no /usr/bin/chromium: apt-get install chromium"),
]

TABLES = [
    one
    for number in range(9)
    for one in (
        calls(call("look", f"c{number}", n=70 + 9 * number)),
        f"Here is table {number}. The north quay has the most berths free, and the tide is right until noon.",
    )
]
APPROVALS = calls(call("approve", "a1", what="the berth at the north quay"), call("approve", "a2", what="a pilot"))
QUESTION = "Show me table 0 of the harbour report. I am vegetarian, and please never book before I approve."


@dataclass
class Site:
    """A server, and a browser on it."""

    url: str
    model: Any
    gate: asyncio.Event
    api: httpx.AsyncClient
    browser: Any
    complaints: list[str]

    async def page(self, **settings: Any) -> Any:
        page = await self.browser.new_page(**settings)
        page.on("console", lambda one: self.complaints.append(one.text) if one.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        return page

    async def thread(self, *messages: str, **dials: Any) -> str:
        thread = str((await self.api.post("/threads")).json()["id"])
        for message in messages:
            body = {"message": message, "context": dials}
            assert (await self.api.post(f"/threads/{thread}/runs", json=body)).status_code == 200
        return thread


@pytest.fixture
async def site(storage: Storage, request: pytest.FixtureRequest) -> AsyncIterator[Site]:
    gate = asyncio.Event()
    gate.set()
    model = GatedModel(request.param, gate=gate)
    app = create_app(storage, [AGENT], auth=LocalUser(), model=model)
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1))
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    async with httpx.AsyncClient(base_url=url, timeout=60) as api, playwright.async_playwright() as started:
        # Without a sandbox of its own it runs as root in a container too; it loads nothing but this server.
        browser = await started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        complaints: list[str] = []
        yield Site(url, model, gate, api, browser, complaints)
        await browser.close()
        await app.state.service.runs.close(0)
        server.should_exit = True
        await serving
    assert complaints == []


def replies(*wanted: Any) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("site", [wanted], indirect=True)


@replies("Hello.", "A longer answer, which is written word by word.")
async def test_a_streamed_turn_moves_the_bar(site: Site) -> None:
    thread = await site.thread("Good day.")
    watching, talking = await site.page(), await site.page()
    await watching.goto(f"{site.url}/dashboard/threads/{thread}")
    bar = watching.locator(".hero .bar rect.history")
    before = float(await bar.get_attribute("width"))
    site.gate.clear()

    await talking.goto(f"{site.url}/dashboard/threads/{thread}/chat")
    await talking.get_by_label("Your message").fill("And now a long question about the harbour, please.")
    await talking.get_by_role("button", name="Send").click()
    await talking.get_by_text("answering").wait_for()
    await watching.get_by_text("the newest prompt, turn 2").wait_for()
    assert float(await bar.get_attribute("width")) > before
    site.gate.set()
    await talking.get_by_text("word by word.").wait_for()
    await talking.get_by_text("answering").wait_for(state="detached")


@replies(*TABLES[:6])
async def test_a_call_shows_what_the_model_got(site: Site) -> None:
    thread = await site.thread(QUESTION, "Now table 1, please.", "And table 2?", window=6_000)
    page = await site.page()
    await page.goto(f"{site.url}/dashboard/threads/{thread}")

    await page.locator("a.call").first.click()

    shown = await page.locator(".prompt pre[aria-label]").all_inner_texts()
    assert [one.strip() for one in shown] == [text_of(message)[:2_000].strip() for message in site.model.prompts[-1]]


@replies(*TABLES[:4])
async def test_a_difference_shows_the_masked_result(site: Site) -> None:
    thread = await site.thread(QUESTION)
    page = await site.page()
    await page.goto(f"{site.url}/dashboard/threads/{thread}/messages")
    await page.get_by_role("button", name="Mask").click()
    await page.get_by_text("to be masked").first.wait_for()
    await page.get_by_role("link", name="Chat").click()
    await page.get_by_label("Your message").fill("Now table 1, please.")
    await page.get_by_role("button", name="Send").click()
    await page.locator("#log").get_by_text("Here is table 1.").wait_for()
    await page.get_by_role("link", name="Timeline").click()

    await page.locator("a.call").nth(1).click()

    masked = page.locator(".part.masked")
    await masked.get_by_text("What changed").click()
    assert "- row 50 of the table\n" in await masked.locator(".diff .del").all_inner_texts()
    sent = text_of(next(one for one in site.model.prompts[-2] if one.type == "tool"))
    assert "row 50 of the table" not in sent
    assert (await masked.locator("pre[aria-label]").inner_text()).strip() == sent.strip()


@replies("Noted.")
async def test_why_answers(site: Site) -> None:
    thread = await site.thread("The pilot comes at six.")
    page = await site.page()
    await page.goto(f"{site.url}/dashboard/threads/{thread}")
    await page.get_by_role("link", name="Why").click()

    await page.get_by_label("A fact, an id or a handle").fill("pilot comes")
    await page.keyboard.press("Enter")

    await page.get_by_text("It is in the prompt word for word").wait_for()
    assert await page.locator(".account code").all_inner_texts() == ["history"]


@replies(APPROVALS, "The berth is booked, without a pilot.")
async def test_two_approvals_get_different_answers(site: Site) -> None:
    thread = await site.thread("Book it, please.")
    page = await site.page()
    await page.goto(f"{site.url}/dashboard/threads/{thread}/chat")

    boxes = page.get_by_role("group")
    await boxes.nth(0).get_by_label("Approve").check()
    await boxes.nth(1).get_by_label("Decline").check()
    await page.get_by_role("button", name="Send the answers").click()

    await page.get_by_text("without a pilot.").wait_for()
    results = [str(one.content) for one in site.model.prompts[-1] if one.type == "tool"]
    assert results == ["approved: True", "approved: False"]


@replies("Noted.")
async def test_a_note_is_written_and_edited_by_keyboard(site: Site) -> None:
    page = await site.page()
    await page.goto(f"{site.url}/dashboard/notes")
    await page.get_by_label("Remember something new").fill("Likes cherry cake.")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await page.get_by_role("heading", name="Likes cherry cake.").wait_for()

    await page.get_by_label("Other words").fill("Likes plum cake.")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")

    await page.get_by_role("heading", name="Likes plum cake.").wait_for()
    await page.get_by_text("It replaced").wait_for()


@replies(*TABLES[:8])
async def test_a_message_is_brought_back_and_is_in_the_next_prompt(site: Site) -> None:
    dials = {"policy": "sliding_window", "keep_last_turns": 1}
    thread = await site.thread(QUESTION, "Now table 1, please.", "And table 2?", **dials)
    page = await site.page()
    await page.goto(f"{site.url}/dashboard/threads/{thread}")
    await page.get_by_role("link", name="Messages").click()
    left = page.locator(".part").filter(has_text="Here is table 0.")

    await left.get_by_role("button", name="Bring back").click()

    await left.get_by_text("to come back").wait_for()
    await page.get_by_label("A sentence for every prompt").fill("The quay closes at noon.")
    await page.get_by_role("button", name="Pin it").click()
    await page.get_by_role("button", name="Unpin").wait_for()
    await page.get_by_role("link", name="Chat").click()
    await page.get_by_label("Your message").fill("And table 3?")
    await page.get_by_role("button", name="Send").click()
    await page.get_by_text("Here is table 3.").wait_for()
    sent = [str(one.content) for one in site.model.prompts[-1]]
    assert any("asked to bring back" in text and "Here is table 0." in text for text in sent)
    assert any("- The quay closes at noon." in text for text in sent)


@replies("Noted.")
async def test_a_note_is_edited_and_forgotten(site: Site) -> None:
    note = (await site.api.post("/notes", json={"text": "Likes cherry cake."})).json()["id"]
    page = await site.page()
    await page.goto(f"{site.url}/dashboard/notes/{note}")
    await page.get_by_label("Other words").fill("Likes plum cake.")
    await page.get_by_role("button", name="Save").click()
    await page.get_by_role("heading", name="Likes plum cake.").wait_for()

    await page.get_by_text("Forget this note").click()
    await page.get_by_role("button", name="Forget it for good").click()

    await page.get_by_text("Nothing is remembered about you yet.").wait_for()


@replies("<img src=x onerror=alert(1)><script>alert(2)</script> \x1b[31mred")
async def test_hostile_content_runs_nothing(site: Site) -> None:
    thread = await site.thread("<script>document.title='taken'</script>")
    page = await site.page()
    dialogs: list[Any] = []
    page.on("dialog", lambda one: dialogs.append(one))

    for path in ("", f"/threads/{thread}", f"/threads/{thread}/chat"):
        await page.goto(f"{site.url}/dashboard{path}")
        assert "Everthread" in await page.title()
    assert "<img src=x onerror=alert(1)>" in await page.locator("#log").inner_text()
    assert dialogs == []


@replies(*TABLES, APPROVALS)
async def test_every_view_fits_a_wide_and_a_narrow_window(site: Site) -> None:
    questions = [QUESTION, *(f"Now table {number}, please." for number in range(1, 9)), "Book a berth and a pilot."]
    thread = await site.thread(*questions, window=5_000)
    for text in ("Prefers window seats on trains.", "Allergic to walnuts.", "Usually travels with one bag."):
        note = (await site.api.post("/notes", json={"text": text})).json()["id"]
    asking = await site.page()
    await asking.goto(f"{site.url}/dashboard/threads/{thread}/messages")
    await asking.get_by_label("A sentence for every prompt").fill("The quay closes at noon.")
    await asking.get_by_role("button", name="Pin it").click()
    await asking.locator(".part").filter(has_text="left").get_by_role("button", name="Bring back").first.click()
    await asking.get_by_text("with the next message", exact=True).wait_for()
    await asking.close()
    timeline = await site.api.get(f"/dashboard/threads/{thread}")
    assert timeline.status_code == 200
    ahead = [one for one in (" masked: ", "compacted into summary") if one in timeline.text][-1]
    changed = timeline.text.partition(ahead)[0].rpartition("/calls/")[2].partition('"')[0]
    views = {
        "threads": "",
        "thread": f"/threads/{thread}",
        "call": f"/threads/{thread}/calls/{changed}",
        "chat": f"/threads/{thread}/chat",
        "messages": f"/threads/{thread}/messages",
        "compaction": f"/threads/{thread}/compaction",
        "why": f"/threads/{thread}/why?q=Here is table 2",
        "notes": "/notes",
        "spend": "/spend",
        "note": f"/notes/{note}",
    }

    for scheme in ("light", "dark"):
        for width in (1280, 360):
            page = await site.page(viewport={"width": width, "height": 900}, color_scheme=scheme)
            for name, path in views.items():
                await page.goto(f"{site.url}/dashboard{path}")
                assert await page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
                if folder := os.environ.get("DASHBOARD_PICTURES"):
                    file = f"dashboard-{name}-{scheme}-{width}.png"
                    if folder != "1" or file in KEPT:
                        await page.screenshot(path=(PICTURES if folder == "1" else Path(folder)) / file)
            await page.close()
