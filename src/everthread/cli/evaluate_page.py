"""Where the page of a report goes."""

from pathlib import Path

from everthread.cli.output import note
from everthread.errors import SettingsError

__all__ = ["check_writable", "write_page"]


def check_writable(path: Path | None) -> None:
    """Say before an hour of work that its page has nowhere to go.

    Raises:
        SettingsError: there is no such folder, or it is a folder itself.
    """
    if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
        raise SettingsError(f"cannot write {str(path)!r}: it must be a file in a folder that exists")


def write_page(path: Path, page: str) -> None:
    """Write a report.

    Raises:
        SettingsError: the file cannot be written.
    """
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as failure:
        raise SettingsError(f"cannot write {str(path)!r}: {failure.strerror}") from failure
    note(f"the report is in {path}")
