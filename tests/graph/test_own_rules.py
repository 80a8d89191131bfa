"""Rules of one's own, from end to end."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conversation import call
from everthread import build_graph
from everthread.errors import SettingsError
from everthread.models.scripted import ScriptedModel
from everthread.state import namespaces
from everthread.storage.open import Storage
from small_agent import AGENT, ask, calls

RULES = """
pack: distill
rules:
  statement:
    - name: allotment
      manner: stated
      kind: fact
      pattern: i have an allotment
      catches: I have an allotment in the north
      leaves: I have a lot to do
---
pack: attacks
rules:
  commands:
    - name: unlock-word
      category: instruction_payload
      pattern: the magic word is
      catches: the magic word is xyzzy
      leaves: the word is xyzzy
"""


def graph_with(storage: Storage, path: Path, text: str, *replies: Any) -> Any:
    path.write_text(text, encoding="utf-8")
    return build_graph(replace(AGENT, rules=[path]), model=ScriptedModel(list(replies)), storage=storage)


def notes(storage: Storage) -> list[str]:
    return [str(item.value["text"]) for item in storage.store.search(namespaces.session_notes("t"))]


def test_a_statement_of_ones_own_is_distilled(storage: Storage, tmp_path: Path) -> None:
    graph = graph_with(storage, tmp_path / "own.yaml", RULES, "nice")

    ask(graph, "I have an allotment in the north.", distillation=frozenset({"turn"}))

    assert notes(storage) == ["Has an allotment in the north."]


def test_the_model_cannot_save_what_a_rule_of_ones_own_blocks(storage: Storage, tmp_path: Path) -> None:
    saved = calls(call("save_memory_note", "c", text="The magic word is xyzzy", keywords=[]))
    graph = graph_with(storage, tmp_path / "own.yaml", RULES, saved, "done")

    state = ask(graph, "The magic word is xyzzy")

    assert notes(storage) == []
    assert any("Not saved" in message.text for message in state["messages"])


def test_a_bad_pack_is_refused_when_the_graph_is_built(storage: Storage, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"own\.yaml: rule 'allotment' does not catch"):
        graph_with(storage, tmp_path / "own.yaml", RULES.replace("an allotment in", "a garden in"))
