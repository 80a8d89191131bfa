"""Service status and diagnostics of an IT estate; the bundled one is a deterministic sandbox."""

import hashlib
import re
from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import accumulate
from typing import Annotated, Literal, Protocol

import yaml
from pydantic import BaseModel, ConfigDict, Field, model_validator

from everthread.errors import NotFoundError, SettingsError

State = Literal["operational", "degraded", "outage", "maintenance"]
Verdict = Literal["ok", "warning", "failed"]

_TARGET_CHARACTERS = 200
_NOUN = re.compile(r"^(?:the|our) | (?:services?|systems?|server|platform)$")


@dataclass(frozen=True)
class ServiceStatus:
    """How one service is doing now."""

    service: str
    name: str
    state: State
    message: str
    minutes: int | None = None
    """How long this state has lasted; None when it is operational."""
    workaround: str | None = None
    article: str | None = None
    """Article of the knowledge base that helps meanwhile."""


@dataclass(frozen=True)
class Diagnosis:
    """What one check found out about one target."""

    check: str
    target: str
    verdict: Verdict
    summary: str
    evidence: tuple[str, ...]
    """Lines as the check printed them, error strings included."""
    code: str | None = None
    """Exact error code or string, when there is one."""
    article: str | None = None


class Estate(Protocol):
    """An IT estate that the agent can look at; implement it to connect a real one."""

    @property
    def label(self) -> str:
        """What to call this estate wherever one of its results is shown."""

    def statuses(self) -> Sequence[ServiceStatus]:
        """Return the status of every service."""

    def status(self, service: str) -> ServiceStatus:
        """Return the status of one service, or raise NotFoundError with the names that exist."""

    def run(self, check: str, target: str) -> Diagnosis:
        """Run one check, or raise NotFoundError with the checks that exist."""


