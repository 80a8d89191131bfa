"""An agent is checked when it is made."""

from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import tool

from everthread import Agent
from everthread.errors import SettingsError
from everthread.tools.recall_history import recall_history

GOOD: dict[str, Any] = {"name": "clerk", "title": "Clerk", "instructions": "Be brief."}


@tool
def sign(paper: str) -> str:
    """Sign a paper."""
    return paper


def bare(paper: str) -> str:
    return paper


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"name": ""}, "`name` of an agent must be a non-empty text, got ''"),
        ({"title": None}, "`title` of an agent must be a non-empty text, got None"),
        ({"instructions": " \n"}, "`instructions` of an agent must be a non-empty text"),
        ({"tools": sign}, "`tools` of an agent must be a list"),
        ({"tools": [bare]}, "`tools` of an agent takes tools of LangChain, got <function bare .*decorate the function"),
        ({"tools": [sign, sign]}, "`tools` of an agent has two tools called 'sign'"),
        ({"tools": [recall_history]}, "`tools` of an agent has 'recall_history', which the graph brings"),
        ({"profile": {"name": "text"}}, "`profile` of an agent must be a class of pydantic's BaseModel"),
        ({"profile": Agent}, "`profile` of an agent must be a class of pydantic's BaseModel"),
        ({"summary_sections": "Goal"}, "`summary_sections` of an agent must be a list, got 'Goal'"),
        ({"summary_sections": ()}, "`summary_sections` of an agent is empty"),
        ({"summary_sections": ("Goal", "")}, "`summary_sections` of an agent takes headings of one line, got ''"),
        ({"summary_sections": ("Goal\n## Facts",)}, "`summary_sections` of an agent takes headings of one line"),
        ({"summary_sections": ("Goal", "goal ")}, "`summary_sections` of an agent has 'goal' twice"),
        ({"rules": "mine.yaml"}, "`rules` of an agent must be a list, got 'mine.yaml'"),
        ({"rules": [7]}, "`rules` of an agent takes paths of YAML files, got 7"),
        ({"rules": ["mine.yaml"]}, "`rules` of an agent names 'mine.yaml', which is no file"),
    ],
)
def test_what_cannot_work_is_one_sentence_that_names_the_field(wrong: dict[str, Any], reason: str) -> None:
    with pytest.raises(SettingsError, match=reason):
        Agent(**{**GOOD, **wrong})


def test_lists_are_taken_as_they_are_meant(tmp_path: Path) -> None:
    rules = tmp_path / "mine.yaml"
    rules.touch()

    agent = Agent(**GOOD, tools=[sign], summary_sections=["Goal"], rules=[rules])  # type: ignore[arg-type]

    assert (agent.tools, agent.summary_sections, agent.rules) == ((sign,), ("Goal",), (rules,))
