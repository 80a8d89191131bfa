"""`demo`: two sessions of the travel agent, through the real graph and a real database, played and checked."""

import shutil
import sys
import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer
import yaml

from everthread.agents import travel
from everthread.cli.conversation import Conversation, Turn
from everthread.cli.end import print_ending
from everthread.cli.options import AsJson, command_line
from everthread.cli.output import hanging, out, print_json, say, shortened
from everthread.cli.prompt_view import bar, headline, legend
from everthread.cli.screen import as_code
from everthread.graph.agent import build_graph
from everthread.graph.ending import Ending, end_thread
from everthread.profiles import set_profile
from everthread.state import Context, Note, Source, namespaces
from everthread.state.notes import note_id
from everthread.storage.open import Storage, open_storage
from everthread.storage.reading import long_term_notes, session_notes

_INTRODUCTION = (
    "Two sessions of the travel concierge, through the real graph and a real database.\n"
    "The model is the offline one: pattern matching, not a language model. Flights and prices are a sandbox."
)

FIRST_SESSION = (
    "Book me a flight to Paris next month.",
    "Do you know my preferences?",
    "Remember that I am vegetarian.",
    "This time, I like to have a window seat. I really want to sleep.",
)
SECOND_SESSION = "What do you know about me?"

EXAMPLE: dict[str, Any] = yaml.safe_load(files("everthread.cli").joinpath("demo.yaml").read_text(encoding="utf-8"))
"""The example user's profile and long-term notes."""


def demo(
    database: Annotated[
        str | None,
        typer.Option("--database", metavar="URL", help="Play in this database.  [default: a temporary one]"),
    ] = None,
    window: Annotated[
        int, typer.Option("--window", metavar="N", help="Input limit in tokens; a small one makes the bar readable.")
    ] = 16_000,
    as_json: AsJson = False,
) -> None:
    """Play two short sessions without a key, and check them.

    Shows what is said, which tools are called, what is in each prompt, and what lasts after the session. Exits with 1
    when something that it claims does not hold.
    """
    with tempfile.TemporaryDirectory(prefix="everthread-") as folder:
        url = database or f"sqlite:///{Path(folder) / 'demo.db'}"
        if as_json:
            run = _play(url, window, shows=False)
        else:
            say(_INTRODUCTION)
            say(f"Database: {url}", "dim")
            run = _play(url, window, shows=True)
    claims = _claims(run)
    if as_json:
        print_json(_as_json(run, claims, database))
    else:
        _print_claims(claims)
    if not all(claim.holds for claim in claims):
        raise typer.Exit(1)
    if not as_json:
        _print_next(run, database)


@dataclass(frozen=True)
class _Scene:
    """One turn of the demo."""

    thread_id: str
    message: str
    turn: Turn
    notes: list[Note]
    """Session notes after the turn."""
    is_first: bool
    """Whether it opens its thread."""

    def as_json(self) -> dict[str, Any]:
        turn = self.turn
        return {
            "user": self.message,
            "tool_calls": [
                {"name": call.name, "args": call.arguments, "result": turn.results.get(call.id)}
                for call in turn.calls.values()
            ],
            "approvals": [{"asked": asked, "approved": answer} for asked, answer in turn.asked],
            "reply": turn.reply,
            "prompt": turn.prompt,
            "model_calls": len(turn.named("prompt_assembled")),
            "events": [str(event.get("event")) for event in turn.events],
            "session_notes": [note.value() for note in self.notes],
        }


@dataclass(frozen=True)
class _Claim:
    """Something the demo says, and whether it was so."""

    claim: str
    holds: bool
    evidence: str


@dataclass
class _Run:
    """What was played."""

    context: Context
    threads: tuple[str, str]
    ending: Ending
    scenes: list[_Scene] = field(default_factory=list)
    long_term: list[Note] = field(default_factory=list)
    """Long-term notes at the end."""
    left: list[Note] = field(default_factory=list)
    """Session notes of the first thread after its session ended."""
    bookings: int = 0


