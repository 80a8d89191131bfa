"""Constraints in wordings of our own, planted into conversations, and conversations made to hold them."""

import random
from collections.abc import Iterator
from dataclasses import replace

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from everthread.evals.records import Record, Toolkit

__all__ = ["WORDINGS", "make_records", "plant"]

WORDINGS: dict[str, tuple[str, ...]] = {
    "approval": (
        "Don't book anything before I approve it.",
        "Please check with me before you pay for anything.",
        "Wait for my okay before you change the reservation.",
        "Hold off on buying until you hear from me.",
        "Nothing gets charged without my say-so.",
        "Put nothing on the card without asking.",
        "Everything you buy needs my nod first.",
        "Check the total with me before paying.",
        "Let me decide which seat.",
    ),
    "budget": (
        "My total budget is $850.",
        "Spend no more than 850 dollars.",
        "I can't go over 850 dollars all in.",
        "Keep the whole thing under $850, please.",
        "The whole trip must cost less than 850 EUR.",
        "Anything above $850 is out of the question.",
    ),
    "allergy": (
        "I'm allergic to peanuts.",
        "I have an allergy to shellfish.",
        "My daughter is severely allergic to sesame.",
        "Peanuts could kill me, so no peanuts in any meal.",
        "My son carries an EpiPen because of nuts.",
        "I get sick from dairy.",
        "Nuts are dangerous for my kid.",
    ),
    "prohibition": (
        "Never call me on my work phone.",
        "Do not share my itinerary with anyone at my company.",
        "You must not mention this trip to my manager.",
        "My manager is not to hear about this trip.",
        "Stop sending me updates by email.",
        "I'd be upset if you told my sister.",
    ),
    "need": (
        "I use a wheelchair and need step-free access.",
        "From now on write to me in German.",
        "Only travel after 6 pm works for me on weekdays.",
        "No connections under one hour.",
        "Keep my old number active.",
        "I need the laptop back by Friday at noon.",
    ),
}
"""Ways to state a constraint. Some are wordings that no rule of ours knows; the figures show it."""

_TOPICS = ("a hotel near the station", "the morning train", "a table for two", "the museum tickets", "a rental car")


def plant(record: Record, seed: int) -> tuple[Record, dict[str, str], str]:
    """Put one constraint at the end of an early message of the user.

    Returns:
        The record, the sentence by the id of the message that now states it, and the category; no sentence when the
        record has no such message.
    """
    dice = random.Random(f"{seed}/{record.id}")
    category = dice.choice(list(WORDINGS))
    sentence = dice.choice(WORDINGS[category])
    candidates = [message for message in record.messages if isinstance(message, HumanMessage) and _is_text(message)]
    early = candidates[1:4] or candidates[:1]
    if not early:
        return record, {}, category
    chosen = dice.choice(early)
    changed = chosen.model_copy(update={"content": f"{chosen.text} {sentence}".strip()})
    messages = tuple(changed if message is chosen else message for message in record.messages)
    return replace(record, messages=messages), {str(chosen.id): sentence}, category


def _is_text(message: HumanMessage) -> bool:
    return isinstance(message.content, str)


def make_records(count: int, turns: int, seed: int) -> Iterator[Record]:
    """Make conversations of turns with a tool call each, long enough that their beginning leaves every small window."""
    for number in range(count):
        dice = random.Random(f"{seed}/{number}")
        messages: list[BaseMessage] = []
        for turn in range(turns):
            topic = dice.choice(_TOPICS)
            call = {"name": "look_up", "args": {"what": topic}, "id": f"c{turn}", "type": "tool_call"}
            rows = " ".join(f"option {dice.randrange(1000, 9999)} at {dice.randrange(40, 400)} EUR;" for _ in range(25))
            messages += [
                HumanMessage(f"What about {topic} on day {turn + 1}?", id=f"h{turn}"),
                AIMessage("", tool_calls=[call], id=f"a{turn}"),
                ToolMessage(rows, tool_call_id=f"c{turn}", name="look_up", id=f"t{turn}"),
                AIMessage(f"For {topic} there are 25 options.", id=f"b{turn}"),
            ]
        kit = Toolkit(system="You plan a trip and answer briefly.")
        yield Record(f"made/{number}", "made", tuple(messages), toolkit=kit)
