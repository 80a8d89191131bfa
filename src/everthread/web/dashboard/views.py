"""What a view is: a path, who may see it, and what becomes of errors."""

import hmac
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from everthread.errors import EverthreadError
from everthread.web.dashboard.render import page, segment
from everthread.web.operations import Call, Endpoint, read_body, root_of
from everthread.web.problems import Problem, problem_of
from everthread.web.service import OwnThread, summary_of

PREFIX = "/dashboard"


def place(request: Request) -> str:
    """Return the address of the dashboard, also in an app that this one is mounted into."""
    return root_of(request) + PREFIX


@dataclass(frozen=True)
class Visit(Call):
    """One request of a browser."""

    token: str
    """What the forms of the page carry."""

    def word(self, name: str) -> str:
        """Return a parameter without the blanks around it; empty when there is none."""
        return str(self.query.get(name, "")).strip()

    def number(self, name: str) -> int:
        """Return a parameter that counts something; 0 when there is none."""
        text = self.query.get(name, "")
        return int(text) if text.isdecimal() and len(text) < 10 else 0

    def page(self, template: str, **values: Any) -> Response:
        """Return a page of the caller's."""
        return page(template, {**self.shared, **values})

    def thread_page(self, template: str, own: OwnThread, **values: Any) -> Response:
        """Return a page of a thread of the caller's."""
        thread = {**summary_of(own.record), "is_run_here": own.graph_here is not None}
        return self.page(template, thread=thread, **values)

    @property
    def shared(self) -> dict[str, Any]:
        """Return what every template may use."""
        at, identity = place(self.request), self.identity
        return {"at": at, "user": identity.user_id, "method": identity.method, "token": self.token}

    def see_other(self, *parts: str) -> Response:
        """Send a browser to a page after a form; an id is one part of its path, whatever is in it."""
        return RedirectResponse("/".join([place(self.request), *map(segment, parts)]), 303)


@dataclass(frozen=True)
class View(Endpoint):
    """A page, or a form of one; its path stands behind the prefix."""

    async def handle(self, request: Request) -> Response:
        """Read and check a request, and answer it with a page."""
        state, identity = request.app.state, request.state.identity
        try:
            token = await state.sessions.form_token(identity.credential)
            form = await read_form(request, state.limits.body_bytes) if self.method == "POST" else {}
            if self.method == "POST" and not hmac.compare_digest(form.pop("token", "").encode(), token.encode()):
                raise Problem(403, "the form is not from this page, or you signed in anew; load the page again")
            response: Response = await self.endpoint(
                Visit(state.service, identity, request, form, request.query_params, token)
            )
            return response
        except (Problem, EverthreadError) as error:
            return refused(problem_of(error), request)


async def read_form(request: Request, most: int) -> dict[str, str]:
    """Read a form; fields are there when they are blank too.

    Raises:
        Problem: 400, 413 or 415.
    """
    data = await read_body(request, most, "application/x-www-form-urlencoded")
    try:
        fields = parse_qs(data.decode(), keep_blank_values=True, max_num_fields=1_000)
    except ValueError as error:
        raise Problem(400, "the form cannot be read") from error
    return {name: values[-1] for name, values in fields.items()}


def refused(problem: Problem, request: Request) -> Response:
    """Return a problem as a page; who is not signed in is sent to where they can."""
    if problem.status == 401:
        return RedirectResponse(f"{place(request)}/sign-in", 303)
    values = {"at": place(request), "user": "", "method": "", "token": "", "problem": problem.as_json()}
    response = page("problem.html", values, problem.status)
    response.headers.update(problem.headers)
    return response
