"""A sentence that no mark gives away as pasted is told by what it says and what stands around it."""

import pytest

from everthread.memory.text.own_words import own_sentences, parts_of, without_marked
from everthread.memory.text.voice import are_own


def said(message: str) -> list[str]:
    return [sentence.quote for sentence in own_sentences(message)]


@pytest.mark.parametrize(
    ("message", "foreign"),
    [
        ("My neighbour swears she only drinks rain water, is that safe?", "she only drinks rain water"),
        (
            "can you shorten my client's bio\n\nMara Voss, sculptor\nI work at night and I never take commissions "
            "from banks.\nI live between Basel and a barn in the Jura.",
            "I never take commissions from banks.",
        ),
        (
            "hotel replied:\n\nDear guest,\nthank you for your mail. We never hold rooms after six. Pets stay "
            "outside.\nYour front desk\n\nso can we still come at eight?",
            "We never hold rooms after six.",
        ),
        ("Wie sagt man auf Englisch: Ich esse kein Schwein?", "Ich esse kein Schwein"),
        ("Her Tinder says I only date men with boats, should my brother write to her", "I only date men with boats"),
    ],
)
def test_what_somebody_else_says_is_not_the_users(message: str, foreign: str) -> None:
    assert not any(foreign in quote for quote in said(message))


@pytest.mark.parametrize(
    ("message", "own"),
    [
        ("My preferences\n- no phone calls\n- invoices as PDF\n- answers in French", "no phone calls"),
        ("I've been a nurse for ten years. I work nights, so never call me before two.", "never call me before two"),
        ("notes to you: 1) I hate buffets 2) aisle seat, always", "I hate buffets"),
        ("Je travaille de nuit. Ne m'appelle jamais avant midi.", "Ne m'appelle jamais avant midi."),
        ("朝は電話しないでください。", "朝は電話しないでください。"),
    ],
)
def test_what_the_user_says_is_theirs_in_any_layout(message: str, own: str) -> None:
    assert any(own in quote for quote in said(message))


def test_of_a_very_long_message_only_both_ends_are_weighed() -> None:
    message = "I am allergic to nuts. " + "The harbour was quiet that day. " * 500 + "Never call me before noon."

    parts = parts_of(message, without_marked(message))
    told = are_own(message, parts)

    assert (told[0], told[len(told) // 2], told[-1]) == (True, None, True)


def test_what_the_assistant_says_is_read_without_asking_for_its_voice() -> None:
    assert [one.text for one in own_sentences("Shall I add breakfast?", is_users=False)] == ["Shall I add breakfast?"]


def test_numbers_of_a_list_are_no_sentences() -> None:
    assert said("Translate this:\n1. The bar is closed.\n2. Guests must pay.\n") == ["Translate this:"]


def test_what_cannot_be_encoded_is_read() -> None:
    assert len(said("I am vegan \ud83d.")) == 1


def test_a_long_conversation_is_read_line_by_line() -> None:
    message = "Ann: hi there.\nBob: never book it.\n" * 500

    assert len(own_sentences(message)) <= 120
