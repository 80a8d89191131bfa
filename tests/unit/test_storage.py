"""Opening a database."""

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from everthread.errors import EverthreadError, SettingsError, StorageError
from everthread.storage.locations import locate
from everthread.storage.open import open_storage
from everthread.storage.reader import open_reader
from everthread.storage.to_read import storage_to_read


def test_values_survive_a_restart(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    with open_storage(url) as storage:
        storage.store.put(("a",), "k", {"x": 1})

    with open_storage(url) as storage:
        item = storage.store.get(("a",), "k")

    assert item is not None
    assert item.value == {"x": 1}


def test_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db"):
        mode = stat.S_IMODE((tmp_path / "a.db").stat().st_mode)

    assert mode == 0o600


def test_the_database_uses_a_write_ahead_log(tmp_path: Path) -> None:
    with (
        open_storage(f"sqlite:///{tmp_path}/a.db"),
        closing(sqlite3.connect(tmp_path / "a.db")) as database,
    ):
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.mark.parametrize("url", ["mysql://x", "sqlite:/a", "sqlite://a.db", "", "postgresql://x/y"])
def test_an_unknown_url_is_refused(url: str) -> None:
    with pytest.raises(SettingsError, match="sqlite:///"):
        locate(url)


@pytest.mark.parametrize("seconds", ["10s", None, -1, True, float("nan"), 10**400], ids=lambda one: f"{one!r:.9}")
def test_a_wait_that_is_no_number_of_seconds_is_refused_at_once(seconds: Any) -> None:
    with pytest.raises(SettingsError, match="`lock_timeout_seconds` must be a number of seconds from 0, got"):
        open_storage("sqlite://", lock_timeout_seconds=seconds)


@pytest.mark.parametrize("seconds", ["30m", -1, True, float("nan"), float("inf"), 1e12])
def test_an_idle_time_that_no_timer_can_have_is_refused_at_once(seconds: Any) -> None:
    with pytest.raises(SettingsError, match="`end_idle_seconds` must be a number of seconds from 0 to 3,155,760,000"):
        open_storage("postgresql://localhost/none", end_idle_seconds=seconds)


@pytest.mark.parametrize("url", [None, Path("a.db")])
def test_a_url_that_is_no_text_is_refused(url: Any) -> None:
    with pytest.raises(SettingsError, match="must be a text, such as 'sqlite:///everthread"):
        open_storage(url)


@pytest.mark.parametrize("types", [["Lamp"], dict])
def test_types_that_are_no_classes_are_refused(types: Any) -> None:
    with pytest.raises(SettingsError, match="`allowed_types` must be a list of classes"):
        open_storage("sqlite://", allowed_types=types)


def test_a_name_that_no_file_can_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot open the database"):
        open_storage(f"sqlite:///{tmp_path}/{'n' * 300}")


def test_a_name_that_no_file_can_have_is_refused_where_it_is_only_read(tmp_path: Path) -> None:
    with (
        pytest.raises(StorageError, match="cannot open the database"),
        storage_to_read(f"sqlite:///{tmp_path}/{'n' * 300}"),
    ):
        pytest.fail("it was opened")


def test_a_folder_that_may_not_be_entered_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "exists", refuse)  # root, as whom tests may run, enters every folder

    with pytest.raises(StorageError, match=r"cannot open the database .* Permission denied"):
        open_storage(f"sqlite:///{tmp_path}/a.db")


def test_a_url_without_a_path_is_no_database_in_memory() -> None:
    with pytest.raises(SettingsError, match="'sqlite:///' names no file"):
        locate("sqlite:///")


@pytest.mark.parametrize(
    ("query", "argument", "level"),
    [("", None, 1), ("?synchronous=full", None, 2), ("", "FULL", 2), ("?synchronous=full", "normal", 1)],
)
def test_the_loss_of_power_is_a_dial_of_the_url_or_of_the_caller(
    tmp_path: Path, query: str, argument: Any, level: int
) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db{query}", synchronous=argument) as storage:
        found = storage.database.connection.execute("PRAGMA synchronous").fetchone()

    assert found == (level,)
    assert (tmp_path / "a.db").exists()


async def test_one_storage_serves_sync_and_async_calls(tmp_path: Path) -> None:
    async with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        await storage.store.aput(("a",), "k", {"x": 1})
        item = storage.store.get(("a",), "k")

    assert item is not None


def test_a_storage_can_be_closed_by_hand(tmp_path: Path) -> None:
    storage = open_storage(f"sqlite:///{tmp_path}/a.db")
    storage.close()

    with pytest.raises(StorageError, match="closed"):
        storage.store.get(("a",), "k")


@pytest.mark.parametrize("query", ["?synchronous=off", "?synchronous=", "?sync=full"])
def test_an_unknown_level_or_parameter_is_refused(query: str) -> None:
    with pytest.raises(SettingsError, match="`synchronous`"):
        locate(f"sqlite:///a.db{query}")


def test_a_file_that_is_not_sqlite_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    path.write_text("my diary " * 200)

    with pytest.raises(StorageError, match="not a readable SQLite database"), open_storage(f"sqlite:///{path}"):
        pass

    assert path.read_text() == "my diary " * 200


FOREIGN = {
    "invoices": "CREATE TABLE invoices (id)",
    "store": "CREATE TABLE store (id, goods)",
    "checkpoints": "CREATE TABLE checkpoints (id, place)",
    "store_migrations": "CREATE TABLE store_migrations (id)",
    "everthread": "CREATE VIEW everthread AS SELECT 1 AS id",
}


@pytest.mark.parametrize("table", FOREIGN)
@pytest.mark.parametrize("opened", [open_storage, open_reader])
def test_the_database_of_another_program_is_refused_and_left_as_it_is(tmp_path: Path, table: str, opened: Any) -> None:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute(FOREIGN[table])
    before = path.read_bytes()

    with (
        pytest.raises(StorageError, match=f"belongs to another program .it has the table '{table}'"),
        opened(f"sqlite:///{path}"),
    ):
        pass

    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.db"]


@pytest.mark.parametrize("name", ["", "missing/a.db"])
def test_a_folder_or_a_missing_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(EverthreadError, match="folder"), open_storage(f"sqlite:///{tmp_path}/{name}"):
        pass


def test_reading_does_not_create_a_file(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no database"), open_storage(f"sqlite:///{tmp_path}/a.db", create=False):
        pass

    assert os.listdir(tmp_path) == []


def test_freed_pages_are_not_written_again(tmp_path: Path) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        assert storage.database.connection.execute("PRAGMA secure_delete").fetchone() == (2,)
