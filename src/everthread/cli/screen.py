"""Show a turn in a terminal while it happens, and what it came to."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from everthread.cli.conversation import Call, Turn, Watcher
from everthread.cli.output import note, plain, say, shortened
from everthread.cli.prompt_view import headline
from everthread.memory.guard import phrase

__all__ = ["Screen", "as_code", "saved_line"]


@dataclass
class Screen(Watcher):
    """Writes the reply as it comes, and one line for each tool call and result."""

    in_line: bool = False

    def text(self, text: str) -> None:
        """Write the next piece of the reply at once."""
        sys.stdout.write(plain(text))
        sys.stdout.flush()
        self.in_line = not text.endswith("\n")

    def called(self, call: Call) -> None:
        """Show a call with its arguments."""
        self.close()
        say(f"  → {as_code(call)}", "dim")

    def returned(self, call: Call) -> None:
        """Show the beginning of a result."""
        self.close()
        say(f"  {'✗' if call.failed else '←'} {shortened(call.result or '')}", "dim")

    def event(self, event: Mapping[str, Any]) -> None:
        """Mention what the user would otherwise wonder about."""
        if event.get("event") == "overflow":
            self.close()
            note(f"the provider refused {event['tokens']:,} tokens as too many; trying with fewer")
        elif event.get("event") == "note_blocked":
            self.close()
            is_unjudged = event["guard"] == "model" and event["category"] == "unreadable"
            looks = f"looks like {phrase(event['category'])}"
            what = f"was not judged ({event['rule']})" if is_unjudged else looks
            note(f"a note was not kept: it {what}")

    def close(self) -> None:
        """End the line that is being written."""
        if self.in_line:
            self.in_line = False
            say()


def as_code(call: Call) -> str:
    """Write a call as code, on one line."""
    arguments = ", ".join(f"{name}={value!r}" for name, value in call.arguments.items())
    return shortened(f"{call.name}({arguments})")


def saved_line(turn: Turn) -> str:
    """Say that a turn is in the database, and how large its prompt was."""
    prompt = turn.prompt
    if prompt is None:
        return "[saved]"
    counts = {
        "evicted": sum(len(event["message_ids"]) for event in turn.named("evicted")),
        "masked": len(turn.named("masked")) + len(turn.named("offloaded")),
        "summarised": sum(len(event["message_ids"]) for event in turn.named("compacted")),
        "notes saved": len(turn.named("note_saved")),
    }
    parts = [headline(prompt), *(f"{what}: {count}" for what, count in counts.items() if count)]
    return f"[turn {prompt['turn']} saved · {' · '.join(parts)}]"
