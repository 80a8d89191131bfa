"""`threads`: what is in the database."""

from everthread.cli.options import DEFAULT_DATABASE, AsJson, DatabaseUrl, OneUser
from everthread.cli.output import counted, note, print_json, print_table, shortened
from everthread.cli.reading import when
from everthread.storage.reader import open_reader
from everthread.storage.reading import records

_COLUMNS = ("thread", "user", "agent", "turns", "last activity", "session", "last turn", "first message")
_FIRST_CHARACTERS = 40
_TURNS = {"idle": "", "interrupted": "waits for approval", "unfinished": "no answer yet"}


def threads(user: OneUser = None, database: DatabaseUrl = DEFAULT_DATABASE, as_json: AsJson = False) -> None:
    """List the threads, the latest activity first, and whether the last turn of each waits or has no answer."""
    with open_reader(database) as reader:
        sessions = [{**one, "status": reader.turn(str(one["thread_id"]))} for one in records(reader, user)]
        unlisted = {*reader.tables.thread_ids()} - {str(one["thread_id"]) for one in sessions} if user is None else ()
        others = sum(not reader.is_ours(one) for one in unlisted)
    if as_json:
        print_json(sessions)
    elif not sessions:
        note("no threads yet" if user is None else f"user {user!r} has no threads")
    else:
        rows = []
        for record in sessions:
            turns = int(record.get("turns", 0))
            status = "ended" if int(record.get("consolidated_turns", 0)) >= turns else "open"
            names = [str(record.get(name, "")) for name in ("thread_id", "user_id", "agent")]
            first = shortened(str(record.get("first_message", "")), _FIRST_CHARACTERS)
            rows.append(
                [
                    *names,
                    str(turns),
                    when(str(record.get("last_activity", ""))),
                    status,
                    _TURNS[record["status"]],
                    first,
                ]
            )
        print_table(_COLUMNS, rows, words=[name for name in _COLUMNS if name != "turns"])
    if others and not as_json:
        note(f"{counted(others, 'thread')} of other graphs: `everthread adopt` lists them")
