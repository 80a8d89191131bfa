"""Make pages from templates; whatever a user, a model or a tool wrote is shown as text."""

import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from markupsafe import Markup, escape
from starlette.responses import HTMLResponse, Response

from everthread.pages import environment
from everthread.plain import plain

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
PLAIN_POLICY = "default-src 'none'; sandbox; frame-ancestors 'none'"
"""For texts as they are, which nothing may come out of."""

STATIC = {
    "dashboard.css": "text/css",
    "htmx.min.js": "text/javascript",
    "idiomorph-ext.min.js": "text/javascript",
    "sse.min.js": "text/javascript",
    "LICENSES.txt": "text/plain",
}
"""Files of the page, and their types."""

_QUOTED = re.compile(r"`([^`]+)`")

_CUT = 2_000
"""Characters that a page shows of one text; the whole is behind a link."""


def cut(text: Any, most: int = _CUT) -> str:
    """Return a text, or its beginning when it is long; ahead of `plain`, which reads all of it."""
    whole = str(text)
    return whole if len(whole) <= most else whole[: most - 1].rstrip() + "…"


def with_code(text: str) -> Markup:
    """Return a text as HTML in which what stands between backticks is code."""
    return Markup(_QUOTED.sub(r"<code>\1</code>", str(escape(text))))


def number(value: int) -> str:
    """Return a number with its thousands apart."""
    return f"{value:,}"


def short(value: int) -> str:
    """Return a number of tokens in four characters or so."""
    return f"{value / 1000:.0f}k" if value >= 10_000 else f"{value / 1000:.1f}k" if value >= 1000 else str(value)


def in_bytes(value: int) -> str:
    """Return a number of bytes as people write it."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= size:
            return f"{value / size:.{0 if value >= 10 * size else 1}f} {unit}"
    return f"{value} bytes"


def when(at: str) -> str:
    """Return a time as people write it, in UTC."""
    return at[:16].replace("T", " ")


def segment(text: str) -> str:
    """Return a text as one part of a path."""
    return quote(text, safe="")


_environment = environment(
    "everthread.web.dashboard",
    plain=lambda text: plain(str(text)),
    cut=cut,
    with_code=with_code,
    number=number,
    short=short,
    when=when,
    in_bytes=in_bytes,
    segment=segment,
)


def render(template: str, values: Mapping[str, Any]) -> str:
    """Return a template as HTML."""
    return _environment.get_template(template).render(values)


def page(template: str, values: Mapping[str, Any], status: int = 200) -> Response:
    """Return a page that loads nothing from elsewhere and runs no script but the files of this package."""
    headers = {"content-security-policy": _POLICY, "referrer-policy": "same-origin"}
    return HTMLResponse(render(template, values), status, headers)


def static_file(name: str) -> bytes:
    """Return a file of the page."""
    return files("everthread.web.dashboard").joinpath("static", name).read_bytes()
