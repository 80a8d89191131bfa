"""Play the demo: two sessions of the travel agent, through the real graph and a real database, and check them."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

import yaml

from everthread.agents import travel
from everthread.agents.travel import TravelProfile
from everthread.cli.conversation import Call, Conversation, Turn
from everthread.cli.endings import Ending, end_thread
from everthread.cli.reading import long_term_notes, session_notes
from everthread.graph.agent import build_graph
from everthread.state import Context, Note, Source, namespaces
from everthread.state.notes import note_id
from everthread.storage.open import Storage, open_storage

__all__ = ["Claim", "Demonstration", "Scene", "claims", "play", "seed_notes", "seed_profile"]

FIRST_SESSION = (
    "Book me a flight to Paris next month.",
    "Do you know my preferences?",
    "Remember that I am vegetarian.",
    "This time, I like to have a window seat. I really want to sleep.",
)
SECOND_SESSION = "What do you know about me?"


@dataclass(frozen=True)
class Scene:
    """One turn of the demo."""

    thread_id: str
    said: str
    turn: Turn
    notes: list[Note]
    """Session notes after the turn."""

    def as_json(self) -> dict[str, Any]:
        """Return the turn as one JSON object."""
        return {
            "user": self.said,
            "tool_calls": [
                {"name": call.name, "args": call.arguments, "result": call.result} for call in self.turn.calls.values()
            ],
            "approvals": [{"asked": asked, "approved": answer} for asked, answer in self.turn.asked],
            "reply": self.turn.reply,
            "prompt": self.turn.prompt,
            "model_calls": len(self.turn.named("prompt_assembled")),
            "events": [str(event.get("event")) for event in self.turn.events],
            "session_notes": [note.value() for note in self.notes],
        }


@dataclass(frozen=True)
class Claim:
    """Something the demo says, and whether it was so."""

    claim: str
    holds: bool
    evidence: str


@dataclass
class Demonstration:
    """What was played."""

    user_id: str
    threads: tuple[str, str]
    context: Context
    scenes: list[Scene] = field(default_factory=list)
    ending: Ending | None = None
    lasting: list[Note] = field(default_factory=list)
    """Long-term notes at the end."""
    left: list[Note] = field(default_factory=list)
    """Session notes of the first thread after its session ended."""
    bookings: int = 0


class _Silent:
    """Watches nothing; the demo shows a turn when it is over."""

    def text(self, text: str) -> None:
        """Ignore."""

    def called(self, call: Call) -> None:
        """Ignore."""

    def returned(self, call: Call) -> None:
        """Ignore."""

    def event(self, event: Mapping[str, Any]) -> None:
        """Ignore."""


def play(
    database: str, *, window: int, on_scene: Callable[[Scene], None], on_ending: Callable[[Ending], None]
) -> Demonstration:
    """Play both sessions; the database is closed and opened again between them.

    Args:
        database: URL; each demo is a user of its own in it.
        window: input limit in tokens.
        on_scene: called after each turn.
        on_ending: called after the first session has ended.
    """
    mark = uuid.uuid4().hex[:8]
    context = Context(user_id=f"demo-{mark}", window=window)
    played = Demonstration(context.user_id, (f"demo-{mark}-1", f"demo-{mark}-2"), context)
    first, second = played.threads
    with open_storage(database) as storage:
        _seed(storage, context.user_id)
        for text in FIRST_SESSION:
            _scene(storage, played, first, text, on_scene)
        graph = build_graph(travel, model="offline", storage=storage)
        played.ending = end_thread(graph, storage, first, context.user_id)
        on_ending(played.ending)
    with open_storage(database, create=False) as storage:
        _scene(storage, played, second, SECOND_SESSION, on_scene)
        played.lasting = long_term_notes(storage.store, context.user_id)
        played.left = session_notes(storage.store, first)
        played.bookings = len(storage.store.search(namespaces.user(context.user_id, "trips"), limit=10))
    return played


def seed_notes() -> list[Note]:
    """Return the example user's long-term notes, as the package data has them."""
    return [
        Note(
            id=note_id("demo", told["date"], told["text"]),
            origin="import",
            sources=(Source(thread_id="import", quote=told["text"]),),
            **told,
        )
        for told in _example()["notes"]
    ]


def seed_profile() -> dict[str, Any]:
    """Return the example user's profile, checked by the agent's schema."""
    return TravelProfile.model_validate(_example()["profile"]).model_dump(mode="json", exclude_none=True)


def _example() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(files("everthread.cli").joinpath("demo.yaml").read_text(encoding="utf-8"))
    return found


