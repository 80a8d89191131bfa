"""Show a turn in a terminal while it happens, and what it came to."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from everthread.cli.conversation import Turn
from everthread.cli.output import note, plain, say, shortened
from everthread.cli.prompt_view import headline
from everthread.graph.turn_parts import Call, Decision, Part, Result, Text
from everthread.memory.guard import phrase


@dataclass
class Screen:
    """Writes the reply as it comes, and one line for each tool call and result."""

    in_line: bool = False

    def show(self, part: Part) -> None:
        """Show what a turn tells."""
        match part:
            case Text():
                sys.stdout.write(plain(part.text))
                sys.stdout.flush()
                self.in_line = not part.text.endswith("\n")
            case Call():
                self.close()
                say(f"  → {as_code(part)}", "dim")
            case Result():
                self.close()
                say(f"  {'✗' if part.failed else '←'} {shortened(part.text)}", "dim")
            case Decision():
                self._mention(part.event)

    def _mention(self, event: Mapping[str, Any]) -> None:
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
