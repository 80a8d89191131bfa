"""What the model is to see: the messages of a thread with where each is, and what a person asks for."""

from typing import Any

from langchain_core.messages import BaseMessage
from starlette.responses import Response

from everthread.forks import fork
from everthread.state.marks import is_masked, is_synthetic, sequence
from everthread.state.steering import Steering
from everthread.steering import ACTIONS, steering
from everthread.storage.reading import role_of
from everthread.storage.transcript import message_of
from everthread.web.dashboard.prompt import text_of
from everthread.web.dashboard.views import Visit
from everthread.web.problems import Problem
from everthread.web.service import OwnThread, in_thread

_MESSAGES = 60
"""Places of a thread on a page."""


async def messages(visit: Visit) -> Response:
    """Show the messages of a thread, the newest first: which the next prompt has, which are masked, which left."""
    own = await visit.own_thread()
    values = await in_thread(_values, own, visit.number("before"))
    return visit.thread_page("messages.html", own, **values)


async def steer(visit: Visit) -> Response:
    """Do what a form asks for; it is done with the next message, but for a fork."""
    own, action = await visit.own_thread(), visit.path["action"]
    what = visit.body.get("text" if action == "pin" else "id", "")
    if action == "fork":
        await in_thread(fork, own.graph, own.id, what, actor=own.user_id)
        return visit.see_other("threads", own.id, "chat")
    if action not in ACTIONS:
        raise Problem(404, "nothing like this can be done with a thread")
    await in_thread(ACTIONS[action], own.storage, own.id, what, actor=own.user_id)
    return visit.see_other("threads", own.id, "messages")


def _values(own: OwnThread, before: int) -> dict[str, Any]:
    """Return the messages of a page, those ahead of a place; 0 for the newest."""
    here = [one for one in own.messages() if not is_synthetic(one)]
    end = before or max(map(sequence, here), default=-1) + 1
    start = max(end - _MESSAGES, 0)
    by_id = {str(one.id): one for one in here if start <= sequence(one) < end}
    left = {str(one.id): one for one in map(message_of, own.archived(here, start, end))}
    every = sorted({**left, **by_id}.values(), key=sequence, reverse=True)
    asked = steering(own.storage, own.id)
    of = {one.message_id: one for one in asked if one.message_id}
    return {
        "asked": asked,
        "rows": [_row(one, str(one.id) in by_id, of.get(str(one.id))) for one in every],
        "later": before or None,
        "earlier": start or None,
        "titles": {str(one.id): text_of(one) for one in every},
    }


def _row(message: BaseMessage, is_here: bool, asked: Steering | None) -> dict[str, Any]:
    tag = "left" if not is_here else "masked" if is_masked(message) else "kept"
    return {
        "id": str(message.id),
        "role": role_of(message),
        "name": message.name or "",
        "tag": tag,
        "text": text_of(message),
        "place": sequence(message),
        "asked": asked,
    }
