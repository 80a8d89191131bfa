"""Notes that a model proposes, read with suspicion: small numbers, quotes that are there, and no word of its own.

A proposal can add a note to those of the rules, or word one of them better. It can take none away.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from everthread.memory.capture import LONGEST
from everthread.memory.consolidate.support import unsupported
from everthread.memory.distill import MOST_PER_MESSAGE, Candidate, share_meaning
from everthread.memory.distill.attributes import subject_of
from everthread.memory.distill.statements import (
    is_hypothetical,
    is_of_another,
    is_own,
    is_stated,
    rememberable,
)
from everthread.memory.provenance import Said, evidence_of, is_frame
from everthread.memory.replies import json_of, valid_items
from everthread.memory.text.consent import agrees
from everthread.memory.text.constraints import is_for_this_time, is_lasting
from everthread.memory.text.own_words import Sentence, own_sentences
from everthread.memory.text.wording import Wording, wording
from everthread.state.notes import NoteKind, NoteScope

CONFIDENCE = 0.8
"""What a note is worth that only a model read; our choice, below what a rule is sure of and above a mere taste."""

_SHORT_ANSWER = 80
"""Characters of a message up to which the assistant's question counts as part of what it says."""


class Proposal(BaseModel):
    """One note."""

    model_config = ConfigDict(extra="ignore")

    message: int = Field(description="Number of the user's message that says it.")
    quote: str = Field(description="The user's words, copied letter by letter.")
    text: str = Field(description="One short sentence in the third person, made of the quoted words.")
    kind: NoteKind = Field(default="preference", description="constraint: what must never be broken.")
    scope: NoteScope = Field(default="session", description="durable: what lasts; session: only this time.")


class Proposals(BaseModel):
    """The notes that messages hold; empty when they hold none."""

    model_config = ConfigDict(extra="ignore")

    notes: list[Proposal]


@dataclass(frozen=True)
class _Quoted:
    """Where a quote stands in a message."""

    words: str
    """The quote in lower case, without punctuation."""
    sentences: tuple[Sentence, ...]
    before: str
    """What stands ahead of it in its first sentence."""


def read_proposals(reply: object) -> tuple[list[Proposal], int]:
    """Read a model's reply: parsed, the arguments of a tool call, or text with JSON in it.

    Returns:
        The notes, and how many more cannot be read.

    Raises:
        ValueError: the reply is no list of notes, or none of its notes can be read.
    """
    value = json_of(reply)
    items: Any = value.get("notes") if isinstance(value, dict) else value
    if not isinstance(items, list) or (not items and not isinstance(value, dict)):
        raise ValueError("no list of notes")
    proposals = valid_items(items, Proposal)
    if items and not proposals:
        raise ValueError("no note that can be read")
    return proposals, len(items) - len(proposals)


def accepted(proposal: Proposal, text: str, question: str = "", known: Iterable[str] = ()) -> Candidate | str:
    """Check a proposal against the message that it names, and return it as a candidate or what is wrong with it.

    Args:
        proposal: the proposal.
        text: the user's message.
        question: the assistant's message ahead of it.
        known: texts of injected notes, which are not learnt again.
    """
    quoted = _located(proposal.quote, text)
    if isinstance(quoted, str):
        return quoted
    if _plain(proposal.quote) in {_plain(note) for note in known}:
        return "known already"
    kept = rememberable(own_sentences(text))
    if any(sentence not in kept for sentence in quoted.sentences):
        return "what the user asked not to remember"
    if problem := _not_own(quoted):
        return problem
    support = [wording(proposal.quote)]
    if len(text) <= _SHORT_ANSWER and question:
        support += _asked(text, question)
    problem = unsupported(proposal.text, support)
    if not problem and not wording(proposal.text).words:
        problem = "no content"
    if problem or not proposal.text.strip() or len(proposal.text) > LONGEST:
        return problem or f"a text of {len(proposal.text):,} characters"
    whole = " ".join(sentence.text for sentence in quoted.sentences)
    is_now = is_for_this_time(whole) and not is_lasting(whole)
    scope: NoteScope = "session" if is_now else proposal.scope
    quote = " ".join(sentence.quote for sentence in quoted.sentences)
    return Candidate(quote, proposal.text.strip(), scope, proposal.kind, subject_of(proposal.text), CONFIDENCE)


