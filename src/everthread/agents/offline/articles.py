"""Read what a search of the knowledge base returned and present one article."""

import re
from dataclasses import dataclass

from everthread.agents.offline.reading import visible

ASK_HELPED = "Did that help?"
OFFER_TICKET = "Shall I open a ticket for this?"

_HEAD = re.compile(r"^[^\w\n]{0,9}((?:KB|DOC)-?\d{2,6})\s*[·:|–-]\s*(.+?)(?:\s*\(score ([\d.]+)\))?\s*$", re.MULTILINE)
_SECTION = re.compile(r"^(Symptoms|Steps|Verify|Escalate when):[ ]*", re.MULTILINE)
_PRESENTED = re.compile(r"[Aa]rticle ((?:KB|DOC)-?\d{2,6}), “")


@dataclass(frozen=True)
class Article:
    """An article as the tool's text gives it; sections that are missing are empty."""

    id: str
    title: str
    score: float = 0.0
    """How well it matches; comparable within one search."""
    steps: str = ""
    verify: str = ""
    escalate: str = ""


def articles_in(text: str) -> list[Article]:
    """Read the articles of a search result, best first."""
    heads = list(_HEAD.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    return [_article(head, text[head.end() : end]) for head, end in zip(heads, ends, strict=False)]


def presented_in(answer: str) -> set[str]:
    """Return the ids of the articles whose steps an answer of ours gave."""
    return set(_PRESENTED.findall(answer))


def present(article: Article, others: list[Article], *, first: bool = True) -> str:
    """Give the steps of an article, when to go further, and what else was found."""
    place = "closest" if first else "next"
    parts = [f"The {place} match is article {article.id}, “{visible(article.title, 200)}”:"]
    parts += [visible(article.steps, 2_500)] if article.steps else ["It lists no steps."]
    parts += [f"To check: {visible(article.verify, 500)}"] if article.verify else []
    parts += [f"Escalate when: {visible(article.escalate, 500)}"] if article.escalate else []
    if others:
        parts.append("Also found: " + "; ".join(f"{other.id} ({visible(other.title, 120)})" for other in others) + ".")
    return "\n\n".join(parts)


def _article(head: re.Match[str], body: str) -> Article:
    _, *parts = _SECTION.split(body)
    sections = dict(zip(parts[::2], (part.strip() for part in parts[1::2]), strict=True))
    return Article(
        id=head[1],
        title=head[2],
        score=float(head[3] or 0),
        steps=sections.get("Steps", ""),
        verify=sections.get("Verify", ""),
        escalate=sections.get("Escalate when", ""),
    )
