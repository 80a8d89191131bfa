"""Open a database for commands that only read, also where nothing may be written."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from everthread.storage.locations import is_file, is_there, is_writable, locate
from everthread.storage.open import Storage, open_storage
from everthread.storage.sqlite.tables import opened_to_read


@contextmanager
def storage_to_read(url: str, **options: Any) -> Iterator[Storage]:
    """Open a database; where its file or folder cannot be written, a copy of it that goes afterwards.

    Args:
        options: as for `open_storage`.

    Raises:
        SettingsError: the URL is not understood.
        StorageError: there is no such file, or it is no database of ours.
    """
    path = locate(url).path if is_file(url) else None
    if path is None or not is_there(path) or not path.is_file() or is_writable(path):
        with open_storage(url, create=False, **options) as storage:
            yield storage
        return
    with TemporaryDirectory(prefix="everthread-") as folder:
        copy = Path(folder) / path.name
        with opened_to_read(url) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
        with open_storage(f"sqlite:///{copy}", create=False, **options) as storage:
            yield storage
