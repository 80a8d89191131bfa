"""The dashboard in an app that the one of `create_app` is mounted into."""

import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from everthread.web import ApiKeys
from everthread.web.auth import new_key
from everthread.web.dashboard.session import COOKIE
from web_worker import MakeWorker, Worker

AT = "/a%20b/dashboard"


@pytest.fixture
def mounted(worker: MakeWorker, tmp_path: Path) -> tuple[Worker, httpx.AsyncClient, str]:
    """A worker that is mounted twice, a browser at the outer app, and a key."""
    key, line = new_key("ada")
    (tmp_path / "keys").write_text(f"{line}\n")
    one = worker("Hello.", auth=ApiKeys(tmp_path / "keys"))
    outer = Starlette(routes=[Mount("/a b", one.app), Mount("/other", one.app)])
    browser = httpx.AsyncClient(transport=httpx.ASGITransport(outer), base_url="http://testserver")
    one.opened.append(browser)
    return one, browser, key


async def signed_in(browser: httpx.AsyncClient, key: str) -> httpx.Response:
    return await browser.post(f"{AT}/sign-in", data={"credential": key})


def addresses(page: str) -> list[str]:
    """Return where links, forms, files and streams of a page lead to, but for those on the page itself."""
    found = re.findall(r'(?:href|src|action|sse-connect)="([^"]*)"', page)
    return [one for one in found if not one.startswith(("#", "data:"))]


@pytest.mark.parametrize("path", ["/a%20b/", AT])
async def test_who_is_not_signed_in_is_led_to_where_they_can(mounted: Any, path: str) -> None:
    _, browser, _ = mounted

    shown = await browser.get(path, follow_redirects=True)

    assert (shown.status_code, shown.url.raw_path.decode()) == (200, f"{AT}/sign-in")
    assert {one.partition("/static/")[0] for one in addresses(shown.text)} >= {AT, f"{AT}/sign-in"}


async def test_the_files_of_a_mounted_page_are_for_anybody(mounted: Any) -> None:
    _, browser, _ = mounted
    page = (await browser.get(f"{AT}/sign-in")).text

    files = [await browser.get(one) for one in addresses(page) if "/static/" in one]

    assert [one.status_code for one in files] == [200] * 4


async def test_a_browser_signs_in_to_and_out_of_a_mounted_page(mounted: Any) -> None:
    _, browser, key = mounted

    answered = await signed_in(browser, key)
    page = await browser.get(answered.headers["location"])
    paths = [one.path for one in browser.cookies.jar]
    (token,) = set(re.findall(r'name="token" value="([^"]+)"', page.text))
    left = await browser.post(f"{AT}/sign-out", data={"token": token})

    assert (answered.headers["location"], page.status_code) == (AT, 200)
    assert paths == [AT]
    assert (left.headers["location"], COOKIE in browser.cookies) == (f"{AT}/sign-in", False)


async def test_a_conversation_on_a_mounted_page_stays_there(mounted: Any) -> None:
    one, browser, key = mounted
    page = await browser.get((await signed_in(browser, key)).headers["location"])
    (token,) = set(re.findall(r'name="token" value="([^"]+)"', page.text))

    chat = (await browser.post(f"{AT}/threads", data={"token": token})).headers["location"]
    said = await browser.post(chat, data={"token": token, "message": "Hi."})
    await one.until(lambda: not one.app.state.service.runs.is_live(chat.split("/")[-2]))
    thread = chat.removesuffix("/chat")
    pages = [(await browser.get(path)).text for path in (AT, chat, thread, f"{thread}/messages", f"{AT}/notes")]

    assert said.headers["location"] == chat
    assert "Hello." in pages[1]
    assert all(each.startswith(AT) for page in pages for each in addresses(page))


async def test_a_refusal_on_a_mounted_page_is_a_page(mounted: Any) -> None:
    _, browser, key = mounted
    await signed_in(browser, key)

    shown = await browser.get(f"{AT}/threads/none")

    assert (shown.status_code, shown.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert all(each.startswith(AT) for each in addresses(shown.text))


async def test_an_outer_app_that_runs_the_lifespan_stops_the_runs_at_its_end(worker: MakeWorker) -> None:
    app = worker().app
    outer = Starlette(routes=[Mount("/everthread", app)], lifespan=lambda _: app.router.lifespan_context(app))

    async with outer.router.lifespan_context(outer):
        assert not app.state.service.runs.is_closed

    assert app.state.service.runs.is_closed
