"""Routes that steer a thread: what the prompts to come have, its next compaction, and forks."""

from collections.abc import Sequence

from everthread.compactions import compact_now, preview
from everthread.forks import fork
from everthread.steering import bring_back, mask_result, pin_message, pin_sentence, steering, withdraw
from everthread.web.operations import Call, Operation
from everthread.web.problems import Problem
from everthread.web.schemas import Document, Fork, NewFork, NewSteering, Steering, SteeringList
from everthread.web.service import in_thread


async def list_steering(call: Call) -> SteeringList:
    """Read what is pinned, and what waits for the thread's next message, the oldest first."""
    own = await call.own_thread()
    every = await in_thread(steering, own.storage, own.id)
    return SteeringList(steering=[Steering.of(one) for one in every])


async def steer(call: Call) -> Steering:
    """Bring a message back, mask a tool result, or pin a message or a sentence; done with the next message."""
    own, body = await call.own_thread(), call.body
    if body.action == "pin" and body.message_id is None:
        asked = await in_thread(pin_sentence, own.storage, own.id, body.text, actor=own.user_id)
    else:
        do = {"bring_back": bring_back, "mask": mask_result, "pin": pin_message}[body.action]
        asked = await in_thread(do, own.storage, own.id, body.message_id, actor=own.user_id)
    return Steering.of(asked)


async def withdraw_steering(call: Call) -> Steering:
    """Unpin something, or take back what waits for the next message."""
    own, name = await call.own_thread(), call.path["steer_id"]
    every = await in_thread(steering, own.storage, own.id)
    if name not in [one.id for one in every]:
        raise Problem(404, "nothing of this id is pinned or waits")
    return Steering.of(await in_thread(withdraw, own.storage, own.id, name, actor=own.user_id))


async def preview_compaction(call: Call) -> Document:
    """Read what the next compaction would do, with its price and what it saves; nothing is changed."""
    own = await call.own_thread()
    return (await in_thread(preview, own.graph, own.id)).as_json()


async def compact_thread(call: Call) -> Document:
    """Compact the thread now; returns what was planned just before."""
    own = await call.own_thread()
    return (await in_thread(compact_now, own.graph, own.id, actor=own.user_id)).as_json()


async def fork_thread(call: Call) -> Fork:
    """Go on from where a call was about to be made; what came after it stays as another branch."""
    own = await call.own_thread()
    forked = await in_thread(fork, own.graph, own.id, call.body.call, actor=own.user_id)
    return Fork(thread_id=forked.thread_id, call=forked.call, left_call=forked.left_call)


_AT = "/threads/{thread_id}"

STEERING: Sequence[Operation] = (
    Operation("GET", f"{_AT}/steering", list_steering, SteeringList),
    Operation("POST", f"{_AT}/steering", steer, Steering, body=NewSteering, status=201),
    Operation("DELETE", f"{_AT}/steering/{{steer_id}}", withdraw_steering, Steering),
    Operation("GET", f"{_AT}/compaction", preview_compaction, Document, problems=[409, 422]),
    Operation("POST", f"{_AT}/compaction", compact_thread, Document, problems=[409, 422, 502]),
    Operation("POST", f"{_AT}/fork", fork_thread, Fork, body=NewFork, problems=[409]),
)
