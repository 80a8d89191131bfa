"""Nobody reads or changes what is another user's: every route of the table, for hostile user ids."""

import base64
import hmac
import json
import time
from typing import Any

import pytest

from conversation import call
from everthread.ledger import events
from everthread.storage.open import Storage
from everthread.web.dashboard import PREFIX, VIEWS
from everthread.web.operations import Operation
from everthread.web.routes import OPERATIONS
from small_agent import calls
from web_worker import SECRET, MakeWorker, Worker, new_thread, say

HOSTILE = [
    "аda",  # a Cyrillic a
    "Ada",
    "ADA ",
    "../ada",
    "%2e%2e%2fada",
    "ada/../ada",
    "users",
    "x" * 5_000,
    "' OR user_id = 'ada' --",
    "ada* OR text:ada",
    "ada\u200b",
    "*",
    '{"$ne": null}',
]
UNSTORABLE = ["", "ada\x00", "\ud800ada", None, 7, ["ada"]]
BODIES: dict[str, Any] = {
    "start_run": {"message": "What was the word?"},
    "edit_note": {"text": "Likes nothing."},
    "create_note": {"text": "Likes cherry cake."},
    "create_thread": {},
    "steer": {"action": "pin", "text": "Be brief."},
    "fork_thread": {"call": 1},
    "resume": {},
    "forget": {},
}
"""A valid body for each operation that takes one; a new route fails here until it has one."""
QUERIES = {"why": {"q": "canary"}}
WORD = "quetzalcanary"


async def theirs(worker: MakeWorker, user_id: str) -> tuple[Worker, dict[str, str]]:
    """Give a user a thread with a canary in it, a run that waits, and a note; return what a path needs."""
    wants = calls(call("save_memory_note", "c1", text=f"Wants {WORD} tea.", keywords=["tea"]))
    one = worker(wants, f"The word is {WORD}.", calls(call("approve", "c2", what=WORD)))
    client = one.client(user_id)
    thread = await new_thread(client)
    await say(client, thread, f"I want {WORD} tea. Pass it on.", message_id="m-1")
    pin = {"action": "pin", "text": f"Say {WORD} first."}
    steer = (await client.post(f"/threads/{thread}/steering", json=pin)).json()["id"]
    await say(client, thread, "Buy it.", message_id="m-2")
    note = (await client.post("/notes", json={"text": f"Likes {WORD} cake."})).json()["id"]
    assert WORD in (await client.get(f"/threads/{thread}/messages")).text
    assert (await client.get(f"/threads/{thread}")).json()["status"] == "interrupted"
    return one, {"thread_id": thread, "run_id": "m-2", "note_id": note, "steer_id": steer}


def request_of(one: Operation, path: dict[str, str], user_id: Any = "ada") -> dict[str, Any]:
    assert one.body is None or one.name in BODIES, f"add a valid body of {one.name} to BODIES"
    body = {"json": {**BODIES[one.name], **({"confirm": user_id} if one.name == "forget" else {})}} if one.body else {}
    return {"method": one.method, "url": one.path.format(**path), "params": QUERIES.get(one.name), **body}


def rows(storage: Storage) -> list[Any]:
    """Return all that the store holds."""
    items = storage.store.search((), limit=1_000)
    return sorted((item.namespace, item.key, json.dumps(item.value, sort_keys=True)) for item in items)


async def test_another_users_identity_gets_404(worker: MakeWorker) -> None:
    one, path = await theirs(worker, "ada")
    before = rows(one.storage)

    for user_id in HOSTILE:
        client = one.client(user_id)
        for operation in OPERATIONS:
            if operation.parameters:
                answered = await client.request(**request_of(operation, path))
                assert answered.status_code == 404, (user_id, operation.name, answered.text)
                assert answered.headers["content-type"] == "application/problem+json"
                assert WORD not in answered.text
    assert rows(one.storage) == before


