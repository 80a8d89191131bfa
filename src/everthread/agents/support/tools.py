"""Tools of the support agent: knowledge base, diagnostics, tickets."""

# No `from __future__ import annotations` here: langgraph finds the injected runtime by the annotation itself.

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from langchain_core.tools import ToolException, tool
from langgraph.prebuilt import ToolRuntime
from pydantic import Field

from everthread.agents.support import diagnostics
from everthread.agents.support.knowledge import bundled_knowledge
from everthread.agents.support.knowledge import render as render_hits
from everthread.agents.support.tickets import Priority, Status, Tickets, render_line
from everthread.agents.support.tickets import render as render_ticket
from everthread.errors import EverthreadError
from everthread.tools.runtime import thread_of, user_of

_CHECKS = (
    "ping, dns, http, certificate, disk, mail_flow, vpn_tunnel, wifi_signal, printer_queue, mfa, account, sync, "
    "time_sync, device_compliance, share_access or windows_update; an unknown name returns the list"
)

Runtime = ToolRuntime[Any, Any]


@contextmanager
def _errors_for_the_model() -> Iterator[None]:
    """Turn our own errors into the one that the tools node answers the model with."""
    try:
        yield
    except EverthreadError as error:
        raise ToolException(str(error)) from error


def _tickets(runtime: Runtime) -> Tickets:
    if runtime.store is None:
        raise ToolException("tickets need a store and this graph has none; build the graph with `storage=…`")
    return Tickets(runtime.store, user_of(runtime), thread_of(runtime))


@tool
def search_knowledge_base(
    query: Annotated[str, Field(description="Product, symptom and the exact error text or code")],
    limit: Annotated[int, Field(ge=1, le=10, description="How many articles at most")] = 3,
) -> str:
    """Search the IT knowledge base and return the best articles with their steps. Use it before giving advice."""
    with _errors_for_the_model():
        return render_hits(query, bundled_knowledge().search(query, limit))


@tool
def service_status(
    service: Annotated[str | None, Field(description="Name of one service; leave out for all")] = None,
) -> str:
    """Show whether IT services (vpn, email, sso, wifi, …) work, with known incidents and workarounds."""
    with _errors_for_the_model():
        return diagnostics.status_of(service)


@tool
def run_diagnostic(
    check: Annotated[str, Field(description=_CHECKS)],
    target: Annotated[str, Field(description="Host, service, asset tag, printer, share or user to check")],
) -> str:
    """Run a check on a target and return its verdict with exact error strings. Run it before escalating."""
    with _errors_for_the_model():
        return str(diagnostics.run(check, target))


@tool
def open_ticket(
    runtime: Runtime,
    title: Annotated[str, Field(min_length=1, max_length=200, description="One line: product and symptom")],
    description: Annotated[
        str,
        Field(min_length=1, max_length=8000, description="Environment, exact errors, steps tried, results. No secrets"),
    ],
    priority: Annotated[Priority, Field(description="urgent only when work has stopped for many people")] = "normal",
) -> str:
    """Open a support ticket for the user and return its number."""
    with _errors_for_the_model():
        ticket = _tickets(runtime).open(
            runtime.tool_call_id or "", title=title, description=description, priority=priority
        )
    return f"Ticket {ticket.id} is recorded.\n{render_ticket(ticket)}"


@tool
def update_ticket(
    runtime: Runtime,
    ticket_id: Annotated[str, Field(description="Number of the ticket, such as INC-7K2MQXA4")],
    comment: Annotated[str | None, Field(max_length=8000, description="What happened since. No secrets")] = None,
    status: Annotated[Status | None, Field(description="New status; ask the user before `closed`")] = None,
    priority: Annotated[Priority | None, Field(description="New priority")] = None,
) -> str:
    """Add a comment to a ticket of the user, or change its status or priority."""
    with _errors_for_the_model():
        ticket = _tickets(runtime).update(
            runtime.tool_call_id or "", ticket_id, comment=comment, status=status, priority=priority
        )
    return f"Ticket {ticket.id} is up to date.\n{render_ticket(ticket)}"


@tool
def list_tickets(
    runtime: Runtime,
    status: Annotated[Status | None, Field(description="Only tickets in this status; leave out for all")] = None,
) -> str:
    """List the user's tickets, last changed first."""
    with _errors_for_the_model():
        found = _tickets(runtime).find(status)
    if not found:
        return f"No tickets in status {status!r}." if status else "No tickets."
    return "\n".join(render_line(ticket) for ticket in found)


TOOLS = (search_knowledge_base, service_status, run_diagnostic, open_ticket, update_ticket, list_tickets)
