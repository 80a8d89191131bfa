"""The command line: arguments in, text out, and every failure one clear sentence."""

import errno
import os
import signal
import sqlite3
import sys
import threading
from collections.abc import Sequence

from everthread.errors import EverthreadError, SettingsError

OK, FAILED, USAGE, INTERRUPTED, UNREAD = 0, 1, 2, 130, 141
"""Exit codes."""

_GRACE_SECONDS = 0.5

_UNWRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""What stdout fails with; files that a command writes have a sentence of their own."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: as on the command line, without the program's name; None takes `sys.argv`.

    Returns:
        0 when it worked, 1 when what was asked failed, 2 for a wrong use, 130 after Ctrl-C,
        141 when nobody reads its output any more, as of other tools that SIGPIPE ends.
    """
    _accept_any_text()
    try:
        code = _run(arguments)
        sys.stdout.flush()
        if arguments is None:
            _leave_what_hangs()
        return code
    except BrokenPipeError:
        # The reader has gone, as in `everthread show t-1 | head`. Python would complain when it flushes at its end.
        _drop_output()
        return UNREAD
    except OSError as failure:
        from everthread.cli.output import error

        if failure.filename is not None:
            error(f"cannot use {str(failure.filename)!r}: {failure.strerror}")
            return FAILED
        if failure.errno not in _UNWRITTEN:
            raise
        _drop_output()
        error(f"cannot write the output: {failure.strerror}")
        return FAILED


def _run(arguments: Sequence[str] | None) -> int:
    from everthread.cli.app import app
    from everthread.cli.output import error, in_options

    try:
        app(args=None if arguments is None else list(arguments), prog_name="everthread")
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):  # click and rich end the program with 1
            raise stop.__context__ from None
        return OK if stop.code is None else stop.code if isinstance(stop.code, int) else FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except SettingsError as failure:
        error(in_options(failure))
        return USAGE
    except EverthreadError as failure:
        error(in_options(failure))
        return FAILED
    except sqlite3.Error as failure:
        from everthread.storage.failures import described

        error(str(described(failure)))
        return FAILED
    return OK


def _leave_what_hangs() -> None:
    """End the program by Ctrl-C's signal when a call that was stopped still hangs in a thread: Python would wait."""
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.main_thread():
            thread.join(_GRACE_SECONDS)
            if thread.is_alive():
                sys.stderr.flush()
                signal.signal(signal.SIGINT, signal.SIG_DFL)
                os.kill(os.getpid(), signal.SIGINT)


def _drop_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _accept_any_text() -> None:
    """Read and print whatever comes: a byte or a sign that the terminal cannot show is no reason to stop."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
