"""What was decided, why, and with which numbers."""

from everthread.ledger.events import EVENTS, Event, schema
from everthread.ledger.record import events, record

__all__ = ["EVENTS", "Event", "events", "record", "schema"]
