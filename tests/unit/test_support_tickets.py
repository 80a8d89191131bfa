import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from itertools import product
from typing import get_args

import pytest
from langgraph.store.base import Op, Result
from langgraph.store.memory import InMemoryStore

from everthread.agents.support.tickets import REMOVED, TRANSITIONS, Clock, Status, Ticket, Tickets, redact, render
from everthread.errors import NotFoundError, SettingsError, StorageError
from everthread.state import namespaces

START = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)


def ticking() -> Clock:
    minutes = iter(range(10_000))
    return lambda: START + timedelta(minutes=next(minutes))


@pytest.fixture
def store() -> InMemoryStore:
    return InMemoryStore()


@pytest.fixture
def tickets(store: InMemoryStore) -> Tickets:
    return Tickets(store, "u-1", "t-1", clock=ticking())


def opened(tickets: Tickets, call: str = "call-1", title: str = "VPN drops") -> Ticket:
    return tickets.open(call, title=title, description="Error 809 at home.")


def test_a_call_that_runs_twice_opens_one_ticket(tickets: Tickets) -> None:
    first, second = opened(tickets), opened(tickets)

    assert first == second
    assert tickets.find() == [first]


def test_a_rerun_after_an_update_returns_the_ticket_as_it_is_now(tickets: Tickets) -> None:
    ticket = opened(tickets)
    updated = tickets.update("call-2", ticket.id, comment="Tried a cable.")

    assert opened(tickets) == updated


@pytest.mark.parametrize(
    ("thread", "call", "title"),
    [("t-2", "call-1", "VPN drops"), ("t-1", "call-2", "VPN drops"), ("t-1", "call-1", "Printer offline")],
)
def test_another_thread_call_or_content_opens_another_ticket(
    store: InMemoryStore, tickets: Tickets, thread: str, call: str, title: str
) -> None:
    ticket = opened(tickets)

    other = opened(Tickets(store, "u-1", thread), call, title)

    assert other.id != ticket.id


def test_one_user_never_sees_the_tickets_of_another(store: InMemoryStore, tickets: Tickets) -> None:
    ticket = opened(tickets)
    stranger = Tickets(store, "u-10", "t-1")

    assert stranger.find() == []
    with pytest.raises(NotFoundError, match=ticket.id):
        stranger.update("call-2", ticket.id, comment="Hello")


def test_an_update_that_runs_twice_is_written_once(tickets: Tickets) -> None:
    ticket = opened(tickets)

    first, second = (tickets.update("call-2", ticket.id, comment="Restarted.", status="waiting") for _ in range(2))

    assert first == second
    assert [change.comment for change in second.history] == ["Restarted."]


def test_an_update_that_runs_again_after_a_later_one_changes_nothing(tickets: Tickets) -> None:
    ticket = opened(tickets)
    tickets.update("call-2", ticket.id, status="waiting")
    last = tickets.update("call-3", ticket.id, status="resolved")

    assert tickets.update("call-2", ticket.id, status="waiting") == last


@pytest.mark.parametrize(("before", "after"), list(product(get_args(Status), repeat=2)))
def test_only_the_named_transitions_are_allowed(tickets: Tickets, before: Status, after: Status) -> None:
    ticket = opened(tickets)
    tickets.update("call-2", ticket.id, status=before)
    if after == before or after in TRANSITIONS[before]:
        assert tickets.update("call-3", ticket.id, status=after).status == after
    else:
        with pytest.raises(SettingsError, match=f"is '{before}' and cannot become '{after}'"):
            tickets.update("call-3", ticket.id, status=after)


def test_a_closed_ticket_takes_comments_and_nothing_else(tickets: Tickets) -> None:
    ticket = opened(tickets)
    tickets.update("call-2", ticket.id, status="closed")

    assert tickets.update("call-3", ticket.id, comment="Thanks.").history[-1].comment == "Thanks."
    with pytest.raises(SettingsError, match="is closed; its priority stays 'normal'"):
        tickets.update("call-4", ticket.id, priority="high")


def test_history_keeps_what_changed_and_when_in_utc(tickets: Tickets) -> None:
    ticket = opened(tickets)

    changed = tickets.update("call-2", ticket.id, comment="Gateway west-1 works.", status="resolved", priority="low")

    assert (changed.status, changed.priority, changed.opened_at) == ("resolved", "low", START)
    assert "- 2026-11-21T09:31:00Z: status resolved; priority low; Gateway west-1 works." in render(changed)


