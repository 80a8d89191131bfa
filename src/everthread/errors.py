"""The error tree.

EverthreadError
├── SettingsError      a dial, a URL, a name or a profile is not usable (also a `ValueError`)
│   └── AnsweredError  nothing waits for this answer; what it answers may have another one already
├── BudgetError        what is pinned cannot fit the window
├── ModelError         the provider refused, failed or broke off; the thread is intact
├── SpendError         a call would pass a limit of `Spend`, where nobody is asked
├── StepLimitError     a turn took more steps than `recursion_limit` (also LangGraph's `GraphRecursionError`)
├── ScriptError        a scripted or replayed model was asked for more than it holds
├── RecordError        a line of a recorded file is malformed
├── StorageError       the database cannot be opened, read or written
│   ├── ThreadBusyError   another run holds the thread's lock
│   └── UnreadableError   a row of the database is damaged
└── NotFoundError      the thread, user, handle or note does not exist
"""

import sys
from shlex import quote


def installing(extra: str) -> str:
    """Return how an extra is installed; the package is on no public index, so it is from a clone."""
    return f"in a clone of Everthread, {quote(sys.executable or 'python')} -m pip install '.[{extra}]'"


class EverthreadError(RuntimeError):
    """Root of every error that Everthread raises on purpose.

    It is a `RuntimeError`, because a LangGraph server tells its clients the messages of built-in
    exceptions only and hides all others behind "An internal error occurred".
    """


class SettingsError(EverthreadError, ValueError):
    """A setting is not usable; the message names it, its value and what is allowed."""


class AnsweredError(SettingsError):
    """Nothing waits for this answer any more, or ever did; the thread is as it was."""


class BudgetError(EverthreadError):
    """What is pinned (system, anchor, current turn) needs more tokens than the budget."""


class ModelError(EverthreadError):
    """A model call failed for good; the user's message is kept and the next run continues the turn.

    Args:
        message: what happened and what to do.
        kind: one of `authentication`, `permission`, `not_found`, `rate_limit`, `server`, `timeout`,
            `connection`, `dropped`, `invalid`, `overflow`.
    """

    def __init__(self, message: str, *, kind: str = "invalid") -> None:
        super().__init__(message)
        self.kind = kind


class SpendError(EverthreadError):
    """A call of a model is not made: it would pass a limit of `Spend`, and nobody is asked at this place."""


class StepLimitError(EverthreadError, RecursionError):
    """A turn took more steps than `recursion_limit` allows; it is kept, and the next run goes on with it."""


class ScriptError(EverthreadError):
    """A scripted or replayed model has no reply left for the prompt it got."""


class RecordError(EverthreadError):
    """A recorded conversation is malformed; the message names file and line."""


class StorageError(EverthreadError):
    """The database cannot be opened, read or written."""


class ThreadBusyError(StorageError):
    """Another run holds the lock of this thread."""


class UnreadableError(StorageError):
    """A row that is needed cannot be read; the message names it."""


class NotFoundError(EverthreadError):
    """What was asked for does not exist."""
