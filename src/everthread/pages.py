"""Pages and notebook views: one HTML file or fragment each, with no script and nothing from outside."""

from functools import cache
from typing import Any

from everthread.plain import plain

__all__ = ["render"]


def render(template: str, **values: Any) -> str:
    """Render a template of `everthread/templates`; what others wrote is escaped, its control characters replaced."""
    return plain(_environment().get_template(template).render(**values))


@cache
def _environment() -> Any:
    # Taken when called: most of what imports this never makes a page.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("everthread"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"cut": _cut, "zip": zip}
    return made


def _cut(text: str, characters: int) -> str:
    """Return the beginning of a text, and how much more there is."""
    more = len(text) - characters
    return text if more <= 0 else f"{text[:characters]} [… {more:,} more characters …]"
