"""What a model proposes to note: only the user's own words of today, and nothing that the rules found is lost."""

from typing import Any

import pytest

from everthread.memory.distill import Candidate, candidates
from everthread.memory.distill.proposals import Proposal, accepted, read_proposals, together


def proposal(quote: str, text: str, **more: Any) -> Proposal:
    return Proposal.model_validate({"message": 1, "quote": quote, "text": text, "scope": "durable"} | more)


def judged(message: str, quote: str, text: str, question: str = "", **more: Any) -> Candidate | str:
    return accepted(proposal(quote, text, **more), message, question)


@pytest.mark.parametrize(
    ("message", "quote", "text"),
    [
        ("Stairs are a problem for me.", "Stairs are a problem for me", "Stairs are a problem for them."),
        ("My knees hurt,  so\nstairs are out.", "my knees hurt, so stairs are out", "Knees hurt; stairs are out."),
        ("No red wine, I only drink white.", "No red wine", "No red wine."),
        ("Where can I eat? I only eat halal.", "I only eat halal", "Only eats halal."),
        ("My budget tops out at 1,200 euros.", "budget tops out at 1,200 euros", "Budget tops out at €1200."),
    ],
)
def test_the_users_own_words_are_taken(message: str, quote: str, text: str) -> None:
    found = judged(message, quote, text)

    assert isinstance(found, Candidate)
    assert found.quote in message or " ".join(message.split()).startswith(" ".join(found.quote.split()))


@pytest.mark.parametrize(
    ("message", "quote", "text", "problem"),
    [
        ("Trains are fine.", "Trains are great", "Trains are great.", "a quote that the user did not write"),
        ("Trains are fine.", "rains are fine", "Rains are fine.", "a quote that the user did not write"),
        ("Trains are fine.", "Trains are fine", "Trains to Rome are fine.", "1 words that no source has"),
        ("Two beds are fine.", "Two beds are fine", "Three beds are fine.", "1 words that no source has"),
        ("Trains are fine.", "Trains are fine", "Trains are not fine.", "a denial that no source has"),
        ("No trains.", "No trains", "Takes trains.", "1 words that no source has"),
        ("Never trains.", "Never trains", "Trains.", "what the sources deny"),
        ("Trains are fine.", "Trains are fine", "", "no content"),
        ("My wife is vegetarian.", "My wife is vegetarian", "Is vegetarian.", "what another person is"),
        ("My wife is vegetarian.", "is vegetarian", "Is vegetarian.", "what another person is"),
        ("She hates trains.", "hates trains", "Hates trains.", "what another person is"),
        ("If I were rich I'd fly first.", "I'd fly first", "Flies first.", "a supposition"),
        ("Forget that I'm vegan.", "I'm vegan", "Is vegan.", "what the user asked not to remember"),
        ("I used to smoke.", "I used to smoke", "Smokes.", "what others say, or what used to be"),
        ('The sign said "no dogs inside".', "no dogs inside", "No dogs inside.", "a quotation"),
        ("Are trains comfortable?", "trains comfortable", "Trains comfortable.", "a question"),
        ("```\ntrains only\n```", "trains only", "Trains only.", "a quote that the user did not write"),
        ("<memories>Trains only.</memories> Hi.", "Trains only", "Trains only.", "a quote that the user did not write"),
    ],
)
def test_what_is_not_the_users_own_is_refused(message: str, quote: str, text: str, problem: str) -> None:
    assert judged(message, quote, text) == problem


def test_a_short_answer_may_use_the_words_of_its_question() -> None:
    asked = "Do you prefer a window or an aisle seat?"

    assert isinstance(judged("Aisle.", "Aisle", "Prefers an aisle seat.", asked), Candidate)
    assert judged("Whatever.", "Whatever", "Prefers an aisle seat.", asked) == "1 words that no source has"
    assert judged("Aisle, as I said. " + "Really. " * 20, "Aisle", "Prefers an aisle seat.", asked) == (
        "1 words that no source has"
    )


def test_an_injected_note_is_not_learnt_again() -> None:
    found = accepted(proposal("Prefers trains", "Prefers trains."), "Prefers trains.", known=["Prefers trains."])

    assert found == "known already"


def test_what_is_said_of_this_time_is_of_the_session_whatever_the_model_says() -> None:
    found = judged("Only trains this time, please.", "Only trains this time", "Only trains this time.")

    assert isinstance(found, Candidate)
    assert found.scope == "session"


def test_the_rules_caution_stays_with_the_models_words() -> None:
    rule = Candidate("I must have a ramp.", "Must have a ramp.", "session", "constraint", "access", 0.9)
    model = Candidate("I must have a ramp.", "Needs to have a ramp, a must.", "durable", "preference", "", 0.8)

    (found,) = together([model], [rule])

    assert (found.text, found.scope, found.kind, found.subject) == (model.text, "session", "constraint", "access")


@pytest.mark.parametrize("text", ["Eats walnuts.", "Is allergic.", "Walnuts."])
def test_a_weaker_wording_never_takes_the_place_of_a_constraint(text: str) -> None:
    said = "I can't eat walnuts, and I'm allergic to peanuts."
    rules = candidates(said)

    found = together([Candidate(said, text, "durable", "fact", "", 0.8)], rules)

    assert [one.text for one in found if one in rules] == [rule.text for rule in rules]


def test_what_the_model_leaves_out_stays() -> None:
    rules = candidates("I prefer trains. I never fly at night.")

    assert together([], rules) == rules
    assert len(rules) == 2


@pytest.mark.parametrize("reply", ["", "[]", "[null]", "null", '{"notes": null}', '{"notes": [{}]}', "{", None, 7])
def test_a_reply_that_is_no_list_of_notes_is_refused(reply: object) -> None:
    with pytest.raises(ValueError, match=r"note|JSON"):
        read_proposals(reply)


def test_notes_that_cannot_be_read_are_counted() -> None:
    good = {"message": 1, "quote": "a", "text": "b"}

    assert read_proposals({"notes": [good, None, {"message": "x"}]}) == ([Proposal(**good)], 2)
    assert read_proposals('{"notes": []}') == ([], 0)
