"""`serve`: one worker of the HTTP API."""

import asyncio
import logging
import os
import signal
import socket
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from everthread.cli.options import (
    DEFAULT_DATABASE,
    DatabaseUrl,
    ModelName,
    RetentionPolicy,
    SpendLimits,
    duration_seconds,
    load_agent,
    time_option,
    user_option,
    with_spend,
)
from everthread.cli.output import note
from everthread.errors import EverthreadError, SettingsError, installing

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from everthread.web import Authenticator

_MEGABYTE = 1_000_000


Agents = Annotated[
    list[str] | None,
    typer.Option(
        "--agent",
        metavar="NAME",
        help="`travel`, `support` or `module:attribute`; can be repeated.  [default: travel and support]",
    ),
]
Host = Annotated[str, typer.Option("--host", metavar="HOST", help="Address to listen on.")]
Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes a free one.")]
ApiKeyFile = Annotated[
    Path | None,
    typer.Option("--api-keys", metavar="FILE", help="API keys, hashed; `everthread serve-key` makes them."),
]
JwtSecret = Annotated[
    Path | None,
    typer.Option(
        "--jwt-secret", metavar="FILE", help="Secret of HS256 tokens.  [default: EVERTHREAD_JWT_SECRET itself]"
    ),
]
Jwks = Annotated[str | None, typer.Option("--jwks", metavar="FILE|URL", help="Public keys of an identity provider.")]
OnlyUser = Annotated[
    str | None,
    user_option("Without sign-in: the user whose threads these are.  [default: local]"),
]
"""Options that `dashboard` has too."""


def serve(
    agent: Agents = None,
    database: DatabaseUrl = DEFAULT_DATABASE,
    model: ModelName = None,
    spend: SpendLimits = None,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    api_keys: ApiKeyFile = None,
    jwt_secret: JwtSecret = None,
    jwks: Jwks = None,
    jwt_audience: Annotated[
        str | None, typer.Option("--jwt-audience", metavar="NAME", help="What `aud` of a token must name.")
    ] = None,
    jwt_issuer: Annotated[
        str | None, typer.Option("--jwt-issuer", metavar="NAME", help="What `iss` of a token must be.")
    ] = None,
    user: OnlyUser = None,
    wait: Annotated[str, time_option("--wait", "How long to wait for another run on a thread.")] = "10s",
    grace: Annotated[str, time_option("--grace", "Time for runs to finish after SIGTERM.")] = "30s",
    idle: Annotated[
        str,
        time_option("--idle", "Idle time after which a session ends, on Postgres by `everthread worker`; 0s: never."),
    ] = "30m",
    retention: RetentionPolicy = None,
    rate: Annotated[int, typer.Option("--rate", min=0, help="Requests a minute for each key; 0: no limit.")] = 600,
    runs: Annotated[int, typer.Option("--runs", min=1, help="Runs at a time.")] = 100,
    max_body: Annotated[int, typer.Option("--max-body", min=1, help="Megabytes of a request.")] = 1,
) -> None:
    """Serve agents over HTTP: threads, runs, streams, notes.

    A worker keeps nothing except its runs in progress: start as many as you like on one database. Without `--api-keys`,
    `--jwt-secret` or `--jwks` it serves one user, and this machine only.
    """
    needs_web()
    from everthread.cli.retain import policy_of
    from everthread.graph.server import fixed_dials
    from everthread.storage.locations import is_postgres
    from everthread.storage.open import open_storage
    from everthread.web import Limits, create_app

    auth = _auth(host, user, api_keys, _secret(jwt_secret), jwks, jwt_audience, jwt_issuer)
    agents = [with_spend(load_agent(name), spend) for name in agent or ("travel", "support")]
    on_postgres, idle_seconds = is_postgres(database), duration_seconds(idle) or None
    limits = Limits(
        body_bytes=max_body * _MEGABYTE,
        requests_per_minute=rate,
        runs=runs,
        grace_seconds=duration_seconds(grace),
        sweep_idle_seconds=None if on_postgres else idle_seconds,
    )
    if on_postgres and idle_seconds and find_spec("procrastinate") is None:
        note(f"no session ends by itself: {installing('jobs')}, and start `everthread worker`")
        idle_seconds = None
    with (
        _socket(host, port) as listening,
        open_storage(
            database,
            lock_timeout_seconds=duration_seconds(wait),
            # On Postgres it is a job, for one worker at a time.
            end_idle_seconds=idle_seconds if on_postgres else None,
            retention=policy_of(retention),
        ) as storage,
    ):
        fixed = fixed_dials(os.environ.get("EVERTHREAD_FIXED", ""))
        app = create_app(storage, agents, auth=auth, model=model, fixed=fixed, limits=limits)
        shown = f"[{host}]" if ":" in host else host
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
        url = f"http://{shown}:{listening.getsockname()[1]}"
        note(f"{url} serves {', '.join(one.name for one in agents)}; the page is at {url}/dashboard")
        _run(app, listening, limits.grace_seconds)


