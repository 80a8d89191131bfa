"""`dashboard`: the page on its own, for this machine unless callers sign in."""

from pathlib import Path
from typing import Annotated

import typer

from everthread.cli.options import DEFAULT_DATABASE, DatabaseUrl, ModelName, SpendLimits
from everthread.cli.output import note
from everthread.cli.serve import serve

__all__ = ["dashboard"]


def dashboard(
    agent: Annotated[
        list[str] | None,
        typer.Option(
            "--agent",
            metavar="NAME",
            help="`travel`, `support` or `module:attribute`; can be repeated.  [default: travel and support]",
        ),
    ] = None,
    database: DatabaseUrl = DEFAULT_DATABASE,
    model: ModelName = None,
    spend: SpendLimits = None,
    host: Annotated[str, typer.Option("--host", metavar="HOST", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes a free one.")] = 8000,
    api_keys: Annotated[
        Path | None, typer.Option("--api-keys", metavar="FILE", help="API keys, hashed, as for `serve`.")
    ] = None,
    jwt_secret: Annotated[
        Path | None, typer.Option("--jwt-secret", metavar="FILE", help="Secret of HS256 tokens, as for `serve`.")
    ] = None,
    jwks: Annotated[
        str | None, typer.Option("--jwks", metavar="FILE|URL", help="Public keys of an identity provider.")
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", metavar="USER", help="Whose threads to show.  [default: local]")
    ] = None,
) -> None:
    """Show in a browser what the model saw: threads, calls, prompts and what left them.

    `serve` has the same page at `/dashboard`. Without `--api-keys`, `--jwt-secret` or `--jwks` it shows the threads of
    one user, to this machine only.
    """
    note("the page is at /dashboard")
    serve(
        agent=agent,
        database=database,
        model=model,
        spend=spend,
        host=host,
        port=port,
        api_keys=api_keys,
        jwt_secret=jwt_secret,
        jwks=jwks,
        user=user,
        # Who only looks ends nobody's session.
        idle="0s",
    )