class _Data(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Incident(_Data):
    """A disturbance of a sandbox service, and what the checks of that service find meanwhile."""

    state: Literal["degraded", "outage", "maintenance"]
    message: str
    minutes: int
    workaround: str | None = None
    article: str | None = None
    findings: dict[str, str] = {}
    """Outcome by check."""


class Service(_Data):
    """A service of the sandbox."""

    name: str
    aliases: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    incident: Incident | None = None


class Outcome(_Data):
    """One possible result of a check; `{…}` in its texts are filled with values drawn for the target."""

    id: str
    verdict: Verdict
    weight: Annotated[int, Field(ge=1)] = 1
    summary: str
    evidence: Annotated[tuple[str, ...], Field(min_length=1)]
    code: str | None = None
    article: str | None = None


class Check(_Data):
    """A check of the sandbox."""

    about: str
    target: str
    """What the check is run on, such as "host name"."""
    aliases: tuple[str, ...] = ()
    values: dict[str, tuple[int, int]] = {}
    """Lowest and highest number by name, for the texts of the outcomes."""
    outcomes: Annotated[tuple[Outcome, ...], Field(min_length=1)]


class SandboxData(_Data):
    """Services and checks of a sandbox estate."""

    services: dict[str, Service]
    checks: dict[str, Check]

    @model_validator(mode="after")
    def _findings_exist(self) -> "SandboxData":
        for name, service in self.services.items():
            for check, outcome in (service.incident.findings if service.incident else {}).items():
                known = [one.id for one in self.checks[check].outcomes] if check in self.checks else []
                if outcome not in known:
                    raise ValueError(f"service {name!r}: check {check!r} has no outcome {outcome!r}")
        return self


class SandboxEstate:
    """A made-up estate: the same question always gets the same answer, and nothing real is contacted.

    A check of a service agrees with the status of that service. Any other target draws one of the check's
    outcomes, and the numbers in it, from a hash of check and target.
    """

    def __init__(self, data: SandboxData) -> None:
        self._data = data
        self._services = _names({key: (one.name, *one.aliases, *one.hosts) for key, one in self._data.services.items()})
        self._checks = _names({key: one.aliases for key, one in self._data.checks.items()})

    @property
    def label(self) -> str:
        """Say that the results are made up."""
        return "sandbox IT estate, simulated: no real system was contacted"

    def statuses(self) -> list[ServiceStatus]:
        """Return the status of every service."""
        return [self.status(key) for key in self._data.services]

    def status(self, service: str) -> ServiceStatus:
        """Return the status of one service, by id, name, alias or host; "VPN service" is the VPN.

        Raises:
            NotFoundError: there is no such service.
        """
        spelled = _folded(service)
        key = self._services.get(spelled) or self._services.get(_NOUN.sub("", spelled))
        if key is None:
            raise NotFoundError(
                f"unknown service {service!r}; the services are {', '.join(sorted(self._data.services))}"
            )
        found = self._data.services[key]
        if found.incident is None:
            return ServiceStatus(key, found.name, "operational", "no known disturbance")
        incident = found.incident
        return ServiceStatus(
            key, found.name, incident.state, incident.message, incident.minutes, incident.workaround, incident.article
        )

    def run(self, check: str, target: str) -> Diagnosis:
        """Run a check on a host, service, device, share or user, as the check asks.

        Raises:
            NotFoundError: there is no such check.
            SettingsError: the target is empty, too long or more than one line.
        """
        key = self._checks.get(_folded(check))
        if key is None:
            known = (f"{name} ({one.about})" for name, one in sorted(self._data.checks.items()))
            raise NotFoundError(f"unknown check {check!r}; the checks are {', '.join(known)}")
        target = target.strip()
        if not target or len(target) > _TARGET_CHARACTERS or not target.isprintable():
            raise SettingsError(
                f"`target` must be one line of 1 to {_TARGET_CHARACTERS} characters, got {target[:40]!r}; "
                f"`{key}` takes: {self._data.checks[key].target}"
            )
        seed = f"{key}\0{_folded(target)}"
        outcome = self._outcome(key, target, seed)
        values = {"target": target} | {
            name: str(_draw(f"{seed}\0{name}", low, high))
            for name, (low, high) in self._data.checks[key].values.items()
        }
        return Diagnosis(
            check=key,
            target=target,
            verdict=outcome.verdict,
            summary=outcome.summary.format_map(values),
            evidence=tuple(line.format_map(values) for line in outcome.evidence),
            code=outcome.code,
            article=outcome.article,
        )

    def _outcome(self, check: str, target: str, seed: str) -> Outcome:
        """Choose what the check finds: what the status of the service says, else a draw by weight."""
        outcomes = self._data.checks[check].outcomes
        service = self._services.get(_folded(target))
        if service is not None:
            incident = self._data.services[service].incident
            if incident is not None and check in incident.findings:
                return next(outcome for outcome in outcomes if outcome.id == incident.findings[check])
            return next((outcome for outcome in outcomes if outcome.verdict == "ok"), outcomes[0])
        sums = list(accumulate(outcome.weight for outcome in outcomes))
        return outcomes[bisect(sums, _draw(seed, 0, sums[-1] - 1))]


@cache
def bundled_sandbox() -> SandboxData:
    """Read the services and checks that ship with the package."""
    text = (files("everthread.agents.support") / "sandbox.yaml").read_text(encoding="utf-8")
    return SandboxData.model_validate(yaml.safe_load(text))


@cache
def bundled_estate() -> SandboxEstate:
    """Make the bundled sandbox estate, once per process."""
    return SandboxEstate(bundled_sandbox())


def _names(aliases: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Map every spelling to its key; a key itself wins over an alias of another one."""
    spelled = {_folded(alias): key for key, names in aliases.items() for alias in names}
    return spelled | {_folded(key): key for key in aliases}


def _folded(name: str) -> str:
    return " ".join(name.casefold().replace("_", " ").replace("-", " ").split())


def _draw(seed: str, low: int, high: int) -> int:
    """Draw a whole number in [low, high] that only depends on the seed."""
    digest = hashlib.sha256(seed.encode("utf-8", "backslashreplace")).digest()
    return low + int.from_bytes(digest[:8], "big") % (high - low + 1)


def render_statuses(label: str, statuses: Sequence[ServiceStatus]) -> str:
    """Write service statuses for the model, disturbances first, with the estate's label."""
    ordered = sorted(statuses, key=lambda status: status.state == "operational")
    return "\n".join((f"[{label}]", *(_render_status(status) for status in ordered)))


def _render_status(status: ServiceStatus) -> str:
    since = f" (for {status.minutes} minutes)" if status.minutes is not None else ""
    workaround = f" Workaround: {status.workaround}" if status.workaround else ""
    article = f" See {status.article}." if status.article else ""
    return f"- {status.service} ({status.name}): {status.state}{since}: {status.message}{workaround}{article}"


def render_diagnosis(label: str, diagnosis: Diagnosis) -> str:
    """Write a diagnosis for the model, with the estate's label and the evidence word for word."""
    lines = [
        f"[{label}]",
        f"{diagnosis.check} {diagnosis.target}: {diagnosis.verdict.upper()}: {diagnosis.summary}",
        *(f"> {line}" for line in diagnosis.evidence),
    ]
    lines += [f"Code: {diagnosis.code}"] if diagnosis.code else []
    lines += [f"See {diagnosis.article}."] if diagnosis.article else []
    return "\n".join(lines)