def _play(database: str, window: int, *, shows: bool) -> _Run:
    """Play both sessions as a new user; the database is closed and opened again between them."""
    user_id = f"demo-{uuid.uuid4().hex[:8]}"
    context = Context(user_id=user_id, window=window)
    first, second = f"{user_id}-1", f"{user_id}-2"
    scenes: list[_Scene] = []

    def act(storage: Storage, thread_id: str, message: str, *, is_first: bool) -> None:
        graph = build_graph(travel, model="offline", storage=storage)
        # A demo must not book: whatever it is asked to approve is shown and declined.
        turn = Conversation(graph, thread_id, context, decide=lambda interrupt: False).say(message)
        scenes.append(_Scene(thread_id, message, turn, session_notes(storage.store, thread_id), is_first))
        if shows:
            _print_scene(scenes[-1])

    with open_storage(database) as storage:
        _seed(storage, user_id)
        for place, message in enumerate(FIRST_SESSION):
            act(storage, first, message, is_first=not place)
        ending = end_thread(build_graph(travel, model="offline", storage=storage), storage, first, user_id)
        if shows:
            say("\nend of the session", "bold")
            print_ending(ending)
    with open_storage(database, create=False) as storage:
        act(storage, second, SECOND_SESSION, is_first=True)
        return _Run(
            context,
            (first, second),
            ending,
            scenes,
            long_term=long_term_notes(storage.store, user_id),
            left=session_notes(storage.store, first),
            bookings=len(storage.store.search(namespaces.user(user_id, "trips"), limit=10)),
        )


def _seed(storage: Storage, user_id: str) -> None:
    """Store the example user's profile, checked by the agent's schema, and notes."""
    set_profile(storage, user_id, EXAMPLE["profile"], agent=travel)
    for known in EXAMPLE["notes"]:
        source = Source(thread_id="import", quote=known["text"])
        seeded = Note(id=note_id("demo", known["date"], known["text"]), origin="import", sources=(source,), **known)
        storage.store.put(namespaces.notes(user_id), seeded.id, seeded.value(), index=False)


def _claims(run: _Run) -> list[_Claim]:
    """Check what the demo is meant to show against what happened."""
    trip, preferences, vegetarian, window = run.scenes[:4]
    seat, seeded = str(EXAMPLE["profile"]["seat_preference"]), [str(one["text"]) for one in EXAMPLE["notes"]]
    cited = [text for text in seeded if text.rstrip(".") in preferences.turn.reply]
    names = ", ".join(dict.fromkeys(call.name for call in trip.turn.calls.values())) or "no tool"
    arguments = " ".join(str(call.arguments) for call in trip.turn.calls.values())
    lasting, kept = _about("vegetarian", run.long_term), _about("window", [*run.long_term, *run.left])
    sourced = all(source.thread_id == run.threads[0] for one in lasting for source in one.sources)
    dropped = [(one, reason) for one, reason in run.ending.dropped if "window" in one.text]
    in_reply = {word: word in run.scenes[-1].turn.reply.lower() for word in ("vegetarian", seat, "window")}
    prompts = [event for scene in run.scenes for event in scene.turn.named("prompt_assembled")]
    sizes = [(prompt["tokens"], prompt["breakdown"]["reply_reserve"], prompt["window"]) for prompt in prompts]
    return [
        _Claim(
            "the trip to Paris is taken up, and nothing is booked without approval",
            "Paris" in trip.turn.reply + arguments and run.bookings == 0,
            f"called {names}; {len(trip.turn.asked)} approvals asked; {run.bookings} bookings stored",
        ),
        _Claim(
            "the preferences come from the profile and the long-term notes",
            seat in preferences.turn.reply and bool(cited),
            f"the reply has the profile's seat preference ({seat}) and {len(cited)} of {len(seeded)} notes",
        ),
        _saved(vegetarian, "vegetarian", "durable", "“I am vegetarian” is saved as a note that lasts"),
        _saved(window, "window", "session", "the window seat is noted for this session only"),
        _Claim(
            "at the end of the session “vegetarian” becomes long-term and names its source",
            bool(lasting) and sourced and not _about("vegetarian", run.left),
            _quoted(lasting) or "no long-term note about it",
        ),
        _Claim(
            "the window seat does not",
            bool(dropped) and not kept,
            "; ".join(f"“{one.text}” dropped: {reason}" for one, reason in dropped) or _quoted(kept) or "no such note",
        ),
        _Claim(
            "a new thread knows “vegetarian” and the usual aisle seat, and nothing of the window seat",
            in_reply == {"vegetarian": True, seat: True, "window": False},
            ", ".join(f"“{word}” {'is' if found else 'is not'} in the reply" for word, found in in_reply.items()),
        ),
        _Claim(
            "every prompt and its reply reserve fit the window",
            bool(sizes) and all(tokens + reserve <= limit for tokens, reserve, limit in sizes),
            f"{len(sizes)} prompts, the largest {max(sizes, default=(0,))[0]:,} of {run.context.window:,} tokens",
        ),
    ]


