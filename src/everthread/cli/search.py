"""`search`: what was said in any thread of a user."""

from collections.abc import Sequence
from typing import Annotated

import typer

from everthread.cli.options import DEFAULT_DATABASE, WAIT_SECONDS, AsJson, DatabaseUrl, user_option
from everthread.cli.output import counted, hanging, note, print_json, progress, shortened
from everthread.cli.reading import when
from everthread.errors import NotFoundError, SettingsError
from everthread.storage.open import Storage, open_storage
from everthread.storage.reading import read_thread, user_records
from everthread.storage.recall import search_said
from everthread.storage.said import said_operations
from everthread.storage.to_read import storage_to_read


def search(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Words, names or a date.")],
    user: Annotated[str, user_option("Whose threads.")],
    limit: Annotated[int, typer.Option("--limit", min=1, max=1_000, metavar="K", help="Messages at most.")] = 20,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="First add last replies, and what older versions left out.")
    ] = False,
    database: DatabaseUrl = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Search what was said in all threads of a user, by the user and by the agent.

    The best matches come first, each with thread, time and speaker. `everthread show THREAD` has the whole thread.
    """
    if not text.strip():
        raise SettingsError("search for what? `everthread search TEXT --user USER`")
    to_write = open_storage(database, create=False, lock_timeout_seconds=WAIT_SECONDS) if rebuild else None
    with to_write or storage_to_read(database) as storage:
        sessions = user_records(storage.store, user)
        if not sessions:
            raise NotFoundError(f"user {user!r} has no threads in this database; `everthread threads` lists them")
        if rebuild:
            _keep_said(storage, [str(record["thread_id"]) for record in sessions], user)
        passages = search_said(storage.store, user, text, limit)
    if as_json:
        fields = ("thread", "seq", "date", "role", "speaker", "text", "score")
        print_json([{name: getattr(passage, name) for name in fields} for passage in passages])
    elif not passages:
        note(f"nothing was said of it in the {counted(len(sessions), 'thread')} of user {user!r}")
    else:
        for passage in passages:
            hanging(f"{passage.thread}  {when(passage.date)}  {passage.speaker}: ", shortened(passage.text))


def _keep_said(storage: Storage, thread_ids: Sequence[str], user: str) -> None:
    """Make all messages of a user's threads searchable."""
    with progress("reading threads") as report:
        for place, thread_id in enumerate(thread_ids):
            report("reading threads", place, len(thread_ids))
            with storage.locks.hold(thread_id):
                messages = read_thread(storage, thread_id).messages
                storage.store.batch(said_operations(thread_id, user, messages))