def together(proposed: Sequence[Candidate], by_rules: Sequence[Candidate]) -> list[Candidate]:
    """Return what either of them found in a message, each fact once.

    Where both found it, the model's words stand, with the rules' caution: what they take for this time
    only is not lasting, and what they take for a constraint is one.
    """
    notes: list[Candidate] = []
    left = list(by_rules)
    for candidate in proposed:
        twins = [rule for rule in left if share_meaning(rule.text, candidate.text)]
        left = [rule for rule in left if rule not in twins]
        for twin in twins:
            candidate = replace(
                candidate,
                scope="session" if "session" in (twin.scope, candidate.scope) else "durable",
                kind="constraint" if "constraint" in (twin.kind, candidate.kind) else candidate.kind,
                subject=twin.subject or candidate.subject,
                confidence=max(twin.confidence, candidate.confidence),
            )
        if len(twins) > 1 or any(_loses(twin, candidate) for twin in twins):
            # One sentence for several facts, or for less than one: the rules' own notes say all of it.
            notes += twins
        elif not any(share_meaning(note.text, candidate.text) for note in notes):
            notes.append(candidate)
    return [*notes, *left][:MOST_PER_MESSAGE]


def _loses(twin: Candidate, candidate: Candidate) -> bool:
    """Tell whether the model's words leave out a number, a denial or a constraint's word that the rules' have."""
    old, new = wording(twin.text), wording(candidate.text)
    if twin.kind == "constraint":
        return not old.words <= new.words | wording(candidate.quote).words or not old.denied <= new.denied
    return not frozenset(old.numbers) <= frozenset(new.numbers) or bool(old.denied) != bool(new.denied)


def _located(quote: str, text: str) -> _Quoted | str:
    """Find a quote among the sentences that are the user's own: not in code, memory blocks, quoted lines or marks."""
    wanted = _plain(quote)
    own = own_sentences(text)
    plain = [_plain(sentence.own_words) for sentence in own]
    place = f" {' '.join(plain)} ".find(f" {wanted} ") if wanted else -1
    if place < 0:
        is_quoted = wanted and f" {wanted} " in f" {_plain(' '.join(sentence.quote for sentence in own))} "
        return "a quotation" if is_quoted else "a quote that the user did not write"
    covered: list[Sentence] = []
    before, begin = "", 0
    for sentence, words in zip(own, plain, strict=True):
        end = begin + len(words)
        if words and begin < place + len(wanted) and end > place:
            before = before if covered else words[: max(place - begin, 0)]
            covered.append(sentence)
        begin = end + 1
    return _Quoted(wanted, tuple(covered), before.strip())


def _not_own(quoted: _Quoted) -> str:
    """Say why a quote tells nothing of the user as they are today; empty when it may."""
    if any(is_hypothetical(sentence.bare) for sentence in quoted.sentences):
        return "a supposition"
    if is_of_another(quoted.before, quoted.words):
        return "what another person is"
    if not is_own(quoted.before, quoted.words):
        return "what others say, or what used to be"
    if all(sentence.is_question and not is_stated(sentence) for sentence in quoted.sentences):
        return "a question"
    return ""


def _asked(answer: str, question: str) -> list[Wording]:
    """Return what a short answer takes from its question: all of it with a yes, else only what names a kind."""
    if agrees(answer, question):
        return [one.wording for one in evidence_of(Said("", "", question))]
    kinds = wording(" ".join(word for word in question.split() if is_frame(word)))
    return [kinds]


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def refusals(what: str, reasons: Collection[str]) -> str:
    """Say in one line how much of what a model proposed was refused, and why; empty when nothing was."""
    if not reasons:
        return ""
    return f"{len(reasons)} of the proposed {what} refused: {', '.join(sorted(set(reasons)))}"