def _seed(storage: Storage, user_id: str) -> None:
    storage.store.put(namespaces.profile(user_id), "profile", seed_profile(), index=False)
    for note in seed_notes():
        storage.store.put(namespaces.notes(user_id), note.id, note.value(), index=False)


def _scene(
    storage: Storage, played: Demonstration, thread_id: str, text: str, on_scene: Callable[[Scene], None]
) -> None:
    graph = build_graph(travel, model="offline", storage=storage)
    # A demo must not book: whatever is asked for is shown and declined.
    conversation = Conversation(graph, thread_id, played.context, watcher=_Silent(), decide=lambda interrupt: False)
    turn = conversation.say(text)
    played.scenes.append(Scene(thread_id, text, turn, session_notes(storage.store, thread_id)))
    on_scene(played.scenes[-1])


def claims(played: Demonstration) -> list[Claim]:
    """Check what the demo is meant to show against what happened."""
    return [
        _trip(played),
        _preferences(played),
        _saved(played.scenes[2], "vegetarian", "durable", "“I am vegetarian” is saved as a note that lasts"),
        _saved(played.scenes[3], "window", "session", "the window seat is noted for this session only"),
        *_ended(played),
        _remembered(played),
        _fitted(played),
    ]


def _trip(played: Demonstration) -> Claim:
    turn = played.scenes[0].turn
    told = " ".join([turn.reply, *(str(call.arguments) for call in turn.calls.values())])
    names = ", ".join(dict.fromkeys(call.name for call in turn.calls.values())) or "no tool"
    return Claim(
        "the trip to Paris is taken up, and nothing is booked without approval",
        bool(turn.reply) and "Paris" in told and played.bookings == 0,
        f"called {names}; {len(turn.asked)} approvals asked; {played.bookings} bookings stored",
    )


def _preferences(played: Demonstration) -> Claim:
    reply, seat = played.scenes[1].turn.reply, str(seed_profile()["seat_preference"])
    notes = [note.text for note in seed_notes()]
    known = [text for text in notes if text.rstrip(".") in reply]
    return Claim(
        "the preferences come from the profile and the long-term notes",
        seat in reply and bool(known),
        f"the reply has the profile's seat preference ({seat}) and {len(known)} of {len(notes)} notes",
    )


def _saved(scene: Scene, word: str, scope: str, claim: str) -> Claim:
    found = _about(word, scene.notes)
    saved = {event["note_id"] for event in scene.turn.named("note_saved")}
    holds = bool(found) and all(note.scope == scope and note.id in saved for note in found)
    return Claim(claim, holds, _quoted(found) or f"no session note about {word!r}")


def _ended(played: Demonstration) -> list[Claim]:
    added = _about("vegetarian", played.lasting)
    sourced = all(source.thread_id == played.threads[0] for note in added for source in note.sources)
    dropped = [] if played.ending is None else [pair for pair in played.ending.dropped if "window" in pair[0].text]
    kept = _about("window", [*played.lasting, *played.left])
    return [
        Claim(
            "at the end of the session “vegetarian” becomes long-term and names its source",
            bool(added) and sourced and not _about("vegetarian", played.left),
            _quoted(added) or "no long-term note about it",
        ),
        Claim(
            "the window seat does not",
            bool(dropped) and not kept,
            "; ".join(f"“{note.text}” dropped: {reason}" for note, reason in dropped)
            or _quoted(kept)
            or "no such note",
        ),
    ]


def _remembered(played: Demonstration) -> Claim:
    reply, seat = played.scenes[-1].turn.reply.lower(), str(seed_profile()["seat_preference"])
    there = {word: word in reply for word in ("vegetarian", seat, "window")}
    return Claim(
        "a new thread knows “vegetarian” and the usual aisle seat, and nothing of the window seat",
        there == {"vegetarian": True, seat: True, "window": False},
        ", ".join(f"“{word}” {'is' if found else 'is not'} in the reply" for word, found in there.items()),
    )


def _fitted(played: Demonstration) -> Claim:
    prompts = [event for scene in played.scenes for event in scene.turn.named("prompt_assembled")]
    fits = [prompt["tokens"] + prompt["breakdown"]["reply_reserve"] <= prompt["window"] for prompt in prompts]
    largest = max((prompt["tokens"] for prompt in prompts), default=0)
    return Claim(
        "every prompt and its reply reserve fit the window",
        bool(fits) and all(fits),
        f"{len(prompts)} prompts, the largest {largest:,} of {played.context.window:,} tokens",
    )


def _about(word: str, notes: Sequence[Note]) -> list[Note]:
    return [note for note in notes if word in note.text.lower()]


def _quoted(notes: Sequence[Note]) -> str:
    return "; ".join(f"“{note.text}” ({note.scope})" for note in notes)