def test_a_clock_of_another_zone_is_stored_as_utc(store: InMemoryStore) -> None:
    east = START.astimezone(timezone(timedelta(hours=9)))
    opened(Tickets(store, "u-1", "t-1", clock=lambda: east))

    [item] = store.search(namespaces.user("u-1", "tickets"))

    assert item.value["opened_at"] == "2026-11-21T09:30:00Z"


def test_setting_what_is_already_set_leaves_no_entry(tickets: Tickets) -> None:
    ticket = opened(tickets)

    assert tickets.update("call-2", ticket.id, status="open", priority="normal") == ticket


@pytest.mark.parametrize("comment", [None, "", "   "])
def test_an_update_without_any_change_is_refused(tickets: Tickets, comment: str | None) -> None:
    ticket = opened(tickets)

    with pytest.raises(SettingsError, match="give at least one of `comment`, `status` and `priority`"):
        tickets.update("call-2", ticket.id, comment=comment)


def test_tickets_are_listed_last_changed_first_and_by_status(tickets: Tickets) -> None:
    first, second = opened(tickets), opened(tickets, "call-2", "Printer offline")
    tickets.update("call-3", first.id, status="waiting")

    assert [ticket.id for ticket in tickets.find()] == [first.id, second.id]
    assert [ticket.id for ticket in tickets.find("open")] == [second.id]


def test_more_tickets_than_one_page_are_all_listed(tickets: Tickets) -> None:
    ids = {opened(tickets, f"call-{number}").id for number in range(230)}

    assert {ticket.id for ticket in tickets.find()} == ids


class Yielding(InMemoryStore):
    """A store that lets other threads run between reading and writing, as a database does."""

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        result = super().batch(ops)
        time.sleep(0)
        return result


def test_parallel_updates_of_one_ticket_all_arrive() -> None:
    tickets = Tickets(Yielding(), "u-1", "t-1")
    ticket = opened(tickets)
    numbers = range(60)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: tickets.update(f"call-{n}", ticket.id, comment=f"step {n}"), numbers))

    assert {change.comment for change in tickets.get(ticket.id).history} == {f"step {n}" for n in numbers}


def test_an_id_is_found_in_any_case(tickets: Tickets) -> None:
    ticket = opened(tickets)

    assert tickets.get(f" {ticket.id.lower()} ") == ticket


@pytest.mark.parametrize("ticket_id", ["INC-AAAAAAAA", "4711", "", "INC-\0", "\ud800"])
def test_an_unknown_ticket_is_named(tickets: Tickets, ticket_id: str) -> None:
    with pytest.raises(NotFoundError) as caught:
        tickets.get(ticket_id)

    assert f"no ticket {ticket_id!r}; `list_tickets`" in str(caught.value)


@pytest.mark.parametrize("title", ["", "  ", "x" * 201])
def test_an_unusable_title_is_refused(tickets: Tickets, title: str) -> None:
    with pytest.raises(SettingsError, match="`title`"):
        opened(tickets, title=title)


def test_a_damaged_record_is_reported_as_such(store: InMemoryStore, tickets: Tickets) -> None:
    store.put(namespaces.user("u-1", "tickets"), "INC-1", {"title": "x"})

    with pytest.raises(StorageError, match="ticket 'INC-1' in the store is damaged"):
        tickets.find()


@pytest.mark.parametrize(
    "text",
    [
        "password: Tr0ub4dor",
        "The PIN is 4711.",
        "verification code = 123456",
        "Key 123456-123456-123456-123456-123456-123456-123456-123456 typed",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----",
    ],
)
def test_secrets_are_not_stored(tickets: Tickets, text: str) -> None:
    ticket = tickets.open("call-1", title="Sign-in fails", description=f"It said no. {text}")

    assert REMOVED in ticket.description
    assert not any(secret in ticket.description for secret in ("Tr0ub4dor", "4711", "123456", "abc"))


@pytest.mark.parametrize(
    "text",
    ["Error code: 0x80070057", "The password is expired", "PIN is not accepted", "MFA code was refused", "KB-1101"],
)
def test_error_texts_are_stored_as_they_are(text: str) -> None:
    assert redact(text) == text


def test_characters_that_databases_refuse_are_cleaned(tickets: Tickets) -> None:
    ticket = tickets.open("call-1", title="a\0b", description="\ud800 broken")

    assert (ticket.title, ticket.description) == ("ab", "? broken")
