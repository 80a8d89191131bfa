"""The route table, and what each route does."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from starlette.responses import StreamingResponse

from everthread.errors import NotFoundError
from everthread.graph.ending import end_thread
from everthread.graph.note_changes import add_note
from everthread.state import Note
from everthread.storage.erasure import erase
from everthread.storage.export import document
from everthread.storage.reading import reader_of, user_notes, user_records
from everthread.storage.thread_source import newest_event, page_of_events
from everthread.web.operations import PING, PING_SECONDS, Answer, Call, Operation, event_stream, root_of
from everthread.web.problems import Problem, problem_of
from everthread.web.runs import Event, LiveRun
from everthread.web.schemas import (
    Answers,
    ConfirmForget,
    Context,
    Document,
    Health,
    LedgerPage,
    LedgerQuery,
    Me,
    Message,
    MessagePage,
    MessageQuery,
    NewNote,
    NewRun,
    NewThread,
    NoteChange,
    NoteList,
    NoteText,
    PageQuery,
    Run,
    SessionNote,
    Thread,
    ThreadPage,
    ThreadSummary,
    WhyQuery,
)
from everthread.web.service import OwnThread, in_thread, summary_of
from everthread.web.steering_routes import STEERING

_LOOK_SECONDS = 1.0
"""Between two looks at a run of another worker."""


async def healthz(call: Call) -> Health:
    """Tell that the process answers."""
    return Health(status="ok")


async def readyz(call: Call) -> Health:
    """Tell that the database answers and new runs are taken; a load balancer asks this."""
    if call.service.runs.is_closed:
        raise Problem(503, "the server is stopping")
    try:
        async with asyncio.timeout(call.request.app.state.limits.ready_seconds):
            await call.service.storage.store.aget(("sessions",), "readyz")
    except Exception as error:
        problem_of(error)
        raise Problem(503, "the database does not answer") from error
    return Health(status="ok")


async def me(call: Call) -> Me:
    """Tell who the caller is."""
    return Me(user_id=call.identity.user_id, method=call.identity.method)  # type: ignore[arg-type]


# Threads.


async def list_threads(call: Call) -> ThreadPage:
    """List the caller's threads, the latest activity first."""
    records = await in_thread(user_records, call.service.storage.store, call.identity.user_id)
    page = records[call.query.offset : call.query.offset + call.query.limit]
    statuses = await in_thread(call.service.statuses, [str(one["thread_id"]) for one in page])
    threads = [ThreadSummary(**summary_of(one), status=statuses[str(one["thread_id"])]) for one in page]
    return ThreadPage(threads=threads, total=len(records))


async def create_thread(call: Call) -> Answer:
    """Create a thread; the server chooses its id."""
    thread = await call.service.create(call.identity, call.body.agent)
    return Answer(thread, 201, _place(call, "threads", thread.id))


async def get_thread(call: Call) -> Thread:
    """Read a thread and its state: whether a run goes on, and what it waits for."""
    return await call.service.thread(await call.own_thread())


async def list_messages(call: Call) -> MessagePage:
    """Read the transcript, a page of messages oldest first; `before` leads to the page ahead of it."""
    own = await call.own_thread()
    view, start = await in_thread(own.page, call.query.before, call.query.limit)
    page = [Message(**view.message_value(one)) for one in view.messages]
    return MessagePage(messages=page, total=view.places, before=page[0].id if start and page else None)


async def get_context(call: Call) -> Context:
    """Read what fills the prompt: sizes of the newest one, and what the next one is made from."""
    own = await call.own_thread()
    view = await in_thread(lambda: own.view(whole=False))
    prompt = await in_thread(newest_event, reader_of(own.storage), own.id, "prompt_assembled")
    return Context(
        prompt=None if prompt is None else prompt.model_dump(mode="json"),
        messages=[Message(**view.message_value(one)) for one in view.messages],
        summary=view.summary,
        session_notes=view.notes,
    )


async def get_ledger(call: Call) -> LedgerPage:
    """Read what was decided: evicted, masked, injected, saved, blocked, and with which numbers."""
    own = await call.own_thread()
    kinds = [call.query.kind] if call.query.kind else []
    page, total = await in_thread(
        page_of_events, reader_of(own.storage), own.id, kinds, call.query.offset, call.query.limit
    )
    return LedgerPage(events=[one.model_dump(mode="json") for one in page], total=total)


async def why(call: Call) -> Document:
    """Explain where something is now, how it came there, and what depends on it."""
    own = await call.own_thread()

    explanations, is_exact = await in_thread(own.why, call.query.q)
    accounts = [one.as_json() for one in explanations]
    return {"thread_id": own.id, "asked": call.query.q, "exact": is_exact, "accounts": accounts}


