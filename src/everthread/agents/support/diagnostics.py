"""Service status and diagnostics of a made-up IT estate: the same question always gets the same answer."""

import hashlib
import re
from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import accumulate
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from everthread.errors import NotFoundError, SettingsError

LABEL = "sandbox IT estate, simulated: no real system was contacted"
"""Shown wherever a status or a result is."""

_TARGET_CHARACTERS = 200
_NOUN = re.compile(r"^(?:the|our) | (?:services?|systems?|server|platform)$")


class _Data(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Incident(_Data):
    """A disturbance of a service, and what the checks of that service find meanwhile."""

    state: Literal["degraded", "outage", "maintenance"]
    message: str
    minutes: int
    """How long it has lasted."""
    workaround: str | None = None
    article: str | None = None
    """Article of the knowledge base that helps meanwhile."""
    findings: dict[str, str] = {}
    """Id of an outcome by check."""


class Service(_Data):
    """A service of the estate."""

    name: str
    aliases: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    incident: Incident | None = None
    """None while it is operational."""


class Outcome(_Data):
    """One possible result of a check; `{…}` in its texts are filled with values drawn for the target."""

    id: str
    verdict: Literal["ok", "warning", "failed"]
    weight: Annotated[int, Field(ge=1)] = 1
    summary: str
    evidence: Annotated[tuple[str, ...], Field(min_length=1)]
    """Lines as the check prints them, error strings included."""
    code: str | None = None
    """Exact error code or string, when there is one."""
    article: str | None = None


class Check(_Data):
    """A check that can be run on a target."""

    about: str
    target: str
    """What the check is run on, such as "host name"."""
    aliases: tuple[str, ...] = ()
    values: dict[str, tuple[int, int]] = {}
    """Lowest and highest number by name, for the texts of the outcomes."""
    outcomes: Annotated[tuple[Outcome, ...], Field(min_length=1)]


class Sandbox(_Data):
    """Everything in `sandbox.yaml`."""

    services: dict[str, Service]
    checks: dict[str, Check]


@dataclass(frozen=True)
class Diagnosis:
    """What one check found out about one target; as text, it is what the model reads."""

    check: str
    target: str
    outcome: Outcome
    """With the values for this target in its texts."""

    def __str__(self) -> str:
        found = self.outcome
        lines = [
            f"[{LABEL}]",
            f"{self.check} {self.target}: {found.verdict.upper()}: {found.summary}",
            *(f"> {line}" for line in found.evidence),
            *([f"Code: {found.code}"] if found.code else []),
            *([f"See {found.article}."] if found.article else []),
        ]
        return "\n".join(lines)


@cache
def sandbox() -> Sandbox:
    """Read the services and checks, once per process."""
    text = (files(__package__) / "sandbox.yaml").read_text(encoding="utf-8")
    return Sandbox.model_validate(yaml.safe_load(text))


def service_named(text: str) -> str | None:
    """Return the id of a service by id, name, alias or host; "VPN service" is the VPN. None when there is none."""
    spelled = _folded(text)
    return _service_names().get(spelled) or _service_names().get(_NOUN.sub("", spelled))


def status_of(service: str | None = None) -> str:
    """Write the status of one service, or of all with the disturbed ones first, for the model.

    Raises:
        NotFoundError: there is no such service.
    """
    services = sandbox().services
    if not service:
        keys = sorted(services, key=lambda key: services[key].incident is None)
    elif key := service_named(service):
        keys = [key]
    else:
        raise NotFoundError(f"unknown service {service!r}; the services are {', '.join(sorted(services))}")
    return "\n".join((f"[{LABEL}]", *(_status_line(key, services[key]) for key in keys)))


def _status_line(key: str, service: Service) -> str:
    incident = service.incident
    if incident is None:
        return f"- {key} ({service.name}): operational: no known disturbance"
    workaround = f" Workaround: {incident.workaround}" if incident.workaround else ""
    article = f" See {incident.article}." if incident.article else ""
    state = f"{incident.state} (for {incident.minutes} minutes)"
    return f"- {key} ({service.name}): {state}: {incident.message}{workaround}{article}"


def run(check: str, target: str) -> Diagnosis:
    """Run a check on a host, service, device, share or user, as the check asks.

    A check of a service agrees with the status of that service. Any other target draws one of the check's
    outcomes, and the numbers in it, from a hash of check and target.

    Raises:
        NotFoundError: there is no such check.
        SettingsError: the target is empty, too long or more than one line.
    """
    key = _check_names().get(_folded(check))
    if key is None:
        known = (f"{name} ({one.about})" for name, one in sorted(sandbox().checks.items()))
        raise NotFoundError(f"unknown check {check!r}; the checks are {', '.join(known)}")
    wanted, target = sandbox().checks[key], target.strip()
    if not target or len(target) > _TARGET_CHARACTERS or not target.isprintable():
        raise SettingsError(
            f"`target` must be one line of 1 to {_TARGET_CHARACTERS} characters, got {target[:40]!r}; "
            f"`{key}` takes: {wanted.target}"
        )
    seed = f"{key}\0{_folded(target)}"
    outcome = _outcome(key, target, seed)
    drawn = {name: str(_draw(f"{seed}\0{name}", low, high)) for name, (low, high) in wanted.values.items()}
    values = {"target": target} | drawn
    texts = {
        "summary": outcome.summary.format_map(values),
        "evidence": tuple(line.format_map(values) for line in outcome.evidence),
    }
    return Diagnosis(key, target, outcome.model_copy(update=texts))


def _outcome(check: str, target: str, seed: str) -> Outcome:
    """Choose what the check finds: what the status of the service says, else a draw by weight."""
    outcomes = sandbox().checks[check].outcomes
    if service := _service_names().get(_folded(target)):
        incident = sandbox().services[service].incident
        if incident is not None and check in incident.findings:
            return next(outcome for outcome in outcomes if outcome.id == incident.findings[check])
        return next((outcome for outcome in outcomes if outcome.verdict == "ok"), outcomes[0])
    sums = list(accumulate(outcome.weight for outcome in outcomes))
    return outcomes[bisect(sums, _draw(seed, 0, sums[-1] - 1))]


@cache
def _service_names() -> dict[str, str]:
    return _by_name({key: (one.name, *one.aliases, *one.hosts) for key, one in sandbox().services.items()})


@cache
def _check_names() -> dict[str, str]:
    return _by_name({key: one.aliases for key, one in sandbox().checks.items()})


def _by_name(aliases: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Map every spelling to its key; a key itself wins over an alias of another one."""
    spelled = {_folded(alias): key for key, names in aliases.items() for alias in names}
    return spelled | {_folded(key): key for key in aliases}


def _folded(name: str) -> str:
    return " ".join(name.casefold().replace("_", " ").replace("-", " ").split())


def _draw(seed: str, low: int, high: int) -> int:
    """Draw a whole number in [low, high] that only depends on the seed."""
    digest = hashlib.sha256(seed.encode("utf-8", "backslashreplace")).digest()
    return low + int.from_bytes(digest[:8], "big") % (high - low + 1)
