"""Consolidation: how session notes become long-term notes, planned by rules or by a model, checked in any case."""

from everthread.memory.consolidation.corrections import confirmed_by_hand, edited, retracted
from everthread.memory.consolidation.expiry import confidence_on
from everthread.memory.consolidation.plan import Plan, operations
from everthread.memory.consolidation.promotion import Settled, field_of, given_back, is_promoted, released, settle
from everthread.memory.consolidation.proposal import Numbered, Proposal, numbered, read_proposal
from everthread.memory.consolidation.rules import FOR_THIS_SESSION, MOST_NOTES, NOT_ACTIVE, plan
from everthread.memory.consolidation.validation import validated

__all__ = [
    "FOR_THIS_SESSION",
    "MOST_NOTES",
    "NOT_ACTIVE",
    "Numbered",
    "Plan",
    "Proposal",
    "Settled",
    "confidence_on",
    "confirmed_by_hand",
    "edited",
    "field_of",
    "given_back",
    "is_promoted",
    "numbered",
    "operations",
    "plan",
    "read_proposal",
    "released",
    "retracted",
    "settle",
    "validated",
]