def _run(app: "Starlette", listening: socket.socket, grace_seconds: float) -> None:
    """Serve until SIGTERM or Ctrl-C."""
    import uvicorn

    from everthread.web.app import stop_runs

    class Server(uvicorn.Server):
        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            super().handle_exit(sig, frame)
            # At once: uvicorn waits for open streams first, and each of them for its run.
            self.stopping = asyncio.run_coroutine_threadsafe(stop_runs(app), asyncio.get_running_loop())

    config = uvicorn.Config(
        app,
        log_config=None,
        # The app has its own, without queries.
        access_log=False,
        server_header=False,
        # The app ends its runs in time; this is for clients that do not read what they are sent.
        timeout_graceful_shutdown=int(grace_seconds) + 5,
    )
    # uvicorn raises the signal again when it is done; the storage is still to be closed.
    signal.signal(signal.SIGTERM, lambda *_: None)
    Server(config).run(sockets=[listening])


def needs_web() -> None:
    """Refuse a command whose packages are not installed.

    Raises:
        SettingsError: the extra `web` is missing.
    """
    if missing := [name for name in ("starlette", "uvicorn", "jwt", "cryptography") if find_spec(name) is None]:
        raise SettingsError(f"{missing[0]!r} is not installed: {installing('web')}")


def _auth(
    host: str,
    user: str | None,
    api_keys: Path | None,
    secret: str | None,
    jwks: str | None,
    audience: str | None,
    issuer: str | None,
) -> "Authenticator":
    """Return who can sign in.

    Raises:
        SettingsError: nobody can, and others than this machine could reach the server.
    """
    from everthread.web import ApiKeys, Authenticators, JwtKeys, LocalUser
    from everthread.web.auth import LOOPBACK

    if (audience or issuer) is not None and secret is None and jwks is None:
        raise SettingsError("`--jwt-audience` and `--jwt-issuer` are about tokens: give `--jwt-secret` or `--jwks` too")
    ways: list[Authenticator] = []
    if api_keys is not None:
        ways.append(ApiKeys(api_keys))
    if secret is not None:
        ways.append(JwtKeys(secret=secret, audience=audience, issuer=issuer))
    if jwks is not None:
        ways.append(JwtKeys(jwks=jwks, audience=audience, issuer=issuer))
    if ways and user is not None:
        raise SettingsError("`--user` is for a server without sign-in; the key or token of a request says whose it is")
    if ways:
        return Authenticators(*ways)
    if host not in LOOPBACK:
        raise SettingsError(
            f"others than this machine can reach {host!r}, so callers have to sign in: give `--api-keys`, "
            "`--jwt-secret` or `--jwks`, or listen on 127.0.0.1"
        )
    return LocalUser(user or "local")


def _secret(file: Path | None) -> str | None:
    if file is None:
        return os.environ.get("EVERTHREAD_JWT_SECRET")
    from everthread.web.auth import read_text

    return read_text(file, "secret").strip()


def _socket(host: str, port: int) -> socket.socket:
    """Listen, before anything is loaded that takes long."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise EverthreadError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
