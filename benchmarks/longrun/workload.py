"""The workloads: what the user asks, what the tools return, and how often the model calls them."""

import random
from dataclasses import dataclass
from functools import lru_cache

RULE = "do not book before I approve, and keep the whole trip under 1,840 euros"
"""What turn 1 forbids; the sentence is nowhere else, so a prompt that holds it still knows turn 1."""

INSTRUCTIONS = """\
You plan trips for people who know what they want. You compare options side by side, name prices with their currency,
and say what an option leaves out. You look things up before you answer and never guess a price, a time or a code.

- Ask for what is missing only when the answer would change your choice.
- Quote references exactly as a tool returned them.
- Say plainly when nothing fits, and what would have to change.
- Book only what the user has approved by its reference."""

RESULT_CHARACTERS = 2_000
"""Length of every tool result."""

_CITIES = ("Lyon", "Porto", "Graz", "Ghent", "Turin", "Bergen", "Split", "Aarhus", "Leipzig", "Seville")
_REMARKS = (
    "The room faces the courtyard and is quiet at night",
    "Breakfast is served until eleven and can be added later",
    "Guests like the short walk from the station",
    "The fare allows one change of date against a fee",
    "A cot is available but has to be asked for in advance",
    "The terminal has changed, so leave some more time for it",
    "Free cancellation ends two days before arrival",
    "There is no lift, and the rooms are on the third floor",
)


@dataclass(frozen=True)
class Workload:
    """How a thread goes."""

    name: str
    title: str
    parallel: int
    """Tool calls in one message of the model."""
    rounds: int = 1
    """Tool rounds in a turn."""
    single_turn: bool = False
    """One request whose rounds are what counts; `--turns` does not apply."""

    @property
    def unit(self) -> str:
        """What costs are divided by."""
        return "round" if self.single_turn else "turn"


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("a", "one tool call a turn", parallel=1),
        Workload("b", "three parallel tool calls a turn", parallel=3),
        Workload("c1", "one request, 300 rounds of one call", parallel=1, rounds=300, single_turn=True),
        Workload("c3", "one request, 300 rounds of three parallel calls", parallel=3, rounds=300, single_turn=True),
    )
}


def question(workload: Workload, turn: int) -> str:
    """Return the user's message of a turn, counted from 1; the first one sets the rule."""
    if workload.single_turn:
        return (
            f"Request 1: check every option on my list of {workload.rounds} routes, one after the other, and give me a "
            f"table of the ten cheapest with their references. Please {RULE}."
        )
    if turn == 1:
        return f"Question 1: I plan a tour of five cities for two people in May. Please {RULE}. What is there in Lyon?"
    return f"Question {turn}: what do you find for {city(turn)} from {_day(turn)}, and which option is the best value?"


def answer(turn: int) -> str:
    """Return the model's reply to a turn."""
    return (
        f"For {city(turn)} I compared all options. {reference(turn, 0, 0)} is the best value: it is the cheapest with "
        "free cancellation, it is close to the station, and it leaves room in the budget. The second one is quieter "
        "but costs a fifth more. I have booked nothing yet; tell me which reference you approve."
    )


def city(turn: int) -> str:
    """Return where a turn goes to."""
    return _CITIES[(turn - 1) % len(_CITIES)]


def reference(turn: int, round_: int, place: int) -> str:
    """Return the reference that one call looks up: no two calls of a thread share it."""
    return f"RT{turn:04d}-{round_:03d}{'ABC'[place]}"


@lru_cache(maxsize=4_096)
def tool_result(wanted: str) -> str:
    """Return what the tool finds for a reference: prose and figures, always of the same length."""
    rng = random.Random(wanted)
    lines = [f"Options for {wanted}:"]
    while sum(map(len, lines)) + len(lines) < RESULT_CHARACTERS:
        price = f"{rng.randint(48, 310)}.{rng.randint(0, 99):02d} euros a night"
        code = f"{rng.choice('KLMNPQ')}{rng.randint(1000, 9999)}"
        where = f"{rng.choice(_CITIES)} Central, {rng.randint(2, 5)} stars"
        lines.append(f"{len(lines)}. {where}, {price}, code {code}. {rng.choice(_REMARKS)}.")
    return "\n".join(lines)[:RESULT_CHARACTERS]


def _day(turn: int) -> str:
    return f"2026-{5 + turn // 28 % 6:02d}-{1 + turn % 28:02d}"
