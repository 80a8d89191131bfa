"""A user's profile: what trusted systems know about them, read and written from Python."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from everthread.errors import SettingsError
from everthread.nodes.consolidate import imported
from everthread.state import Agent, namespaces
from everthread.storage.open import Storage


def get_profile(storage: Storage, user_id: str) -> dict[str, Any] | None:
    """Return a user's profile as JSON; None when there is none.

    It has what `set_profile` stored, and the preferences that became fields since.
    """
    item = storage.store.get(namespaces.profile(namespaces.checked("user_id", user_id)), "profile")
    return None if item is None else dict(item.value)


async def aget_profile(storage: Storage, user_id: str) -> dict[str, Any] | None:
    """Do what `get_profile` does without blocking the event loop."""
    return await storage.worker.call(get_profile, storage, user_id)


def set_profile(
    storage: Storage, user_id: str, profile: Mapping[str, Any] | BaseModel, *, agent: Agent | None = None
) -> dict[str, Any]:
    """Store a user's profile in place of the one before; the next run of any of their threads shows it.

    It waits while notes of the same user are consolidated.

    Args:
        profile: its fields, or a model of them.
        agent: whose schema it must fit; None takes any fields that JSON can hold.

    Returns:
        What was stored: JSON, without fields that are not set.

    Raises:
        SettingsError: the id cannot be used, or the profile does not fit; every field is named.
        ThreadBusyError: a consolidation took longer than the storage's `lock_timeout_seconds`.
    """
    user_id, value = namespaces.checked("user_id", user_id), valid_profile(profile, agent)
    with storage.locks.hold(namespaces.user_key(user_id)):
        _store(storage, user_id, value)
    return value


async def aset_profile(
    storage: Storage, user_id: str, profile: Mapping[str, Any] | BaseModel, *, agent: Agent | None = None
) -> dict[str, Any]:
    """Do what `set_profile` does without blocking the event loop."""
    user_id, value = namespaces.checked("user_id", user_id), valid_profile(profile, agent)
    async with storage.locks.hold(namespaces.user_key(user_id)):
        await storage.worker.call(_store, storage, user_id, value)
    return value


def valid_profile(profile: Mapping[str, Any] | BaseModel, agent: Agent | None) -> dict[str, Any]:
    """Return a profile as it is stored; arguments and errors as in `set_profile`."""
    value = profile.model_dump(mode="json", exclude_unset=True) if isinstance(profile, BaseModel) else profile
    if not isinstance(value, Mapping):
        raise SettingsError(f"a profile has named fields, got {type(value).__name__}")
    if agent is not None and agent.profile is not None:
        try:
            model = agent.profile.model_validate(dict(value))
        except ValidationError as error:
            problems = "; ".join(map(_problem, error.errors(include_url=False)))
            raise SettingsError(f"it does not fit the profile of the {agent.name} agent: {problems}") from error
        return model.model_dump(mode="json", exclude_unset=True, exclude_none=True)
    try:
        kept: dict[str, Any] = json.loads(json.dumps(dict(value)))
    except (TypeError, ValueError) as error:
        raise SettingsError(f"a profile is stored as JSON, which cannot hold this one: {error}") from error
    return kept


def _store(storage: Storage, user_id: str, profile: Mapping[str, Any]) -> None:
    storage.store.batch(imported(storage.store, user_id, profile))


def _problem(detail: ErrorDetails) -> str:
    where = ".".join(map(str, detail["loc"])) or "profile"
    message = detail["msg"].removeprefix("Value error, ")
    # A field that does not belong here may hold what must not be shown, such as a passport's number.
    is_shown = detail["type"] not in ("missing", "extra_forbidden") and isinstance(detail["input"], str | int | float)
    got = f" (got {str(detail['input'])[:60]!r})" if is_shown else ""
    return f"`{where}`: {message}{got}"
