"""`dashboard`: the page on its own, for this machine unless callers sign in."""

from everthread.cli.options import DEFAULT_DATABASE, DatabaseUrl, ModelName, SpendLimits
from everthread.cli.serve import Agents, ApiKeyFile, Host, Jwks, JwtSecret, OnlyUser, Port, needs_web, serve
from everthread.storage.reader import open_reader


def dashboard(
    agent: Agents = None,
    database: DatabaseUrl = DEFAULT_DATABASE,
    model: ModelName = None,
    spend: SpendLimits = None,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    api_keys: ApiKeyFile = None,
    jwt_secret: JwtSecret = None,
    jwks: Jwks = None,
    user: OnlyUser = None,
) -> None:
    """Show in a browser what the model saw: threads, calls, prompts and what left them.

    `serve` has the same page at `/dashboard`. Without `--api-keys`, `--jwt-secret` or `--jwks` it shows the threads of
    one user, to this machine only.
    """
    needs_web()
    # A name that was mistyped must not become a new database.
    with open_reader(database):
        pass
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
