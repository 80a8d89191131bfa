"""The API's own manners: its document, its limits, its errors."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from conversation import call
from everthread import open_storage
from everthread.state import namespaces
from everthread.storage.open import Storage
from everthread.web.openapi import openapi
from everthread.web.routes import OPERATIONS
from everthread.web.sweeping import sweep
from small_agent import AGENT, calls
from web_worker import MakeWorker, new_thread, say


def test_the_document_is_valid() -> None:
    assert list(OpenAPIV31SpecValidator(openapi(OPERATIONS)).iter_errors()) == []


async def test_the_document_has_every_route_and_says_what_it_does(worker: MakeWorker) -> None:
    one = worker()
    document = (await one.client(authorization="").get("/openapi.json")).json()
    described = {(path, method) for path, methods in document["paths"].items() for method in methods}
    routed = {(route.path, method.lower()) for route in one.app.routes for method in route.methods - {"HEAD"}}
    routed = {(path, method) for path, method in routed if not path.startswith("/dashboard")}

    assert described == routed - {("/openapi.json", "get"), ("/", "get")}
    assert all(each["summary"] for methods in document["paths"].values() for each in methods.values())


async def test_the_document_has_the_statuses_of_refusals(worker: MakeWorker, storage: Storage) -> None:
    there, here = worker().client(), worker(agents=[replace(AGENT, name="other")]).client()
    thread = await new_thread(there)
    note = (await there.post("/notes", json={"text": "Prefers aisle seats."})).json()["id"]
    await there.post(f"/notes/{note}/retract")

    again = await there.post(f"/notes/{note}/retract")
    elsewhere = await here.get(f"/threads/{thread}/compaction")
    with storage.locks.hold(namespaces.user_key("ada")):
        busy = await there.post("/notes", json={"text": "Prefers window seats."})

    paths = openapi(OPERATIONS)["paths"]
    assert str(again.status_code) in paths["/notes/{note_id}/retract"]["post"]["responses"]
    assert str(elsewhere.status_code) in paths["/threads/{thread_id}/compaction"]["get"]["responses"]
    assert str(busy.status_code) in paths["/notes"]["post"]["responses"]
    assert [one.status_code for one in (again, elsewhere, busy)] == [422, 409, 409]


async def test_threads_are_listed_by_pages_the_newest_first(worker: MakeWorker) -> None:
    client = worker("Hello.").client()
    first, second = await new_thread(client), await new_thread(client)
    await say(client, first, "Good morning.")

    page = (await client.get("/threads", params={"limit": 1})).json()
    rest = (await client.get("/threads", params={"offset": 1})).json()

    assert (page["total"], page["threads"][0]["id"], page["threads"][0]["first_message"]) == (2, first, "Good morning.")
    assert [thread["id"] for thread in rest["threads"]] == [second]


async def test_messages_are_read_page_by_page_from_the_end(worker: MakeWorker) -> None:
    client = worker("One.", "Two.").client()
    thread = await new_thread(client)
    for text in ("One?", "Two?"):
        await say(client, thread, text)

    newest = (await client.get(f"/threads/{thread}/messages", params={"limit": 3})).json()
    oldest = (await client.get(f"/threads/{thread}/messages", params={"before": newest["before"]})).json()

    assert [one["content"] for one in oldest["messages"] + newest["messages"]] == ["One?", "One.", "Two?", "Two."]
    assert (newest["total"], oldest["before"]) == (4, None)


async def test_context_ledger_and_why_tell_of_a_thread(worker: MakeWorker) -> None:
    client = worker("It is four.").client()
    thread = await new_thread(client)
    await say(client, thread, "What is two and two?")

    context = (await client.get(f"/threads/{thread}/context")).json()
    ledger = (await client.get(f"/threads/{thread}/ledger", params={"kind": "prompt_assembled"})).json()
    why = (await client.get(f"/threads/{thread}/why", params={"q": "four"})).json()

    assert context["prompt"] == ledger["events"][-1]
    assert [one["content"] for one in context["messages"]] == ["What is two and two?", "It is four."]
    assert why["accounts"][0]["facts"][0]["state"] == "said"


async def test_a_note_is_written_edited_retracted_and_confirmed(worker: MakeWorker) -> None:
    client = worker().client()

    made = await client.post("/notes", json={"text": "Prefers aisle seats."})
    edited = (await client.patch(f"/notes/{made.json()['id']}", json={"text": "Prefers window seats."})).json()
    new = next(one["id"] for one in edited["notes"] if one["status"] == "active")
    retracted = (await client.post(f"/notes/{new}/retract")).json()
    confirmed = (await client.post(f"/notes/{new}/confirm")).json()
    read = (await client.get(f"/notes/{new}")).json()

    assert made.status_code == 201
    assert [one["notes"][-1]["status"] for one in (retracted, confirmed)] == ["retracted", "active"]
    assert [one["text"] for one in read["replaced"]] == ["Prefers aisle seats."]
    assert {one["id"] for one in (await client.get("/notes")).json()["long_term"]} == {made.json()["id"], new}


async def test_a_note_that_is_written_again_is_confirmed(worker: MakeWorker) -> None:
    client = worker().client()

    twice = [(await client.post("/notes", json={"text": "Prefers aisle seats."})).json() for _ in range(2)]

    assert twice[0]["id"] == twice[1]["id"]
    assert len((await client.get("/notes")).json()["long_term"]) == 1


async def test_the_guard_refuses_a_note(worker: MakeWorker) -> None:
    refused = await worker().client().post("/notes", json={"text": "The card number is 4111 1111 1111 1111."})

    assert refused.status_code == 422
    assert "never kept as a note" in refused.json()["detail"]


async def test_a_session_ends_and_its_notes_become_long_term(worker: MakeWorker) -> None:
    saves = calls(call("save_memory_note", "c1", text="Prefers aisle seats.", keywords=["seat"]))
    client = worker(saves, "Noted.").client()
    thread = await new_thread(client)
    await say(client, thread, "I prefer aisle seats.")

    ended = (await client.post(f"/threads/{thread}/end")).json()

    assert [one["text"] for one in ended["added"]] == ["Prefers aisle seats."]
    assert (await client.get(f"/threads/{thread}")).json()["session"] == "ended"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{nope", "the body is not valid JSON"),
        (b'{"message": " "}', "`message`: it is empty"),
        (b'{"message": []}', "`message`"),
        (b"{}", "`message`: it is missing"),
        (b'{"message": "hi", "userid": 1}', "`userid`: there is no such field"),
        (b'{"message": "hi", "stream": true, "background": true}', "exclude each other"),
        (b'{"message": "hi", "context": {"windw": 3}}', "did you mean 'window'"),
        (b'{"message": "hi", "context": {"model": "openai:gpt-5"}}', "`model` is fixed"),
        (b'{"message": "hi", "context": {"window": 9000}}', "`window` is fixed"),
        (b'{"message": "hi", "message_id": ""}', "`message_id`"),
        (b'{"message": "hi", "message_id": "a\\u0000b"}', "NUL"),
        (b"[]", "object"),
    ],
)
async def test_a_body_that_is_wrong_is_refused_in_a_sentence(worker: MakeWorker, body: bytes, said: str) -> None:
    client = worker("Hello.", fixed={"window": 16_000}).client()
    thread = await new_thread(client)

    refused = await client.post(f"/threads/{thread}/runs", content=body, headers={"content-type": "application/json"})

    assert refused.status_code == 422
    assert said in refused.json()["detail"]
    assert (await client.get(f"/threads/{thread}/messages")).json()["total"] == 0


@pytest.mark.parametrize(("params", "status"), [({"limit": 0}, 422), ({"limit": "x"}, 422), ({"before": "m"}, 404)])
async def test_a_query_that_is_wrong_is_refused(worker: MakeWorker, params: Any, status: int) -> None:
    client = worker().client()
    thread = await new_thread(client)

    assert (await client.get(f"/threads/{thread}/messages", params=params)).status_code == status


@pytest.mark.parametrize("is_chunked", [False, True])
async def test_a_body_that_is_too_long_is_refused(worker: MakeWorker, is_chunked: bool) -> None:
    client = worker(body_bytes=100).client()

    async def chunks() -> Any:
        for _ in range(20):
            yield b" " * 10

    content = chunks() if is_chunked else b" " * 101
    refused = await client.post("/threads", content=content, headers={"content-type": "application/json"})

    assert refused.status_code == 413


async def test_a_form_is_no_body(worker: MakeWorker) -> None:
    assert (await worker().client().post("/threads", data={"agent": "test"})).status_code == 415


async def test_requests_are_counted_for_each_user(worker: MakeWorker) -> None:
    one = worker(requests_per_minute=2)
    ada, bob = one.client("ada"), one.client("bob")

    statuses = [(await ada.get("/me")).status_code for _ in range(3)]

    assert statuses == [200, 200, 429]
    assert (await bob.get("/me")).status_code == 200


async def test_an_unknown_agent_is_refused_with_the_names(worker: MakeWorker) -> None:
    refused = await worker().client().post("/threads", json={"agent": "nobody"})

    assert refused.status_code == 422
    assert "test" in refused.json()["detail"]


async def test_every_failure_is_a_problem(worker: MakeWorker) -> None:
    client = worker().client()

    answers = [await client.get("/nope"), await client.put("/me"), await client.get("/threads/t-1")]

    assert [one.status_code for one in answers] == [404, 405, 404]
    assert {one.headers["content-type"] for one in answers} == {"application/problem+json"}
    assert {one.headers["cache-control"] for one in answers} == {"no-store"}


async def test_readiness_asks_the_database(worker: MakeWorker) -> None:
    one = worker()
    client = one.client(authorization="")
    ready = await client.get("/readyz")
    one.storage.close()

    assert (ready.status_code, (await client.get("/readyz")).status_code) == (200, 503)
    assert (await client.get("/healthz")).status_code == 200


async def test_a_failing_database_says_nothing_of_itself(worker: MakeWorker) -> None:
    one = worker()
    one.storage.close()

    failed = await one.client().get("/threads")

    assert failed.status_code == 503
    assert "sqlite" not in failed.text.lower()


@pytest.fixture
def lasting(storage: Storage, tmp_path: Path) -> Iterator[Storage]:
    """Open a database that lasts: one in memory keeps nothing that could be erased."""
    if storage.url.startswith("postgresql"):
        yield storage
        return
    with open_storage(f"sqlite:///{tmp_path}/a.db", lock_timeout_seconds=0.05) as opened:
        yield opened


async def test_all_that_is_held_is_exported_and_erased(worker: MakeWorker, lasting: Storage) -> None:
    one = worker("Hello, Ada.", "Hello, Bob.", storage=lasting)
    ada, bob = one.client("ada"), one.client("bob")
    mine, other = await new_thread(ada), await new_thread(bob)
    await say(ada, mine, "I am Ada of the lighthouse.")
    await say(bob, other, "I am Bob of the harbour.")

    exported = (await ada.get("/me/export")).json()
    unsure = await ada.post("/me/forget", json={"confirm": "bob"})
    receipt = (await ada.post("/me/forget", json={"confirm": "ada"})).json()

    assert [thread["messages"][0]["content"] for thread in exported["threads"]] == ["I am Ada of the lighthouse."]
    assert unsure.status_code == 422
    assert (receipt["threads"], receipt["verified"]) == ([mine], True)
    assert "database" not in receipt
    assert {(await ada.get(path)).status_code for path in ("/me/export", f"/threads/{mine}")} == {404}
    assert (await bob.get(f"/threads/{other}")).json()["turns"] == 1


async def test_a_thread_is_erased(worker: MakeWorker, lasting: Storage) -> None:
    client = worker("Hello.", storage=lasting).client()
    gone, kept = await new_thread(client), await new_thread(client)
    await say(client, gone)

    receipt = (await client.delete(f"/threads/{gone}")).json()

    assert (receipt["thread_id"], receipt["verified"]) == (gone, True)
    assert [thread["id"] for thread in (await client.get("/threads")).json()["threads"]] == [kept]


async def test_a_thread_that_is_busy_is_not_erased(worker: MakeWorker, lasting: Storage) -> None:
    client = worker(storage=lasting).client()
    thread = await new_thread(client)

    with lasting.locks.hold(thread):
        refused = await client.delete(f"/threads/{thread}")

    assert refused.status_code == 409


async def test_idle_sessions_are_ended_by_a_round_of_the_timer(worker: MakeWorker) -> None:
    saves = calls(call("save_memory_note", "c1", text="Prefers aisle seats.", keywords=["seat"]))
    one = worker(saves, "Noted.")
    client = one.client()
    thread = await new_thread(client)
    await say(client, thread, "I prefer aisle seats.")

    ended = sweep(one.storage, {AGENT.name: AGENT}, 0.0)

    assert ended == 1
    assert [note["text"] for note in (await client.get("/notes")).json()["long_term"]] == ["Prefers aisle seats."]
