"""Read the JSON of a model's reply, whatever stands around it."""

import json
import re
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

M = TypeVar("M", bound=BaseModel)

_FENCED = re.compile(r"```(?:json)?\s*(.*?)(?:```|\Z)", re.DOTALL | re.IGNORECASE)


def json_of(reply: object) -> Any:
    """Return the value of a reply: of text the first JSON in it, fenced or not; anything else as it is.

    Raises:
        ValueError: the text has no JSON, or it is cut or broken.
    """
    if not isinstance(reply, str):
        return reply
    text = reply.strip()
    if fenced := _FENCED.search(text):
        text = fenced[1].strip()
    start = min((place for place in (text.find("{"), text.find("[")) if place >= 0), default=-1)
    if start < 0:
        raise ValueError("no JSON in the reply")
    try:
        return json.JSONDecoder().raw_decode(text[start:])[0]
    except (ValueError, RecursionError) as error:
        raise ValueError("the JSON of the reply is cut or broken") from error


def valid_items(items: list[Any], model: type[M]) -> list[M]:
    """Return the items of a reply's list that a model fits; the others are left out."""
    valid = []
    for item in items:
        try:
            valid.append(model.model_validate(item))
        except ValidationError:
            continue
    return valid
