"""The views of the page, and what each one shows."""

from collections.abc import Sequence
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from everthread.calls import prompt_changes, prompt_in_turn
from everthread.ledger import events_of_turns
from everthread.ledger.events import ModelCalled, PromptAssembled
from everthread.plain import plain
from everthread.storage.open import Storage
from everthread.storage.reading import reader_of, records, user_records
from everthread.storage.recall import search_said
from everthread.storage.thread_source import newest_event
from everthread.web.dashboard import chat, memory, spending, steer
from everthread.web.dashboard.prompt import changed_lines, shown_parts, text_of
from everthread.web.dashboard.render import PLAIN_POLICY, STATIC, page, static_file
from everthread.web.dashboard.session import Sessions
from everthread.web.dashboard.timeline import bar_of, timeline, timeline_values
from everthread.web.dashboard.views import PREFIX, View, Visit, place, read_form, refused
from everthread.web.operations import event_stream
from everthread.web.problems import Problem
from everthread.web.service import in_thread, summary_of
from everthread.window.tokens import counter_for

_THREADS = 25
"""Threads of a page."""

_SAID = 1_000
"""Messages with words of a search that are looked for in all threads of a user."""

_PARTS = 100
"""Messages of a prompt on a page."""


async def threads(visit: Visit) -> Response:
    """List the caller's threads with the size of the newest prompt of each, or those in which something was said."""
    offset, words = visit.number("offset"), visit.word("q")

    def read() -> tuple[int, list[dict[str, Any]], int]:
        store = visit.service.storage.store
        every = [summary_of(one) for one in user_records(store, visit.identity.user_id)]
        said = {one.thread: one for one in reversed(search_said(store, visit.identity.user_id, words, _SAID))}
        found = [one for one in every if one["id"] in said or words.lower() in _name_of(one)]
        shown = found[offset : offset + _THREADS]
        ids, storage = [one["id"] for one in shown], visit.service.storage
        sizes, holders, reader = storage.tables.bytes_of(ids), storage.locks.holders(ids), reader_of(storage)
        statuses = visit.service.statuses(ids)
        for one in shown:
            one["said"] = said.get(one["id"])
            event = newest_event(reader, one["id"], "prompt_assembled")
            one |= {"bytes": sizes[one["id"]], "holder": holders.get(one["id"], "")}
            one["status"] = statuses[one["id"]]
            one |= {"prompt": event, "bar": bar_of(event) if isinstance(event, PromptAssembled) else None}
        # Only who started the server can name another user.
        others = len(records(store)) if visit.identity.method == "local" and not every else 0
        return len(found), shown, others

    total, shown, others = await in_thread(read)
    return visit.page(
        "threads.html",
        threads=shown,
        total=total,
        others=others,
        q=words,
        newer=max(offset - _THREADS, 0) if offset else None,
        older=offset + _THREADS if offset + _THREADS < total else None,
        agents=list(visit.service.graphs),
    )


def _name_of(summary: dict[str, Any]) -> str:
    return f"{summary['id']} {summary['first_message']} {summary['agent']}".lower()


async def thread(visit: Visit) -> Response:
    """Show the calls of a thread as bars against the window, the newest first."""
    own = await visit.own_thread()
    values = await in_thread(timeline_values, own.storage, own.record, visit.number("before"))
    return visit.thread_page("thread.html", own, **values)


async def live(visit: Visit) -> Response:
    """Send the timeline again whenever a call is made."""
    own = await visit.own_thread()
    return event_stream(visit.request.app.state.timelines.follow(place(visit.request), own.record))


async def call(visit: Visit) -> Response:
    """Show the exact prompt of a call, what changed since the call before, and what left."""
    own = await visit.own_thread()
    start = visit.number("from")
    turn = visit.number("turn") or None
    values = await in_thread(_call_values, own.storage, own.id, visit.path["call"], turn)
    shown = values["every"][start : start + _PARTS]
    later = start + _PARTS if start + _PARTS < len(values["every"]) else None
    earlier = max(start - _PARTS, 0) if start else None
    return visit.thread_page("call.html", own, shown=shown, later=later, earlier=earlier, **values)


def _call_values(storage: Storage, thread_id: str, name: str, turn: int | None) -> dict[str, Any]:
    sent, before = prompt_in_turn(storage, thread_id, name, turn)
    first = before.event.turn if before else sent.event.turn
    recorded = events_of_turns(storage.store, thread_id, first, sent.event.turn)
    differences = prompt_changes(before, sent, recorded) if before else []
    rows, _ = timeline(recorded)
    return {
        "sent": sent,
        "layout": bar_of(sent.event),
        "every": shown_parts(sent, differences),
        "before": before,
        "came": [one for one in differences if one.kind == "came"],
        "changed": [one for one in differences if one.kind == "changed"],
        "left": [one for one in differences if one.kind == "left"],
        "called": next((one for one in recorded if isinstance(one, ModelCalled) and one.call == sent.name), None),
        "decisions": next((row.changes for row in reversed(rows) if row.name == sent.name), []),
        "count": counter_for(sent.model or None).accuracy,
        "text": text_of,
        "lines": changed_lines,
    }