async def end_session(call: Call) -> Document:
    """End the session of a thread: what lasts becomes long-term. The thread can go on."""
    own = await call.own_thread()
    ending = await in_thread(end_thread, own.graph_here, own.storage, own.id, own.user_id)
    return ending.as_json()


async def delete_thread(call: Call) -> Document:
    """Erase a thread for good, with what came from it and from nowhere else; the answer is a receipt."""
    own = await call.own_thread()
    return _receipt((await in_thread(erase, own.storage, thread_id=own.id)).as_json())


# Runs.


async def start_run(call: Call) -> Any:
    """Send a message and get its answer: at once, as a stream of events, or in the background.

    The run goes on when the client leaves, and can be read or followed again under the message's id.
    """
    own = await call.own_thread()
    return await _answered(call, await call.service.start(own, call.body))


async def resume(call: Call) -> Any:
    """Answer what a run asks, several at once by their ids, or go on with a turn that was cut off."""
    own = await call.own_thread()
    return await _answered(call, await call.service.resume(own, call.body))


async def get_run(call: Call) -> Run:
    """Read what became of a run, whichever worker it was on."""
    return await call.service.run(await call.own_thread(), call.path["run_id"])


async def follow_run(call: Call) -> StreamingResponse:
    """Follow a run from its beginning, or from behind `Last-Event-ID`.

    One that goes on at another worker, or is over, has only its first and its last event.
    """
    own = await call.own_thread()
    live = call.service.runs.find(own.id, call.path["run_id"])
    if live is None:
        run = await call.service.run(own, call.path["run_id"])
        return _stream(_elsewhere(call, own, run))
    return _stream(live.follow(call.request.headers.get("last-event-id", "")))


async def cancel_run(call: Call) -> Answer:
    """Cancel a run; 202 when it is another worker's, which stops within seconds. Its turn is kept."""
    run, is_over = await call.service.cancel(await call.own_thread(), call.path["run_id"])
    return Answer(run, 200 if is_over else 202, {})


# Notes.


async def list_notes(call: Call) -> NoteList:
    """Read what is remembered about the caller: long-term notes, and those of each thread's session."""
    long_term, session = await in_thread(user_notes, call.service.storage.store, call.identity.user_id)
    of_threads = [SessionNote(thread_id=thread_id, note=note) for note, thread_id in session]
    return NoteList(long_term=long_term, session=of_threads)


async def create_note(call: Call) -> Note:
    """Save a long-term note in the caller's own words; the guard refuses what is never stored."""
    return await in_thread(add_note, call.service.storage, call.identity.user_id, call.body.text)


async def get_note(call: Call) -> Document:
    """Read a note, where it comes from and what became of it."""
    return (await in_thread(call.service.note_history, call.identity, call.path["note_id"])).as_json()


async def edit_note(call: Call) -> NoteChange:
    """Give a note other words; the old ones are kept as history."""
    return await _change(call, "edit", call.body.text)


async def confirm_note(call: Call) -> NoteChange:
    """Say that a note holds; also brings a retracted one back."""
    return await _change(call, "confirm")


async def retract_note(call: Call) -> NoteChange:
    """Withdraw a note: it is in no prompt from now on."""
    return await _change(call, "retract")


async def delete_note(call: Call) -> NoteChange:
    """Delete a note for good, with its history and the texts of prompts that showed it."""
    return await _change(call, "forget")


# All that is the caller's.


async def export(call: Call) -> Document:
    """Export everything that is held of the caller."""
    try:
        return await in_thread(document, call.service.storage, call.identity.user_id)
    except NotFoundError as error:
        raise Problem(404, "nothing is held of you") from error


async def forget(call: Call) -> Document:
    """Erase everything of the caller for good, once `confirm` names them; the answer is a receipt."""
    if call.body.confirm != call.identity.user_id:
        raise Problem(422, "`confirm` must be your user id: everything that is held of you is erased for good")
    try:
        receipt = await in_thread(erase, call.service.storage, user_id=call.identity.user_id)
    except NotFoundError as error:
        raise Problem(404, "nothing is held of you") from error
    return _receipt(receipt.as_json())


def _receipt(receipt: Document) -> Document:
    """Return what the caller may see of a receipt: nothing of the server's files, nor of others' threads."""
    return {name: value for name, value in receipt.items() if name not in ("database", "searched", "threads_of_nobody")}


async def _change(call: Call, action: str, text: str = "") -> NoteChange:
    changed = await in_thread(call.service.change_note, call.identity, call.path["note_id"], action, text)
    return NoteChange(action=action, notes=changed.notes, profile_field=changed.field or None)


