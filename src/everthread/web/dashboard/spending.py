"""What the caller has spent, and what is left of it today."""

from datetime import UTC, datetime, timedelta
from typing import Any

from starlette.responses import Response

from everthread.nodes.deps import NodeDeps
from everthread.storage.reading import user_records
from everthread.storage.spending import SpendRow, rows_of, thread_spend, user_spend
from everthread.web.dashboard.views import Visit
from everthread.web.service import Service, in_thread, summary_of

_DAYS = 31
_THREADS = 20
"""Threads that are shown, those of the latest activity."""


async def spend(visit: Visit) -> Response:
    """Show what the caller's calls took: today against the limits, by day and model, and by thread."""
    values = await in_thread(_values, visit.service, visit.identity.user_id)
    return visit.page("spend.html", **values)


def _values(service: Service, user_id: str) -> dict[str, Any]:
    store, today = service.storage.store, datetime.now(UTC).date()
    first = (today - timedelta(days=_DAYS - 1)).isoformat()
    entries = [one for one in user_spend(store, user_id) if one.group["day"] >= first]
    now = rows_of([one for one in entries if one.group["day"] == today.isoformat()], ())
    threads = []
    for record in user_records(store, user_id)[:_THREADS]:
        thread = summary_of(record)
        threads += [(thread, row) for row in rows_of(thread_spend(store, thread["id"], user_id), ())]
    return {
        "today": now,
        "limits": _limits(service),
        "days": list(reversed(rows_of(entries, ("day", "model")))),
        "threads": threads,
        "count": _DAYS,
        "cost": _cost,
    }


def _limits(service: Service) -> list[tuple[str, str, float]]:
    """Return the limits of the agents: whose, of what, and how much."""
    found = []
    for name, graph in service.graphs.items():
        deps = getattr(graph.builder, "deps", None)
        spend = deps.agent.spend if isinstance(deps, NodeDeps) else None
        found += [(name, limit, size) for limit, size in (spend.limits if spend is not None else {}).items()]
    return found


def _cost(row: SpendRow) -> str:
    """Return what a row cost, in words."""
    if row.calls and row.unpriced == row.calls:
        return "no price"
    return f"{row.cost:,.4f} {row.currency}"