async def part(visit: Visit) -> Response:
    """Return one message of a prompt in full, as plain text."""
    own, place = await visit.own_thread(), visit.path["place"]
    sent, _ = await in_thread(prompt_in_turn, own.storage, own.id, visit.path["call"], visit.number("turn") or None)
    parts = sent.parts or ()
    found = parts[int(place)] if place.isdecimal() and len(place) < 10 and int(place) < len(parts) else None
    if found is None or found.message is None:
        raise Problem(404, "there is no such message in this prompt")
    return PlainTextResponse(plain(text_of(found.message)), headers={"content-security-policy": PLAIN_POLICY})


async def sign_out(visit: Visit) -> Response:
    """Forget the key or token of this browser."""
    response = visit.see_other("sign-in")
    visit.request.app.state.sessions.end(response, place(visit.request))
    return response


VIEWS: Sequence[View] = (
    View("GET", "", threads),
    View("GET", "/threads/{thread_id}", thread),
    View("GET", "/threads/{thread_id}/live", live),
    View("GET", "/threads/{thread_id}/calls/{call}", call),
    View("GET", "/threads/{thread_id}/calls/{call}/parts/{place}", part),
    View("POST", "/threads", chat.create),
    View("GET", "/threads/{thread_id}/chat", chat.chat),
    View("GET", "/threads/{thread_id}/chat/live", chat.chat_live),
    View("POST", "/threads/{thread_id}/chat", chat.say),
    View("POST", "/threads/{thread_id}/chat/answers", chat.answer),
    View("POST", "/threads/{thread_id}/chat/resume", chat.go_on),
    View("POST", "/threads/{thread_id}/chat/stop", chat.stop),
    View("GET", "/threads/{thread_id}/compaction", memory.compaction),
    View("POST", "/threads/{thread_id}/compaction", memory.compact),
    View("GET", "/threads/{thread_id}/messages", steer.messages),
    View("POST", "/threads/{thread_id}/steer/{action}", steer.steer),
    View("POST", "/threads/{thread_id}/end", memory.end),
    View("GET", "/threads/{thread_id}/why", memory.why),
    View("GET", "/spend", spending.spend),
    View("GET", "/notes", memory.notes),
    View("POST", "/notes", memory.save_note),
    View("GET", "/notes/{note_id}", memory.note),
    View("POST", "/notes/{note_id}/{action}", memory.change),
    View("POST", "/sign-out", sign_out),
)
"""Every view that asks who is calling."""

PUBLIC = frozenset({f"{PREFIX}/sign-in", *(f"{PREFIX}/static/{name}" for name in STATIC)})
"""Paths that anybody may load."""


async def _sign_in(request: Request) -> Response:
    """Ask for a key or token, and keep it in a cookie once the server knows whose it is."""
    sessions: Sessions = request.app.state.sessions
    at = place(request)
    values = {"at": at, "user": "", "method": "", "token": "", "wrong": ""}
    if request.method == "GET":
        return page("sign_in.html", values)
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return refused(Problem(403, "sign in from this page, and not from one of another site"), request)
    client = request.client.host if request.client else "unknown"
    if seconds := request.app.state.sign_ins.wait_seconds(client):
        problem = {**values, "wrong": f"Too many tries; wait {int(seconds) + 1} s."}
        return page("sign_in.html", problem, 429)
    try:
        credential = (await read_form(request, request.app.state.limits.body_bytes)).get("credential", "").strip()
    except Problem as problem:
        return page("sign_in.html", {**values, "wrong": problem.detail}, problem.status)
    known = None
    if sessions.can_hold(credential):
        known = await request.app.state.auth.identify({"authorization": f"Bearer {credential}"})
    if known is None:
        return page("sign_in.html", {**values, "wrong": "Nobody has this key or token."}, 401)
    response = RedirectResponse(at, 303)
    await sessions.begin(request, response, credential, at)
    return response


async def _static(request: Request) -> Response:
    name = str(request.path_params["name"])
    if name not in STATIC:
        raise HTTPException(404)
    headers = {"cache-control": "public, max-age=3600", "x-content-type-options": "nosniff"}
    return Response(static_file(name), media_type=STATIC[name], headers=headers)


def page_routes() -> list[Route]:
    """Return the routes of the page."""
    views = [Route(PREFIX + one.path, one.handle, methods=[one.method], name=one.name) for one in VIEWS]
    return [
        *views,
        Route(f"{PREFIX}/sign-in", _sign_in, methods=["GET", "POST"]),
        Route(f"{PREFIX}/static/{{name}}", _static),
    ]
