"""Profiles from Python."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from everthread import Context, aget_profile, aset_profile, build_graph, get_profile, open_storage, set_profile
from everthread.agents import travel
from everthread.agents.travel import TravelProfile
from everthread.errors import SettingsError, ThreadBusyError
from everthread.models.scripted import ScriptedModel
from everthread.state import namespaces
from everthread.storage.open import Storage

ADA = {"name": "Ada", "seat_preference": "aisle"}


@pytest.fixture
def storage() -> Iterator[Storage]:
    with open_storage("sqlite://", lock_timeout_seconds=0) as opened:
        yield opened


@pytest.mark.parametrize("profile", [ADA, TravelProfile(name="Ada", seat_preference="aisle")])
def test_a_profile_is_stored_and_read(storage: Storage, profile: Any) -> None:
    stored = set_profile(storage, "ada", profile, agent=travel)

    assert stored == get_profile(storage, "ada") == ADA
    assert get_profile(storage, "bob") is None


async def test_a_profile_is_stored_and_read_asynchronously(storage: Storage) -> None:
    assert await aset_profile(storage, "ada", ADA, agent=travel) == ADA
    assert await aget_profile(storage, "ada") == ADA


def test_the_next_prompt_has_it(storage: Storage) -> None:
    model = ScriptedModel(["Aisle."])
    set_profile(storage, "ada", ADA, agent=travel)

    graph = build_graph(travel, model=model, storage=storage)
    graph.invoke({"messages": "Which seat?"}, {"configurable": {"thread_id": "t"}}, context=Context(user_id="ada"))

    assert "seat_preference: aisle" in "\n".join(str(message.content) for message in model.prompts[0])


@pytest.mark.parametrize(
    ("user_id", "profile", "reason"),
    [
        ("ada", {"age": -1, "currency": "XXY"}, "the travel agent: `age`: .*; `currency`: unknown currency 'XXY'"),
        ("ada", ["Ada"], "a profile has named fields, got list"),
        ("", ADA, "`user_id` must be a non-empty text"),
    ],
)
def test_what_does_not_fit_is_refused_and_not_stored(storage: Storage, user_id: str, profile: Any, reason: str) -> None:
    set_profile(storage, "ada", {"name": "Ada"}, agent=travel)

    with pytest.raises(SettingsError, match=reason):
        set_profile(storage, user_id, profile, agent=travel)
    with pytest.raises(SettingsError, match=reason):
        asyncio.run(aset_profile(storage, user_id, profile, agent=travel))

    assert get_profile(storage, "ada") == {"name": "Ada"}


def test_without_an_agent_it_takes_what_json_can_hold(storage: Storage) -> None:
    assert set_profile(storage, "ada", {"cats": ("Tom",)}) == {"cats": ["Tom"]}
    with pytest.raises(SettingsError, match="which cannot hold this one"):
        set_profile(storage, "ada", {"cats": object()})


async def test_it_waits_for_a_consolidation_of_the_same_user(storage: Storage) -> None:
    with storage.locks.hold(namespaces.user_key("ada")):
        with pytest.raises(ThreadBusyError):
            set_profile(storage, "ada", ADA)
        with pytest.raises(ThreadBusyError):
            await aset_profile(storage, "ada", ADA)
