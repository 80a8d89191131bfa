"""Talking on the page: the messages of the working set, the turn that goes on, and what it asks."""

import json
import time
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Any

from starlette.responses import Response

from everthread.graph.turn_parts import question
from everthread.state.marks import is_masked, is_synthetic
from everthread.storage.reading import role_of
from everthread.web.dashboard.live import watch
from everthread.web.dashboard.prompt import text_of
from everthread.web.dashboard.render import render
from everthread.web.dashboard.views import Visit
from everthread.web.operations import event_stream, validated
from everthread.web.problems import Problem
from everthread.web.runs import Event, LiveRun
from everthread.web.schemas import Answers, NewRun
from everthread.web.service import OwnThread, in_thread, summary_of

_MESSAGES = 60
"""Messages of a page, the newest ones."""

_YES, _NO = "yes", "no"


async def create(visit: Visit) -> Response:
    """Begin a thread."""
    thread = await visit.service.create(visit.identity, visit.body.get("agent") or None)
    return visit.see_other("threads", thread.id, "chat")


async def chat(visit: Visit) -> Response:
    """Show the messages that the next prompt is made from, and what the thread waits for."""
    own = await visit.own_thread()
    live = visit.service.runs.on_thread(own.id)
    log = await in_thread(_log, own)
    turn = await _turn(visit, own, live, _ids(log))
    return visit.thread_page("chat.html", own, waits=_waits(turn), **log, **turn)


async def chat_live(visit: Visit) -> Response:
    """Send the turn as it grows, and the messages again when it is over."""
    own = await visit.own_thread()
    shown: set[str] = set()
    is_elsewhere, waits = False, visit.word("waits")

    async def changed(live: LiveRun | None) -> AsyncIterator[tuple[str, str]]:
        nonlocal is_elsewhere, waits
        shared = {**visit.shared, "thread": summary_of(own.record)}
        # While a run streams, its messages are those of the stream.
        if live is None or not shown:
            log = await in_thread(_log, own)
            shown.clear()
            shown.update(_ids(log) or {""})
            yield "log", render("log.html", {**shared, **log})
        turn = await _turn(visit, own, live, shown)
        is_elsewhere = live is None and turn["state"] == "running"
        # A form that somebody may be filling in is not sent again.
        if live is not None or waits != _waits(turn) or not turn["asked"]:
            yield "turn", render("turn.html", {**shared, **turn})
        waits = _waits(turn)

    def state(live: LiveRun | None) -> object:
        # What runs elsewhere, or has not yet let go of its thread here, is asked for every second.
        return (live.run_id, len(live.events)) if live else is_elsewhere and int(time.monotonic())

    return event_stream(watch(visit, own.id, state, changed))


async def say(visit: Visit) -> Response:
    """Send a message; the page shows its answer as it comes."""
    own = await visit.own_thread()
    new = validated(NewRun, {"message": visit.body.get("message")})
    return await _begun(visit, own, await visit.service.start(own, new))


async def answer(visit: Visit) -> Response:
    """Answer what the turn asks, several things at once: yes, no, or in words."""
    own = await visit.own_thread()
    answers: dict[str, Any] = {}
    for name, value in visit.body.items():
        kind, _, asked = name.partition(":")
        words = visit.body.get(f"words:{asked}", "").strip()
        if kind == "answer" and (words or value in (_YES, _NO)):
            answers[asked] = words or value == _YES
    if not answers:
        raise Problem(422, "nothing is answered: choose yes or no, or answer in words")
    return await _begun(visit, own, await visit.service.resume(own, validated(Answers, {"answers": answers})))


async def go_on(visit: Visit) -> Response:
    """Go on with a turn that was cut off."""
    own = await visit.own_thread()
    return await _begun(visit, own, await visit.service.resume(own, Answers()))


async def stop(visit: Visit) -> Response:
    """Stop the run; its turn is kept."""
    own = await visit.own_thread()
    thread = await visit.service.thread(own)
    if thread.run_id is not None:
        await visit.service.cancel(own, thread.run_id)
    return visit.see_other("threads", own.id, "chat")


async def _begun(visit: Visit, own: OwnThread, live: LiveRun) -> Response:
    await live.begun()
    return visit.see_other("threads", own.id, "chat")


def _log(own: OwnThread) -> dict[str, Any]:
    """Return the messages of the working set."""
    messages = [one for one in own.snapshot().values.get("messages") or [] if not is_synthetic(one)]
    shown = [
        {
            "id": str(one.id),
            "role": role_of(one),
            "text": text_of(one),
            "name": one.name if one.type == "tool" else "",
            "call": str(getattr(one, "tool_call_id", "")),
            "is_masked": is_masked(one),
            "has_failed": getattr(one, "status", "") == "error",
        }
        for one in messages[-_MESSAGES:]
    ]
    return {"messages": shown, "hidden": max(len(messages) - _MESSAGES, 0)}


def _ids(log: Mapping[str, Any]) -> set[str]:
    """Return the ids of messages, and of the calls whose results are there."""
    return {one[name] for one in log["messages"] for name in ("id", "call") if one[name]}


async def _turn(visit: Visit, own: OwnThread, live: LiveRun | None, shown: Collection[str]) -> dict[str, Any]:
    """Return the turn that goes on here, as far as the messages do not show it, or else what the thread waits for."""
    if live is not None:
        return {"steps": _steps(live.events, shown), "state": "running", "asked": []}
    thread = await visit.service.thread(own)
    asked = [{"id": one.id, "question": question(one.value)} for one in thread.interrupts]
    return {"steps": [], "state": thread.status, "asked": asked}


def _waits(turn: Mapping[str, Any]) -> str:
    """Return what a turn waits for, to compare."""
    return " ".join(one["id"] for one in turn["asked"])


def _steps(events: Sequence[Event], shown: Collection[str]) -> list[dict[str, Any]]:
    """Return texts, calls and results of a run, in the order in which they began."""
    steps: dict[str, dict[str, Any]] = {}
    for event in events:
        match event.kind, event.data:
            case "token", {"message_id": name, "text": text} if name not in shown:
                steps.setdefault(name, {"kind": "text", "text": ""})["text"] += text
            case "tool_call", {"id": name, "name": tool, "args": arguments} if name not in shown:
                text = json.dumps(arguments, ensure_ascii=False, default=str)
                steps[f"call {name}"] = {"kind": "call", "name": tool, "text": text}
            case "tool_result", {"id": name, "name": tool, "status": status, "content": text} if name not in shown:
                steps[name] = {"kind": "result", "name": tool, "text": text, "has_failed": status == "error"}
    return list(steps.values())
