"""Read a Postgres URL: what goes to the driver, and the options of ours in it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Conninfo

from everthread.errors import SettingsError

_SCHEMA = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")

_OPTIONS = ("schema", "pool_size", "statement_timeout", "pgbouncer", "direct_url")
"""Parameters of a URL that are ours; all others, such as `sslmode`, go to the driver."""

_ALIVE = {"keepalives_idle": 20, "keepalives_interval": 10, "keepalives_count": 3, "connect_timeout": 10}
"""A server that is gone is noticed within a minute, and a connection is given up after ten seconds."""

_SERVER_ALIVE = "-c tcp_keepalives_idle=20 -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3"
"""And so does the server notice a worker that is gone, whose locks are free then."""


@dataclass(frozen=True)
class PostgresLocation:
    """A parsed URL of a Postgres database."""

    url: str
    """As it may be shown: without any password."""
    parameters: Mapping[str, Any] = field(repr=False)
    """What the driver takes, for work."""
    direct: Mapping[str, Any] = field(repr=False)
    """The same for a session of its own: past the pooler, when there is one."""
    schema: str | None = None
    """Schema of all tables, made when it is missing; None: what the role's search path says."""
    pool_size: int = 8
    """Connections of this process at most, without the one that holds its locks."""
    statement_timeout_seconds: float | None = None
    """How long one statement may take; None: what the server says."""
    pgbouncer: bool = False
    """Whether a pooler gives every transaction another connection: nothing may be prepared or set for longer."""

    def conninfo(self, *, direct: bool = False) -> str:
        """Return what `psycopg.connect` takes.

        Args:
            direct: a session of its own, not one of a pooler.
        """
        parameters = {**_ALIVE, "application_name": "everthread", **(self.direct if direct else self.parameters)}
        if direct or not self.pgbouncer:
            options = [str(parameters.get("options") or ""), _SERVER_ALIVE]
            options += [f"-c {name}={_escaped(value)}" for name, value in self.settings().items()]
            parameters["options"] = " ".join(options).strip()
        return make_conninfo("", **parameters)

    def settings(self) -> dict[str, str]:
        """Return what every session of ours sets on the server."""
        found = {"everthread.indexes": "on"}
        if self.schema is not None:
            found["search_path"] = f'"{self.schema}"'
        if self.statement_timeout_seconds is not None:
            found["statement_timeout"] = str(round(self.statement_timeout_seconds * 1_000))
        return found


def locate_postgres(url: str, **options: Any) -> PostgresLocation:
    """Parse a URL such as `postgresql://user@host/name?schema=agents&pool_size=4`.

    Args:
        url: the URL; what its parameters may be is in `docs/postgres.md`.
        options: the same as arguments, which win; None is none.

    Raises:
        SettingsError: it is not understood, or an option has no such value.
    """
    given = {**_own_options(url), **{name: value for name, value in options.items() if value is not None}}
    parameters = _parameters(url)
    pgbouncer = _flag(given.get("pgbouncer", False))
    direct_url = given.get("direct_url")
    if pgbouncer and direct_url is None:
        raise SettingsError(
            "behind PgBouncer a thread's lock needs a session of its own: add `direct_url=postgresql://…` with the "
            "address of Postgres itself"
        )
    schema = given.get("schema")
    if schema is not None and not _SCHEMA.fullmatch(str(schema)):
        raise SettingsError(f"`schema` is {schema!r}; use letters, digits and `_`, at most 63")
    timeout = given.get("statement_timeout")
    return PostgresLocation(
        _without_password(url),
        parameters,
        parameters if direct_url is None else _parameters(str(direct_url)),
        schema=None if schema is None else str(schema),
        pool_size=int(_number("pool_size", given.get("pool_size", PostgresLocation.pool_size), least=1)),
        statement_timeout_seconds=None if timeout is None else _number("statement_timeout", timeout, least=0),
        pgbouncer=pgbouncer,
    )


def _own_options(url: str) -> dict[str, Any]:
    """Return the options of ours that a URL has."""
    return {name: value for name, value in parse_qsl(urlsplit(url).query, keep_blank_values=True) if name in _OPTIONS}


def _parameters(url: str) -> dict[str, Any]:
    """Return the parameters of the driver that a URL has."""
    try:
        parts = urlsplit(url)
        every = parse_qsl(parts.query, keep_blank_values=True)
        misplaced = "@" in parts.path + parts.fragment or any("@" in name for name, _ in every)
        if parts.netloc.count("@") > 1 or misplaced:
            # The password ends somewhere else than its writer thinks, and the rest would be shown as the host.
            raise ValueError
        query = [pair for pair in every if pair[0] not in _OPTIONS]
        unknown = next((name for name, _ in query if name not in _driver_parameters()), None)
        # With an `@` behind it, a name may be a piece of the password.
        if unknown is None or any("@" in value for _, value in query):
            return conninfo_to_dict(urlunsplit(parts._replace(query=urlencode(query, quote_via=quote))))
    except (ProgrammingError, ValueError):
        # Not in the driver's words, which quote pieces of the password.
        raise SettingsError(
            "the Postgres URL is not understood; use `postgresql://user:password@host:5432/name?schema=agents`, and "
            "write `%40` for an `@`, `%2F` for a `/` and `%23` for a `#` in the password"
        ) from None
    raise SettingsError(
        f"the Postgres URL has the unknown parameter {unknown!r}; there are {', '.join(map(repr, _OPTIONS))} "
        "and those of libpq, such as 'sslmode'"
    )


def _driver_parameters() -> set[str]:
    """Return the parameters that the driver takes."""
    return {"ssl", *(option.keyword.decode() for option in Conninfo.get_defaults())}


def _without_password(url: str) -> str:
    """Return a URL without what nobody may see."""
    parameters = _parameters(url)
    user = f"{parameters['user']}@" if parameters.get("user") else ""
    port = f":{parameters['port']}" if parameters.get("port") else ""
    schema = f"?schema={schema}" if (schema := _own_options(url).get("schema")) else ""
    return f"postgresql://{user}{parameters.get('host', '')}{port}/{parameters.get('dbname', '')}{schema}"


def _number(name: str, value: Any, *, least: float) -> float:
    try:
        number = float(value)
    except (ValueError, OverflowError):
        number = least - 1
    if not least <= number < 1e6:
        raise SettingsError(f"`{name}` is {value!r}; use a number of at least {least:g}")
    return number


def _flag(value: Any) -> bool:
    if str(value).lower() in ("1", "true", "yes", "on"):
        return True
    if str(value).lower() in ("0", "false", "no", "off", ""):
        return False
    raise SettingsError(f"`pgbouncer` is {value!r}; use 1 or 0")


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace(" ", "\\ ")
