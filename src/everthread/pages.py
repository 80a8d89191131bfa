"""Pages and notebook views: one HTML file or fragment each, with no script and nothing from outside."""

from functools import cache
from typing import TYPE_CHECKING, Any

from everthread.plain import plain

if TYPE_CHECKING:
    from jinja2 import Environment


def render(template: str, **values: Any) -> str:
    """Render a template of `everthread/templates`; what others wrote is escaped, its control characters replaced."""
    return plain(_environment().get_template(template).render(**values))


@cache
def _environment() -> "Environment":
    return environment("everthread", cut=_cut, zip=zip)


def environment(package: str, **filters: Any) -> "Environment":
    """Return what renders the folder `templates` of a package: HTML is escaped, and an unknown name is an error."""
    # Taken when called: most of what imports this never makes a page.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= filters
    return made


def _cut(text: str, characters: int) -> str:
    """Return the beginning of a text, and how much more there is."""
    more = len(text) - characters
    return text if more <= 0 else f"{text[:characters]} [… {more:,} more characters …]"
