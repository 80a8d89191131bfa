"""Show a turn while it happens."""

import sys
from collections.abc import Mapping
from typing import Any

from everthread.cli.conversation import Call, Turn
from everthread.cli.output import note, plain, say, shortened
from everthread.cli.prompt_view import headline

__all__ = ["Screen", "called_as", "saved_line"]


class Screen:
    """Writes the reply as it comes, and one line for each tool call and result."""

    def __init__(self) -> None:
        self._in_line = False

    def text(self, text: str) -> None:
        """Write the next piece of the reply at once."""
        sys.stdout.write(plain(text))
        sys.stdout.flush()
        self._in_line = not text.endswith("\n")

    def called(self, call: Call) -> None:
        """Show a call with its arguments."""
        self.close()
        say(f"  → {called_as(call)}", "dim")

    def returned(self, call: Call) -> None:
        """Show the beginning of a result."""
        self.close()
        say(f"  {'✗' if call.failed else '←'} {shortened(call.result or '')}", "dim")

    def event(self, event: Mapping[str, Any]) -> None:
        """Tell of what the user would otherwise wonder about."""
        if event.get("event") == "overflow":
            self.close()
            note(f"the provider refused {event['tokens']:,} tokens as too many; trying with fewer")
        elif event.get("event") == "note_blocked":
            self.close()
            note(f"a note was not kept: it looks like {str(event['category']).replace('_', ' ')}")

    def close(self) -> None:
        """End the line that is being written."""
        if self._in_line:
            self._in_line = False
            say()


def called_as(call: Call) -> str:
    """Write a call as code, on one line."""
    arguments = ", ".join(f"{name}={value!r}" for name, value in call.arguments.items())
    return shortened(f"{call.name}({arguments})")


def saved_line(turn: Turn) -> str:
    """Say that a turn is in the database, and how large its prompt was."""
    prompt = turn.prompt
    if prompt is None:
        return "[saved]"
    happened = {
        "evicted": sum(len(event["message_ids"]) for event in turn.named("evicted")),
        "masked": len(turn.named("masked")) + len(turn.named("offloaded")),
        "summarised": sum(len(event["message_ids"]) for event in turn.named("compacted")),
        "notes saved": len(turn.named("note_saved")),
    }
    told = [f"{what}: {count}" for what, count in happened.items() if count]
    return f"[turn {prompt['turn']} saved · {' · '.join([headline(prompt), *told])}]"
