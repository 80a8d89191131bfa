"""Measure what a language model adds to the rules of the guard and of the distiller.

    make eval-live MODEL=openai:gpt-5-mini ARGS="--record answers.jsonl"
    python -m benchmarks.live --replay answers.jsonl

It needs a key, or a recording. Answers that are recorded give the same table again without one. Intervals are Wilson's,
95 %; wordings of one family resemble each other, so the true uncertainty is larger.
"""

import argparse
import json
import random
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.notes.__main__ import wilson
from benchmarks.notes.generator import notes
from everthread.errors import EverthreadError, SettingsError
from everthread.graph.agent import node_deps
from everthread.models.provider import resolve
from everthread.state import Agent

from .measuring import Distilled, Guarded, distilled, guarded, messages
from .recording import Recorder, Replay

_AGENT = Agent(name="live", title="Live", instructions="Be brief.")

Case = TypeVar("Case")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; return 1 when a recording does not fit, 2 when there is no model to measure."""
    options = _parser().parse_args(arguments)
    try:
        figures = measured(options)
    except EverthreadError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, SettingsError) else 1
    print(json.dumps(figures, indent=2, ensure_ascii=False) if options.json else markdown(figures))
    return 0


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """Ask the model, or the recording, about all cases.

    Raises:
        SettingsError: there is no model, or it answers nothing.
        RecordError: the recording is of other prompts.
    """
    replay = None if options.replay is None else Replay(options.replay)
    recorder = Recorder()
    chat = _language_model(options.model) if replay is None else replay.model
    deps = node_deps(_AGENT, chat.with_config(callbacks=[recorder]))

    def tick() -> None:
        recorder.check()
        if replay is not None:
            replay.check()
        if sys.stderr.isatty():
            print(f"\r{len(recorder.replies):,} requests", end="", file=sys.stderr)

    said = _some(messages(), options.limit)
    judged = guarded(_some(notes("reporting"), options.limit), deps, batch=options.batch, tick=tick)
    both = {"rules": distilled(said, None, tick), "rules and model": distilled(said, deps, tick)}
    if options.record is not None:
        recorder.save(options.record)
    seconds = sorted(recorder.seconds) if replay is None else []
    times = {f"seconds p{part}": seconds[int(part / 100 * len(seconds))] for part in (50, 95) if seconds}
    return {
        "model": options.model if replay is None else f"replay of {options.replay}",
        "guard": _guard_rows(judged),
        "distillation": [row for name, outcomes in both.items() for row in _distilled_rows(name, outcomes)],
        "requests": len(recorder.replies),
        "without an answer": sum(one.is_unjudged for one in judged),
        "tokens in": recorder.tokens[0],
        "tokens out": recorder.tokens[1],
        **times,
    }


def _some(cases: Iterable[Case], limit: int | None) -> list[Case]:
    """Return cases in an order that a fixed seed decides, so many at the most: no language stands first."""
    every = list(cases)
    return random.Random(7).sample(every, len(every))[:limit]


def _language_model(name: str) -> Any:
    """Return the model that is measured.

    Raises:
        SettingsError: it cannot be made, such as without a key, or is none that reads.
    """
    try:
        chat = resolve(name)
    except SettingsError as reason:
        raise SettingsError(f"nothing is measured: {str(reason).partition('; `--model')[0]}") from reason
    if not getattr(chat, "can_summarize", True):
        raise SettingsError(f"nothing is measured: {name!r} is no language model; name one, such as openai:gpt-5-mini")
    return chat


def _guard_rows(judged: Sequence[Guarded]) -> list[dict[str, Any]]:
    rows = []
    for label, is_bad in (("must be blocked", True), ("must be kept", False)):
        side = [one for one in judged if one.case.is_bad == is_bad]
        for language in ("all", *sorted({one.case.language for one in side})):
            part = [one for one in side if language in ("all", one.case.language)]
            if part:
                both = sum(one.by_model for one in part)
                rows.append(
                    {
                        "notes": f"{label}, {language}",
                        "blocked by rules": sum(one.by_rules for one in part) / len(part),
                        "by rules or model": both / len(part),
                        "interval": wilson(both, len(part)),
                        "of": len(part),
                    }
                )
    return rows


def _distilled_rows(name: str, outcomes: Sequence[Distilled]) -> list[dict[str, Any]]:
    rows = []
    for language in ("all", *sorted({one.message.language for one in outcomes})):
        part = [one for one in outcomes if language in ("all", one.message.language)]
        facts, notes = sum(len(one.message.says) for one in part), sum(one.notes for one in part)
        found, right = sum(one.found for one in part), sum(one.right for one in part)
        rows.append(
            {
                "messages": f"{name}, {language}",
                "recall": found / facts if facts else 0.0,
                "precision": right / notes if notes else 1.0,
                "facts": facts,
                "notes": notes,
            }
        )
    return rows


def markdown(figures: dict[str, Any]) -> str:
    """Return the figures as the tables of the docs."""
    parts = [f"## {figures['model']}"]
    for name in ("guard", "distillation"):
        rows = figures[name]
        heads = list(rows[0]) if rows else []
        lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *([_cell(row[head]) for head in heads] for row in rows)]
        parts.append("\n".join(f"| {' | '.join(line)} |" for line in lines))
    rest = [f"{name}: {_cell(value)}" for name, value in figures.items() if not isinstance(value, list | str)]
    return "\n\n".join([*parts, ", ".join(rest)])


def _cell(value: Any) -> str:
    if isinstance(value, tuple):
        return " to ".join(map(_cell, value))
    return f"{value:.3f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.live",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--model", default="openai:gpt-5-mini", help="provider:name (default: %(default)s)")
    parser.add_argument("--record", metavar="FILE", type=Path, help="write the answers, one JSON object a line")
    parser.add_argument("--replay", metavar="FILE", type=Path, help="take the answers from a recording; needs no key")
    parser.add_argument("--limit", metavar="N", type=int, help="N notes and N messages only")
    parser.add_argument("--batch", metavar="N", type=int, default=4, help="notes in one request (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    return parser


if __name__ == "__main__":
    sys.exit(main())
