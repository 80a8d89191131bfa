"""SQL that tests need on whatever database they run on."""

from typing import Any

from everthread.storage.database import Database
from everthread.storage.sqlite.database import SqliteDatabase


def is_sqlite(database: Database) -> bool:
    return isinstance(database, SqliteDatabase)


def sql(database: Database, statement: str, *values: Any) -> list[Any]:
    """Execute a statement in a transaction, with `?` for values; `{writes}` is LangGraph's table of them."""
    sqlite = is_sqlite(database)
    statement = statement.replace("{writes}", "writes" if sqlite else "checkpoint_writes")
    return database.write(database.rows, statement if sqlite else statement.replace("?", "%s"), values)