def _saved(scene: _Scene, word: str, scope: str, claim: str) -> _Claim:
    notes = _about(word, scene.notes)
    saved = {event["note_id"] for event in scene.turn.named("note_saved")}
    holds = bool(notes) and all(one.scope == scope and one.id in saved for one in notes)
    return _Claim(claim, holds, _quoted(notes) or f"no session note about {word!r}")


def _about(word: str, notes: Sequence[Note]) -> list[Note]:
    return [one for one in notes if word in one.text.lower()]


def _quoted(notes: Sequence[Note]) -> str:
    return "; ".join(f"“{one.text}” ({one.scope})" for one in notes)


def _print_scene(scene: _Scene) -> None:
    if scene.is_first:
        say(f"\n── thread {scene.thread_id} {'─' * 50}", "bold")
    say()
    hanging("you    ", scene.message, "bold")
    for call in scene.turn.calls.values():
        hanging("       → ", as_code(call), "dim")
        hanging("       ← ", shortened(scene.turn.results.get(call.id) or "no result"), "dim")
    for asked, _ in scene.turn.asked:
        hanging("       ", f"asked for approval, declined by the demo: {shortened(str(asked))}", "yellow")
    first, *rest = scene.turn.reply.splitlines() or [""]
    hanging("agent  ", first)
    for line in rest:
        hanging(" " * (7 + len(line) - len(line.lstrip())), line.lstrip())
    if (prompt := scene.turn.prompt) is not None:
        hanging("       ", headline(prompt), "dim")
        drawn = bar(prompt)
        drawn.pad_left(7)
        out().print(drawn)
        hanging("       ", legend(prompt), "dim")


def _print_claims(claims: Sequence[_Claim]) -> None:
    say("\nchecked", "bold")
    for claim in claims:
        say(f"  {'✓' if claim.holds else '✗'} {claim.claim}", "" if claim.holds else "bold red")
        hanging("      ", claim.evidence, "dim")
    say(f"{sum(claim.holds for claim in claims)} of {len(claims)} claims hold", "bold")


def _print_next(run: _Run, database: str | None) -> None:
    """Say what to try now."""
    steps = {
        "everthread chat": "talk with this agent yourself; --agent support takes another one",
        "everthread chat --model openai:NAME": "with a real model; it needs OPENAI_API_KEY",
    }
    if database:
        steps = {
            command_line("show", run.threads[0], database=database): "every message of the first thread",
            command_line("why", "vegetarian", thread=run.threads[0], database=database): "where a note comes from",
            command_line("notes", run.context.user_id, database=database): "what is remembered",
            command_line("chat", thread=run.threads[1], database=database): "go on with the second thread",
        }
    else:
        steps["everthread demo --database sqlite:///demo.db"] = "keep what was played, to look at it"
    say("\nnext", "bold")
    if not shutil.which("everthread") and Path(sys.argv[0]).name == "everthread":
        # As from `make demo`, whose environment is not activated.
        steps = {command.replace("everthread", quote(sys.argv[0]), 1): why for command, why in steps.items()}
    for command, why in steps.items():
        say(f"  {command}")
        say(f"      {why}", "dim")


def _as_json(run: _Run, claims: Sequence[_Claim], database: str | None) -> dict[str, Any]:
    return {
        "model": "offline",
        "remark": _INTRODUCTION,
        "database": database,
        "user_id": run.context.user_id,
        "sessions": [
            {
                "thread_id": thread_id,
                "turns": [scene.as_json() for scene in run.scenes if scene.thread_id == thread_id],
                "consolidation": run.ending.as_json() if run.ending.thread_id == thread_id else None,
            }
            for thread_id in run.threads
        ],
        "long_term_notes": [one.value() for one in run.long_term],
        "claims": [asdict(claim) for claim in claims],
        "ok": all(claim.holds for claim in claims),
    }
