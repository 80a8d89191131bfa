"""Check that a text says nothing that its sources did not say."""

from collections.abc import Sequence

from everthread.memory.capture import LONGEST
from everthread.memory.guard import check
from everthread.memory.text.wording import Wording, wording
from everthread.state.notes import Note


def problem_with(text: str, sources: Sequence[Note]) -> str:
    """Say what is wrong with a text that is to stand for notes; empty when it can.

    Every content word, number and denial must come from the notes or their quotes, and none of the notes' own may be
    missing: what a better wording leaves out cannot be told from what it loses.
    """
    if not text.strip() or len(text) > LONGEST:
        return f"a text of {len(text):,} characters"
    if not check(text).allowed:
        return "refused by the guard"
    wordings = [wording(words) for note in sources for words in (note.text, *(source.quote for source in note.sources))]
    if problem := unsupported(text, wordings):
        return problem
    new = wording(text)
    kept = [wording(note.text) for note in sources]
    if any(not one.words <= new.words for one in kept):
        return "a word of a note is missing"
    if any(one.denied and not one.denied <= new.denied for one in kept):
        return "a denial is missing"
    return ""


def unsupported(text: str, sources: Sequence[Wording]) -> str:
    """Say what a text adds to its sources: words, numbers or denials; empty when nothing."""
    new = wording(text)
    words = frozenset(word for one in sources for word in one.words)
    if not new.words <= words:
        return f"{len(new.words - words)} words that no source has"
    if not new.affirmed <= frozenset(word for one in sources for word in one.affirmed):
        return "what the sources deny"
    if not new.denied <= frozenset(word for one in sources for word in one.denied):
        return "a denial that no source has"
    return ""