async def _answered(call: Call, live: LiveRun) -> Any:
    """Answer in the way that the client wants."""
    place = _place(call, "threads", live.thread_id, "runs", live.run_id)
    # A refusal has to become a status: nobody hears of one behind it, and its message is not kept.
    if call.body.background:
        await live.taken()
        run = Run(id=live.run_id, thread_id=live.thread_id, status="running", reply=None, reply_id=None, interrupts=[])
        return Answer(run, 202, place)
    if call.body.stream:
        await live.begun()
        return _stream(live.follow())
    await live.over()
    if live.problem is not None:
        raise live.problem
    return Answer(live.result, 200, place)


def _place(call: Call, *parts: str) -> dict[str, str]:
    """Return the header that says where something is, also in an app that this one is mounted into."""
    return {"location": "/".join([root_of(call.request), *(quote(part, safe="") for part in parts)])}


def _stream(stream: AsyncIterator[Event]) -> StreamingResponse:
    return event_stream(_encoded(stream))


async def _encoded(stream: AsyncIterator[Event]) -> AsyncIterator[bytes]:
    """Yield events as they come, and a comment where nothing comes for a while."""
    following: asyncio.Future[Event | None] | None = None
    try:
        while True:
            following = following or asyncio.ensure_future(anext(stream, None))
            done, _ = await asyncio.wait([following], timeout=PING_SECONDS)
            if not done:
                yield PING
                continue
            event, following = following.result(), None
            if event is None:
                return
            yield event.encode()
    finally:
        if following is not None:
            following.cancel()
            with suppress(asyncio.CancelledError):
                await following


async def _elsewhere(call: Call, own: OwnThread, run: Run) -> AsyncIterator[Event]:
    """Yield what another worker, or any, can tell of a run: that it is, and what became of it."""
    yield Event("0.0", "run", {"id": run.id, "thread_id": own.id})
    try:
        while run.status == "running" and not call.service.runs.is_closed:
            await asyncio.sleep(_LOOK_SECONDS)
            run = await call.service.run(own, run.id)
    except Exception as error:  # noqa: BLE001 - such as a thread that was erased meanwhile
        yield Event("0.1", "error", problem_of(error).as_json())
    else:
        yield Event("0.1", "done", run)


_RUN_PROBLEMS = (404, 409, 502, 503)

OPERATIONS: Sequence[Operation] = (
    Operation("GET", "/healthz", healthz, Health, is_public=True),
    Operation("GET", "/readyz", readyz, Health, is_public=True, problems=[503]),
    Operation("GET", "/me", me, Me),
    Operation("GET", "/me/export", export, Document, problems=[404]),
    Operation("POST", "/me/forget", forget, Document, body=ConfirmForget, problems=[404, 409]),
    Operation("GET", "/threads", list_threads, ThreadPage, query=PageQuery),
    Operation("POST", "/threads", create_thread, ThreadSummary, body=NewThread, status=201),
    Operation("GET", "/threads/{thread_id}", get_thread, Thread),
    Operation("DELETE", "/threads/{thread_id}", delete_thread, Document, problems=[409]),
    Operation("GET", "/threads/{thread_id}/messages", list_messages, MessagePage, query=MessageQuery),
    Operation("GET", "/threads/{thread_id}/context", get_context, Context),
    Operation("GET", "/threads/{thread_id}/ledger", get_ledger, LedgerPage, query=LedgerQuery),
    Operation("GET", "/threads/{thread_id}/why", why, Document, query=WhyQuery),
    *STEERING,
    Operation("POST", "/threads/{thread_id}/end", end_session, Document, problems=[409]),
    Operation("POST", "/threads/{thread_id}/runs", start_run, Run, body=NewRun, problems=_RUN_PROBLEMS, streams=True),
    Operation("POST", "/threads/{thread_id}/resume", resume, Run, body=Answers, problems=_RUN_PROBLEMS, streams=True),
    Operation("GET", "/threads/{thread_id}/runs/{run_id}", get_run, Run),
    Operation("GET", "/threads/{thread_id}/runs/{run_id}/stream", follow_run, None, streams=True),
    Operation("POST", "/threads/{thread_id}/runs/{run_id}/cancel", cancel_run, Run),
    Operation("GET", "/notes", list_notes, NoteList),
    Operation("POST", "/notes", create_note, Note, body=NewNote, status=201, problems=[409]),
    Operation("GET", "/notes/{note_id}", get_note, Document),
    Operation("DELETE", "/notes/{note_id}", delete_note, NoteChange, problems=[409]),
    Operation("PATCH", "/notes/{note_id}", edit_note, NoteChange, body=NoteText, problems=[409]),
    Operation("POST", "/notes/{note_id}/confirm", confirm_note, NoteChange, problems=[409, 422]),
    Operation("POST", "/notes/{note_id}/retract", retract_note, NoteChange, problems=[409, 422]),
)
"""Every route of the API; the OpenAPI document and the tests of who may see what are made from it."""
