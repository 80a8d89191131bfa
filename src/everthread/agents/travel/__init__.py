"""The travel concierge: trips with flights, hotels, cars and insurance, booked only with approval."""

from importlib.resources import files

from everthread.agents.travel.errors import TravelError
from everthread.agents.travel.profile import TravelProfile
from everthread.agents.travel.tools import travel_tools
from everthread.state.agent import Agent
from everthread.tools.save_memory_note import save_memory_note

travel = Agent(
    name="travel",
    title="Travel concierge",
    instructions=(files(__name__) / "instructions.md").read_text(encoding="utf-8").strip(),
    tools=(*travel_tools(), save_memory_note),
    profile=TravelProfile,
    summary_sections=(
        "Trip and travellers",
        "Decisions with reasons",
        "Options offered and rejected",
        "Constraints and budget",
        "Bookings and references",
        "Open questions",
        "Next step",
    ),
)
"""The agent as data; change it with `dataclasses.replace`."""

__all__ = ["TravelError", "TravelProfile", "travel", "travel_tools"]
