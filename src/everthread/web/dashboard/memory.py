"""What is remembered, why something is where it is, and the next compaction."""

import difflib

import yaml
from starlette.responses import Response

from everthread.compactions import Preview, compact_now, preview
from everthread.errors import SettingsError
from everthread.graph.ending import end_thread
from everthread.graph.note_changes import add_note
from everthread.profiles import get_profile
from everthread.state import Note
from everthread.storage.reading import user_notes
from everthread.web.dashboard.prompt import text_of
from everthread.web.dashboard.source_graph import source_graph
from everthread.web.dashboard.views import Visit
from everthread.web.problems import Problem
from everthread.web.service import OwnThread, in_thread

_NOTES = 100
"""Notes of a page."""


async def notes(visit: Visit) -> Response:
    """List what is remembered about the caller, the newest first."""
    store, user_id = visit.service.storage.store, visit.identity.user_id
    long_term, session = await in_thread(user_notes, store, user_id)
    words, offset = visit.word("q").lower(), visit.number("offset")
    every: list[tuple[Note, str | None]] = [*((one, None) for one in long_term), *session]
    found = [pair for pair in every if words in f"{pair[0].text} {' '.join(pair[0].keywords)}".lower()]
    found.sort(key=lambda pair: (pair[0].status == "active", pair[0].date), reverse=True)
    return visit.page(
        "notes.html",
        profile=[] if words or offset else await in_thread(_profile, visit),
        notes=found[offset : offset + _NOTES],
        total=len(found),
        q=visit.word("q"),
        newer=max(offset - _NOTES, 0) if offset else None,
        older=offset + _NOTES if offset + _NOTES < len(found) else None,
    )


def _profile(visit: Visit) -> list[tuple[str, str]]:
    """Return the fields of the caller's profile, and what they hold as text."""
    profile = get_profile(visit.service.storage, visit.identity.user_id) or {}
    texts = {
        name: one if isinstance(one, str) else yaml.safe_dump(one, allow_unicode=True) for name, one in profile.items()
    }
    return [(name, text.removesuffix("...\n").strip()) for name, text in texts.items()]


async def note(visit: Visit) -> Response:
    """Show a note: where it comes from, what became of it, and what can be done with it."""
    history = await in_thread(visit.service.note_history, visit.identity, visit.path["note_id"])
    return visit.page("note.html", history=history, note=history.note)


async def save_note(visit: Visit) -> Response:
    """Save a long-term note in the caller's own words."""
    text = visit.body.get("text", "")
    saved = await in_thread(add_note, visit.service.storage, visit.identity.user_id, text)
    return visit.see_other("notes", saved.id)


async def change(visit: Visit) -> Response:
    """Edit, confirm, retract or forget a note; an edit leads to the note that took its place."""
    action = visit.path["action"]
    if action not in ("edit", "confirm", "retract", "forget"):
        raise Problem(404, "nothing like this can be done with a note")
    note_id, text = visit.path["note_id"], visit.body.get("text", "")
    changed = await in_thread(visit.service.change_note, visit.identity, note_id, action, text)
    if action == "forget":
        return visit.see_other("notes")
    active = [one.id for one in changed.notes if one.status == "active"]
    return visit.see_other("notes", active[-1] if active else note_id)


async def why(visit: Visit) -> Response:
    """Explain where something is now, how it came there, and what depends on it."""
    own = await visit.own_thread()
    asked = visit.word("q")
    accounts, is_exact = await in_thread(own.why, asked) if asked else ([], True)
    return visit.thread_page(
        "why.html",
        own,
        q=asked,
        accounts=accounts[:50],
        total=len(accounts),
        exact=is_exact,
        graph=source_graph(accounts[:50]),
    )


async def compaction(visit: Visit) -> Response:
    """Show what the next compaction would do, with its price and what it saves."""
    own = await visit.own_thread()
    told, problem = await in_thread(_previewed, own)
    texts = {}
    if told is not None:
        messages = (await in_thread(own.snapshot)).values.get("messages") or []
        texts = {str(one.id): (one.type, text_of(one)) for one in messages}
    lines = list(difflib.ndiff(told.summary_before.splitlines(), told.summary_after.splitlines())) if told else []
    return visit.thread_page(
        "compaction.html",
        own,
        told=told,
        problem=problem,
        texts=texts,
        lines=[(line[:1], line[2:]) for line in lines if line[:1] != "?"],
    )


def _previewed(own: OwnThread) -> tuple[Preview | None, str]:
    try:
        return preview(own.graph, own.id), ""
    except SettingsError as error:
        return None, str(error)


async def compact(visit: Visit) -> Response:
    """Compact the thread now."""
    own = await visit.own_thread()
    await in_thread(compact_now, own.graph, own.id)
    return visit.see_other("threads", own.id, "compaction")


async def end(visit: Visit) -> Response:
    """End the session: what lasts becomes long-term."""
    own = await visit.own_thread()
    await in_thread(end_thread, own.graph_here, own.storage, own.id, own.user_id)
    return visit.see_other("notes")
