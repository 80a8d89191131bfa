"""`guard`: what the guard says about texts, for scores and for scripts."""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from everthread.cli.output import note, print_json, print_table
from everthread.errors import RecordError
from everthread.memory.guard import check, warm_up


def guard(
    file: Annotated[str, typer.Argument(metavar="FILE", help="JSON lines with `id` and `text`; `-` reads stdin.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document a line on stdout.")] = False,
) -> None:
    """Tell which texts may be kept as notes: allow or block, the category and the rule.

    The texts themselves are never printed. `ms` is the processor time for one text, after everything is loaded.
    """
    texts = list(_texts(file))
    warm_up()
    rows: list[tuple[str, ...]] = []
    blocked = 0
    for name, text in texts:
        began = time.thread_time()
        verdict = check(text)
        ms = (time.thread_time() - began) * 1000
        blocked += not verdict.allowed
        if as_json:
            print_json(
                {
                    "id": name,
                    "decision": verdict.decision,
                    "category": verdict.category,
                    "rule": verdict.rule,
                    "ms": round(ms, 3),
                }
            )
        else:
            rows.append((name, verdict.decision, verdict.category, verdict.rule, f"{ms:.2f}"))
    if not as_json:
        print_table(("id", "decision", "category", "rule", "ms"), rows, words=("decision", "category", "rule"))
        note(f"{blocked:,} of {len(rows):,} blocked")


def _texts(file: str) -> Iterator[tuple[str, str]]:
    """Yield id and text of each line.

    Raises:
        RecordError: the file cannot be read, or a line is not an object with a string `id` and a string `text`.
    """
    try:
        lines = (sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()).decode("utf-8-sig").split("\n")
    except OSError as error:
        raise RecordError(f"cannot read {file!r}: {error.strerror or type(error).__name__}") from None
    except UnicodeDecodeError:
        raise RecordError(f"cannot read {file!r}: it is not UTF-8 text") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            name, text = row["id"], row["text"]
        except (ValueError, TypeError, KeyError, RecursionError):
            raise RecordError(f"{file} line {number}: wants a JSON object with `id` and `text`") from None
        if not isinstance(name, str) or not isinstance(text, str):
            raise RecordError(f"{file} line {number}: `id` and `text` must be strings")
        yield name, text