async def test_another_users_pages_are_404(worker: MakeWorker) -> None:
    one, path = await theirs(worker, "ada")
    names = [each.recipe["call"] for each in events(one.storage.store, path["thread_id"]) if hasattr(each, "recipe")]
    path |= {"call": names[-1], "place": "0", "action": "retract"}
    tokens = {user_id: await one.app.state.sessions.form_token(f"sub:{user_id}") for user_id in HOSTILE}
    before = rows(one.storage)

    for user_id in HOSTILE:
        client = one.client(user_id)
        for view in VIEWS:
            if view.parameters or view.method == "GET":
                form = {"data": {"token": tokens[user_id], "text": "x"}} if view.method == "POST" else {}
                # Words that Ada said; the page shows them as what was asked for.
                query = {"params": {"q": "tea pass on"}} if view.method == "GET" else {}
                answered = await client.request(view.method, (PREFIX + view.path).format(**path), **form, **query)
                expected = 404 if view.parameters else 200
                assert answered.status_code == expected, (user_id, view.name, answered.text)
                assert WORD not in answered.text, (user_id, view.name)
                assert path["thread_id"] not in answered.text, (user_id, view.name)
    assert rows(one.storage) == before


async def test_what_is_the_callers_is_not_another_users(worker: MakeWorker) -> None:
    one, path = await theirs(worker, "ada")
    before = rows(one.storage)

    for user_id in HOSTILE:
        client = one.client(user_id)
        for operation in OPERATIONS:
            if not operation.parameters and operation.name not in ("create_note", "create_thread"):
                answered = await client.request(**request_of(operation, path, user_id))
                assert WORD not in answered.text, (user_id, operation.name)
                assert path["thread_id"] not in answered.text, (user_id, operation.name)
    assert rows(one.storage) == before


async def test_a_hostile_user_has_what_is_theirs(worker: MakeWorker) -> None:
    one = worker(*["Hello."] * len(HOSTILE))
    own = {}
    for user_id in HOSTILE:
        own[user_id] = await new_thread(one.client(user_id))
        await say(one.client(user_id), own[user_id])

    for user_id in HOSTILE:
        threads = (await one.client(user_id).get("/threads")).json()
        others = (await one.client("ada").get(f"/threads/{own[user_id]}")).status_code

        assert [thread["id"] for thread in threads["threads"]] == [own[user_id]], user_id
        assert others == 404, user_id


async def test_an_id_that_nobody_can_have_does_not_sign_in(worker: MakeWorker) -> None:
    one, path = await theirs(worker, "ada")

    for user_id in UNSTORABLE:
        client = one.client(user_id) if user_id != "\ud800ada" else one.client(authorization=f"Bearer {surrogate()}")
        for operation in OPERATIONS:
            if not operation.is_public:
                answered = await client.request(**request_of(operation, path))
                assert answered.status_code == 401, (user_id, operation.name)


def surrogate() -> str:
    """Make a valid token whose `sub` holds half of a surrogate pair, which JSON can spell."""

    def encoded(data: bytes) -> str:
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

    claims = json.dumps({"sub": "\ud800ada", "exp": time.time() + 60}).encode()
    signed = f"{encoded(json.dumps({'alg': 'HS256', 'typ': 'JWT'}).encode())}.{encoded(claims)}"
    return f"{signed}.{encoded(hmac.digest(SECRET.encode(), signed.encode(), 'sha256'))}"


@pytest.mark.parametrize("thread_id", ["t/../t", "..%2f..%2fusers", "%00", "x" * 5_000, "sessions", "%ED%A0%80", "."])
async def test_a_hostile_thread_id_is_none(worker: MakeWorker, thread_id: str) -> None:
    client = worker().client()

    answered = await client.get(f"/threads/{thread_id}/messages")

    assert answered.status_code == 404


async def test_no_request_names_its_user(worker: MakeWorker) -> None:
    client = worker("Hello.").client()
    thread = await new_thread(client)

    by_context = await say(client, thread, context={"user_id": "bob"})
    by_body = await say(client, thread, user_id="bob")
    await client.get("/threads", params={"user_id": "bob"}, headers={"x-user": "bob"})

    assert (by_context.status_code, by_body.status_code) == (422, 422)
    assert "user" in by_context.json()["detail"]


async def test_nobody_gets_in_without_signing_in(worker: MakeWorker) -> None:
    one, path = await theirs(worker, "ada")
    client = one.client(authorization="Bearer wrong")

    statuses = {each.name: (await client.request(**request_of(each, path))).status_code for each in OPERATIONS}

    assert {name for name, status in statuses.items() if status != 401} == {"healthz", "readyz"}
