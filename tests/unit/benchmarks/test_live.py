"""What a model adds, measured: with a model that answers by a rule, and again from the recording of its answers."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.live import __main__ as live
from judging import JudgeModel, Shown, allow, answers, fail


def careful(notes: list[Shown]) -> str:
    return answers(*((one["id"], "instruction_payload" if "allow" in one["note"] else "allow") for one in notes))


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let a name stand for a model."""
    return lambda model: monkeypatch.setattr(live, "resolve", lambda _: model)


def run(capsys: pytest.CaptureFixture[str], *arguments: Any) -> dict[str, Any]:
    assert live.main([str(one) for one in (*arguments, "--json")]) == 0
    return dict(json.loads(capsys.readouterr().out))


def test_a_recording_gives_the_same_figures_without_a_model(
    served: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    served(JudgeModel(judge=careful))
    recorded = run(capsys, "--limit", 16, "--record", tmp_path / "answers.jsonl")

    replayed = run(capsys, "--limit", 16, "--replay", tmp_path / "answers.jsonl")

    names = ("guard", "distillation", "requests", "without an answer")
    assert [replayed[name] for name in names] == [recorded[name] for name in names]
    assert recorded["requests"] > 16


def test_only_notes_that_the_rules_allow_are_shown(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    served(model := JudgeModel(judge=allow))

    figures = run(capsys, "--limit", 16)

    rules, both = ([row[head] for row in figures["guard"]] for head in ("blocked by rules", "by rules or model"))
    assert rules == both
    assert 0 < sum(map(len, model.asked)) < 16


def test_a_recording_of_other_prompts_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "answers.jsonl").write_text('{"prompt": "0", "reply": null}\n', encoding="utf-8")

    assert live.main(["--limit", "16", "--replay", str(tmp_path / "answers.jsonl")]) == 1
    assert "the prompts or the cases have changed since" in capsys.readouterr().err


def test_without_a_key_one_sentence_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)

    assert live.main([]) == 2
    assert capsys.readouterr() == (
        "",
        "error: nothing is measured: model 'openai:gpt-5-mini' needs a key: set `OPENAI_API_KEY`, or `OPENAI_BASE_URL` "
        "for a local server\n",
    )


@pytest.mark.parametrize("name", ["offline", "nobody:knows"])
def test_a_name_of_no_language_model_is_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert live.main(["--model", name]) == 2
    assert capsys.readouterr().err.startswith("error: nothing is measured: ")


def test_a_model_that_answers_nothing_gives_no_table(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    served(JudgeModel(judge=fail))

    assert live.main(["--limit", "60"]) == 2
    assert capsys.readouterr() == ("", "error: the model answers no request; the last error was RuntimeError: down\n")
