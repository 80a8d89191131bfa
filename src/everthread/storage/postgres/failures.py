"""What Postgres says when it fails, as what happened and what to do; no password is ever in it."""

import psycopg
from psycopg_pool import PoolTimeout

from everthread.errors import StorageError

_SAFE = "what was saved before is intact"
_ADVICE = {
    "53100": f"{_SAFE}: make room on its disk and try again",
    "53200": f"{_SAFE}: the server is out of memory, try again later",
    "53300": "the server takes no more connections: lower `pool_size`, or put PgBouncer in front",
    "25006": "it is read-only, such as a replica: use the address of the primary",
    "22P02": "Postgres stores no NaN and no infinity as JSON",
    "22P05": "Postgres stores no NUL in a text",
    "28P01": "check the password in the URL",
    "28000": "check user and host in the URL, and the server's pg_hba.conf",
    "3D000": "create it, or check the name in the URL",
    "3F000": "create that schema, or let the role create it",
    "42501": "the role may not do that: grant it, or use another role",
    "42P01": "its tables are not as this version knows them; `everthread doctor` names the versions in use",
    "42703": "its tables are not as this version knows them; `everthread doctor` names the versions in use",
    "54000": "an id is longer than Postgres can index, about 2,700 bytes: use a shorter one",
    "57014": f"{_SAFE}: a statement took longer than `statement_timeout`",
    "57P": f"{_SAFE}: the server is stopping or starting, try again",
    "08": f"{_SAFE}: the connection was cut, try again",
    "40": f"{_SAFE}: another transaction was in the way, try again",
    "55P03": "another session keeps a table locked: try again when that one is done",
}
"""By the beginning of an SQLSTATE, the longest that fits."""


def described(error: BaseException) -> StorageError:
    """Return the error to raise for one of Postgres or its driver."""
    if isinstance(error, PoolTimeout):
        return StorageError(
            "no connection to Postgres came free in time: raise `pool_size`, or see whether the server answers; "
            f"{_SAFE}"
        )
    state = getattr(error, "sqlstate", None) or ""
    diag = getattr(error, "diag", None)
    text = getattr(diag, "message_primary", None) or " ".join(str(error).split()) or type(error).__name__
    if not state and "server closed the connection" in text:
        # The driver's own words run over three lines and guess at the cause.
        return StorageError(f"the connection to Postgres was cut; {_SAFE}, try again")
    fitting = [advice for begin, advice in _ADVICE.items() if state.startswith(begin)] if state else []
    advice = fitting[0] if fitting else f"{_SAFE}: see whether the server answers, and try again"
    if "NUL" in text and isinstance(error, psycopg.DataError):
        advice = "Postgres stores no NUL in a text"
    return StorageError(f"the database failed: {text}; {advice}")
