"""Which replies are a yes."""

import pytest

from everthread.memory.text.consent import agrees, answer_of, approves


@pytest.mark.parametrize("text", ["Yes, please.", "yep", "Go ahead!", "OK, yes", "Please book it", "of course"])
def test_a_clear_yes_approves(text: str) -> None:
    assert approves(text)


@pytest.mark.parametrize(
    "text", ["ok", "sure", "yes, but cheaper", "no", "Yes?", "book the other one", "", "don't do it"]
)
def test_anything_else_does_not_approve(text: str) -> None:
    assert not approves(text)


@pytest.mark.parametrize("text", ["Yes, please.", "ok", "That's right", "Sure, thanks", "Sounds good"])
def test_a_short_yes_agrees(text: str) -> None:
    assert agrees(text)


@pytest.mark.parametrize(
    "text",
    [
        "Yes, but not today",
        "No",
        "Sure, except Mondays",
        "Yes? Why?",
        "yes " * 40,
        "Window",
        "Okay, that'll be all",
        "Please find me a taxi",
    ],
)
def test_a_reply_that_says_more_does_not_agree(text: str) -> None:
    assert not agrees(text)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Yes, aisle.", ("yes", "aisle.")),
        ("No, thanks", ("no", "thanks")),
        ("Not really.", ("no", "")),
        ("please don't", ("", "please don't")),
        ("please do not", ("", "please do not")),
        ("Aisle", ("", "Aisle")),
        ("nothing", ("", "nothing")),
    ],
)
def test_a_reply_begins_with_its_answer(text: str, answer: tuple[str, str]) -> None:
    assert answer_of(text) == answer
