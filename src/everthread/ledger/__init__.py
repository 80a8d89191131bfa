"""What was decided, why, and with which numbers."""

from everthread.ledger.events import EVENTS, Event, schema
from everthread.ledger.record import events, events_of_turns, record

__all__ = ["EVENTS", "Event", "events", "events_of_turns", "record", "schema"]
