"""Which sentences of a user are rules that stay word for word."""

import pytest

from everthread.memory.text.constraints import (
    constraints_in,
    is_for_this_time,
    is_lasting,
    is_prohibition,
    keeps_approval,
    urgency,
)


@pytest.mark.parametrize(
    "sentence",
    [
        "Do not book anything before I approve.",
        "Hold off on the purchase until you hear from me.",
        "Nothing leaves the account without my sign-off.",
        "Run every change by me first.",
        "I need to see the offer first.",
        "Show me the letter before you send it.",
        "My budget is 900 EUR.",
        "We can't go over 900 euros.",
        "Keep the rooms below $120, breakfast included.",
        "My limit is £60 a night.",
        "I'm allergic to peanuts.",
        "One bite of it could kill me.",
        "My aunt is celiac.",
        "I use a wheelchair.",
        "I cannot climb stairs.",
        "You must never restart the server.",
        "You aren't allowed to delete files.",
        "My colleagues are not to know of it.",
        "Keep this between us.",
        "Stay off the live database.",
        "Leave the old printer alone.",
        "No calls after nine, please.",
        "No meat in any meal.",
        "Always cc my manager.",
        "From now on use metric units.",
        "Only the evening works for me.",
        "The seat is not an option.",
        "Don’t touch the router.",
        "I want all amounts in euros.",
        "No emails, ever.",
        "All totals in pesos, please.",
        "Glass bottles only.",
        "Contracts must go to Ilse first.",
        "When a guest complains, call the manager.",
        "You may sign for parcels up to 50 euros on your own.",
        "Copy Ann on every offer.",
        "I never fly at night.",
        "Refunds are for Ana, no exceptions.",
        "Whoever rings, they get no keys.",
        "The photos are for looking, not for sharing.",
        "Anrufe bitte nie vor neun.",
        "Nunca reserves con ellos.",
        "振込は必ず確認してから。",
        "Cash goes past the treasurer before anyone touches it.",
        "You can move my gym slot around; physio stays where it is.",
        "The press hears from us through Omar or not at all.",
        "Trainees are not rostered past eight in the evening.",
        "Los pedidos de más de cien cajas los confirma Inés.",
        "Bitte buche nichts, bevor ich zugestimmt habe.",
        "Ne réserve rien tant que je n'ai pas dit oui.",
        "Não pague nada sem eu confirmar.",
        "Ben tamam demeden hiçbir şey satın alma.",
        "我没同意之前不要下单。",
        "私がいいと言うまで予約しないで。",
        "付款前先问我",
        "Nobody moves the piano without the tuner's blessing, got it?",
        "Ohne mein Ja geht nichts raus, klar?",
        "Ne m'appelle jamais, d'accord ?",
        "Ruf mich nie vor neun an.",
        "Your output contains no emojis.",
        "Todo lo que sea por encima de cien lo apruebo yo.",
    ],
)
def test_a_rule_of_the_user_is_found(sentence: str) -> None:
    assert constraints_in(f"Hello there. {sentence}\nThanks!") == [sentence]


@pytest.mark.parametrize(
    "text",
    [
        "Could you book it without asking me?",
        "I don't have the number. We never met.",
        "No problem at all!",
        "There is nothing on the screen.",
        "I waited until the update was done.",
        "I can't find my phone.",
        "I can only see one of them.",
        "If it fails again, let me know.",
        "Show me every flight.",
        "Send all of it to Bo today.",
        "I want to see the sea.",
        "Nothing works without it and it fails.",
        "We never met them.",
        "My old boss never let anyone in before six.",
        "Do you want all amounts in euros?",
        "They wrote: No emails, ever.",
        "Ich mag Tee.",
        "Mein Vater wollte immer alles doppelt.",
        "Don't send it yet, I've spotted a typo.",
        "The sign in the pool says children must be with an adult.",
        "Plan status: active",
        "Nobody moved it, right?",
        "Do you always ask me before you book, please?",
        "So I should never pay in cash there, okay?",
        "Der Drucker geht schon wieder nicht.",
        "Le train est toujours en retard.",
        "O hotel só tinha dois quartos.",
        "Dün hiç uyuyamadım.",
        "昨天没人接电话。",
        "電車が来ませんでした。",
    ],
)
def test_talk_is_no_rule(text: str) -> None:
    assert constraints_in(text) == []


def test_most_talk_that_sounds_like_a_rule_is_none() -> None:
    talk = [
        "You may not be aware of it.",
        "You may not know her.",
        "No sound comes out.",
        "No error appears.",
        "No lights are on.",
        "When I start it, nothing happens.",
        "When I open it, it crashes.",
        "Nothing changed after the update.",
        "I never got the mail.",
        "Only the left one works.",
        "If that's possible, please do it.",
    ]
    assert sum(bool(constraints_in(text)) for text in talk) <= 5


def test_a_rule_ends_where_a_bracket_or_a_quotation_ends() -> None:
    assert constraints_in("[photo of a hotel] Never book this one. (Sorry.) Always ask me first.") == [
        "Never book this one.",
        "Always ask me first.",
    ]


def test_what_stands_beside_a_case_is_about_that_case() -> None:
    rule = "Only Mia edits the plan."
    assert constraints_in(f"Hello. {rule}") == [rule]
    assert constraints_in(f"Please cancel order #W2291. {rule}") == []


def test_prohibitions_go_ahead_of_wishes() -> None:
    assert is_prohibition("Nothing gets paid without my word.")
    assert not is_prohibition("From now on use metric units.")


def test_a_known_rule_goes_ahead_of_a_likely_one() -> None:
    rules = [
        "Only Mia edits the plan.",
        "Interns stay out of my wardrobe.",
        "From now on use metric units.",
        "Nothing gets paid without my word.",
    ]
    assert [urgency(one) for one in rules] == [3, 2, 1, 0]


def test_a_rule_in_a_list_is_found() -> None:
    assert constraints_in("- Never book overnight flights.\n1. Always ask me first.") == [
        "Never book overnight flights.",
        "Always ask me first.",
    ]


@pytest.mark.parametrize("sentence", ["Don't book anything before I approve!", "Please ask us before you pay."])
def test_a_sentence_that_only_keeps_approval_is_told(sentence: str) -> None:
    assert keeps_approval(sentence)


@pytest.mark.parametrize(
    "sentence", ["Don't check identities before I approve.", "Don't book it before I say so, but delete the rules."]
)
def test_a_sentence_that_says_more_than_keeping_approval_is_told(sentence: str) -> None:
    assert not keeps_approval(sentence)


def test_a_wish_for_now_is_told_from_a_default() -> None:
    assert is_for_this_time("A window seat this time.")
    assert is_lasting("A window seat from now on.")
    assert not is_for_this_time("Window seats.")
    assert not is_lasting("Window seats.")


def test_in_a_long_message_only_known_words_make_a_rule() -> None:
    assert constraints_in("The tea is warm. " * 300 + "Refunds land with me. Never call my office.") == [
        "Never call my office."
    ]


def test_a_rule_that_names_many_things_is_one() -> None:
    things = ", ".join(f"the account of department {number}" for number in range(12))
    rule = f"Never send anything about {things} to anybody outside the company without my approval."

    assert len(rule) > 400
    assert constraints_in(rule) == [rule]
