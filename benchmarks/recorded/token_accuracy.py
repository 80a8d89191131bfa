"""Our count of whole prompts against the counts that providers logged.

    python benchmarks/recorded/token_accuracy.py tool_transcripts.jsonl

Assistant messages with `usage.prompt_tokens` are compared with our count of everything before them, system prompt and
tool schemas included; *anchored*: our count of what was added since the call before, on top of that call's log.
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path
from statistics import median

from langchain_core.messages import SystemMessage

from everthread.evals.records import Record, read_records
from everthread.window.tokens import counter_for


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("file", type=Path)
    options = parser.parse_args()
    rows = {row["id"]: row for row in map(json.loads, options.file.open())}
    errors: dict[str, list[tuple[float, float | None]]] = defaultdict(list)
    for record in read_records(options.file):
        row = rows[record.id]
        logged = {m["id"]: m["usage"]["prompt_tokens"] for m in row["messages"] if m.get("usage")}
        if logged:
            errors[str(row["meta"].get("model"))] += compared(record, logged)
    for model, pairs in sorted(errors.items()):
        anchored = sorted(error for _, error in pairs if error is not None)
        absolute = sorted(error for error, _ in pairs)
        print(
            json.dumps(
                {"model": model, "calls": len(pairs), **spread("absolute", absolute), **spread("anchored", anchored)}
            )
        )


def compared(record: Record, logged: dict[str, int]) -> list[tuple[float, float | None]]:
    """Return the relative errors of each logged call: absolute, and anchored on the call before."""
    counter = counter_for("gpt-4.1")
    system = [SystemMessage(record.toolkit.system)] if record.toolkit.system else []
    counted = counter.messages(system) + counter.tools(record.toolkit.tools)
    last: tuple[int, int] | None = None
    found = []
    for message in record.messages:
        if (reported := logged.get(str(message.id))) is not None:
            anchored = abs(last[1] + counted - last[0] - reported) / reported if last else None
            found.append((abs(counted - reported) / reported, anchored))
            last = (counted, reported)
        counted += counter.message(message)
    return found


def spread(name: str, errors: list[float]) -> dict[str, float | None]:
    if not errors:
        return {name: None}
    return {f"{name}_median": round(median(errors), 4), f"{name}_p95": round(errors[int(len(errors) * 0.95)], 4)}


if __name__ == "__main__":
    main()
