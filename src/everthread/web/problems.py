"""What goes wrong, as `application/problem+json`: a status and one sentence, and nothing of the server's inside."""

import logging
from http import HTTPStatus
from typing import Any

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from everthread.errors import (
    AnsweredError,
    BudgetError,
    EverthreadError,
    ModelError,
    NotFoundError,
    SettingsError,
    StepLimitError,
    StorageError,
    ThreadBusyError,
)

logger = logging.getLogger(__name__)

_GOES_ON = "the turn is kept, and `resume` goes on with it"


_SAID = {
    "json_invalid": "the body is not valid JSON",
    "extra_forbidden": "there is no such field",
    "missing": "it is missing",
    "string_too_short": "it is empty",
    "string_pattern_mismatch": "it is empty",
}
"""Sentences for pydantic's kinds of errors, where its own are for programmers."""


class Problem(Exception):
    """An answer that is no success.

    Args:
        status: the HTTP status.
        detail: one sentence for the caller.
        headers: such as `Retry-After`.
    """

    def __init__(self, status: int, detail: str, **headers: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    def as_json(self) -> dict[str, Any]:
        """Return it as one JSON object, RFC 9457."""
        title = HTTPStatus(self.status).phrase
        return {"type": "about:blank", "title": title, "status": self.status, "detail": self.detail}

    def response(self) -> Response:
        """Return it as a response."""
        return JSONResponse(self.as_json(), self.status, self.headers, media_type="application/problem+json")


def problem_of(error: Exception) -> Problem:
    """Return what a caller is told of an error; what only the server's operator may know goes to the log."""
    match error:
        case Problem():
            return error
        case ThreadBusyError():
            detail = "another run holds this thread; try again when it is over, or cancel it"
            return Problem(409, detail, Retry_After="5")
        case NotFoundError():
            return Problem(404, "there is no such thing of yours here")
        case AnsweredError():
            return Problem(409, "this was answered already, or given up by a newer message; read the thread again")
        case SettingsError():
            return Problem(422, str(error))
        case BudgetError():
            return Problem(422, f"the prompt does not fit: {error}")
        case ModelError():
            logger.warning("a model call failed: %s", error)
            return Problem(502, f"the model's provider failed ({error.kind.replace('_', ' ')}); {_GOES_ON}")
        case StepLimitError():
            return Problem(500, f"the turn took more steps than this server allows; {_GOES_ON}")
        case StorageError():
            logger.error("the database failed: %s", error)
            return Problem(503, "the database failed; what was acknowledged is kept, try again", Retry_After="5")
        case EverthreadError():
            logger.error("a run failed: %s", error)
        case _:
            logger.error("unexpected error", exc_info=error)
    return Problem(500, "the server failed, and its log says why; what was acknowledged is kept")


def other_message() -> Problem:
    """Return what is said of a known `message_id` with other words."""
    return Problem(409, "`message_id` is that of another message; choose a new one")


def invalid(error: ValidationError) -> Problem:
    """Return the first things that are wrong with a body or a query, in one sentence."""
    first: dict[str, str] = {}
    for one in error.errors(include_url=False, include_input=False):
        # What lies below a field is pydantic's affair, such as the members of a union.
        place = str(one["loc"][0]) if one["loc"] else ""
        said = _SAID.get(one["type"], one["msg"].removeprefix("Value error, "))
        first.setdefault(place, f"`{place}`: {said[:1].lower()}{said[1:]}" if place else said)
    return Problem(422, "; ".join(first.values()))


async def answer(_: Request, error: Exception) -> Response:
    """Answer with the problem that an error is."""
    return problem_of(error).response()
