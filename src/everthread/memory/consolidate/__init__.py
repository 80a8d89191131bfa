"""Consolidation: how session notes become long-term notes, planned by rules or by a model, checked in any case."""

from everthread.memory.consolidate.corrections import confirmed_by_hand, edited, retracted, written
from everthread.memory.consolidate.expiry import confidence_on
from everthread.memory.consolidate.opinions import approved, held_back, refused_notes, to_judge
from everthread.memory.consolidate.plan import Plan, operations
from everthread.memory.consolidate.promotion import Settled, field_of, given_back, is_promoted, released, settle
from everthread.memory.consolidate.proposal import Numbered, Proposal, Step, numbered, read_proposal
from everthread.memory.consolidate.rules import FOR_THIS_SESSION, MEMORY_FULL, MOST_NOTES, NOT_ACTIVE, plan
from everthread.memory.consolidate.validation import validated

__all__ = [
    "FOR_THIS_SESSION",
    "MEMORY_FULL",
    "MOST_NOTES",
    "NOT_ACTIVE",
    "Numbered",
    "Plan",
    "Proposal",
    "Settled",
    "Step",
    "approved",
    "confidence_on",
    "confirmed_by_hand",
    "edited",
    "field_of",
    "given_back",
    "held_back",
    "is_promoted",
    "numbered",
    "operations",
    "plan",
    "read_proposal",
    "refused_notes",
    "released",
    "retracted",
    "settle",
    "to_judge",
    "validated",
    "written",
]
