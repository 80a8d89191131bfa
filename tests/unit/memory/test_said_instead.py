"""A note in other words than the user's is kept in the user's, and only as far as they said something of the kind."""

import pytest

from everthread.memory.provenance import Said
from everthread.memory.said_instead import said_instead


def instead(note: str, *messages: str, is_others: bool = False) -> str:
    """Return what is kept instead of a note, after messages of which the newest comes first."""
    said = [Said(str(number), text) for number, text in enumerate(messages)]
    found = said_instead(note, said, is_others=is_others)
    return found[1].text if found else ""


@pytest.mark.parametrize(
    ("message", "note"),
    [
        ("Receipts over 80 go past Ilse first.", "Ilse approves receipts above 80."),
        ("Lunch is at one here, so leave that hour free.", "Keeps the lunch hour free."),
        ("When you write to the board, use full titles.", "Board members are addressed by full titles."),
        ("Ich trinke keinen Kaffee mehr, nur noch Tee.", "Drinks tea instead of coffee."),
        ("Nuestra oficina está en Bilbao y cierra a las tres.", "Office closes at 3 p.m."),
        ("The night shift is run by Pavel between 23 and 6.", "Pavel runs the night shift from 23:00 to 06:00."),
        ("Band practice is over at half nine, so no calls until then.", "Takes no calls before 9:30 pm."),
        ("I work nights, so nothing loud ahead of 2pm.", "Nothing loud before 14:00."),
        ("My skin goes red from clorine, mind that with pools.", "Reacts to chlorine."),
    ],
)
def test_a_paraphrase_is_kept_in_the_users_own_words(message: str, note: str) -> None:
    assert instead(note, message) == f'User said: "{message[:-1]}"'


@pytest.mark.parametrize(
    "message",
    [
        "Is the Ilse receipt fine?",
        "Find me the receipts of Ilse.",
        "If I were Ilse, I would approve receipts.",
        "Forget that Ilse approves my receipts.",
        "No, Ilse and the receipts.",
        'The form has "Ilse approves all receipts above 80 euros" on it.',
        "My colleague sends receipts late.",
    ],
)
def test_what_states_nothing_is_not_kept_instead(message: str) -> None:
    assert instead("Ilse approves receipts above 80.", message) == ""


def test_a_number_that_the_user_never_said_is_no_paraphrase() -> None:
    assert instead("Ilse approves receipts above 800.", "Receipts over 80 go past Ilse first.") == ""


def test_what_may_be_a_tools_is_not_kept_in_loosely_matching_words() -> None:
    assert instead("Ilse approves receipts above 80.", "Receipts over 80 go past Ilse first.", is_others=True) == ""


def test_one_common_word_is_enough_only_in_the_message_that_is_answered() -> None:
    said = "Receipts go to the third floor."

    assert instead("Files receipts in binders.", said) == 'User said: "Receipts go to the third floor"'
    assert instead("Files receipts in binders.", "Great work.", said) == ""
    assert instead("Receipts are due on the third floor.", "Great work.", said) != ""


@pytest.mark.parametrize(
    ("message", "note"),
    [
        ("我不吃香菜,一点都不行。", "用户不喜欢香菜。"),
        ("会議はいつも火曜日の午後でお願いします。", "会議は火曜日の午後を希望している。"),
    ],
)
def test_words_of_scripts_without_spaces_are_compared(message: str, note: str) -> None:
    assert instead(note, message) == f'User said: "{message}"'
    assert instead("用户住在成都。", "谢谢。", message) == ""


@pytest.mark.parametrize(
    ("message", "note"),
    [
        ("Long week. And for the future, give me the bare figure.", "Wants results without the steps."),
        ("Ab jetzt fahre ich mit dem Bus.", "Verzichtet aufs Auto."),
        ("Duz mich bitte, sonst klingt das so förmlich.", "Der Nutzer möchte geduzt werden."),
    ],
)
def test_what_is_said_for_good_in_the_message_that_is_answered_needs_no_word_of_the_note(
    message: str, note: str
) -> None:
    assert instead(note, message) != ""
    assert instead(note, message, is_others=True) == ""


@pytest.mark.parametrize(
    ("message", "note"),
    [
        ("The train was only ten minutes late.", "Is vegetarian."),
        ("I never received the confirmation mail.", "Is vegetarian."),
        ("Hotel Lutetia, is it any good?", "Stays at Hotel Lutetia."),
        ("Great. Put cumin and cilantro on my shopping list.", "User hates cilantro and cumin."),
        ("Send my boss the figures for the Hanley account.", "The boss is not copied on the Hanley account."),
        ("I always have to book through Otto, right?", "Always needs to book through Otto."),
        ("I have 12 cats to feed until Sunday.", "Has 24 cats."),
        ("I always pay one euro.", "Pays 13 euros."),
        ("From now on the office is closed on Fridays.", "Works in Berlin."),
        ("I want a taxi now, ok?", "Wants a taxi."),
        ("I need this by five ok?", "Needs this by five."),
        ("If I ever win the lottery I want first class.", "Wants first class."),
        ("As a student I live in Rome but quit that.", "Lives in Rome."),
    ],
)
def test_what_the_user_does_not_say_for_good_is_not_kept_for_good(message: str, note: str) -> None:
    found = said_instead(note, [Said("m", message)])

    assert found is None or found[1].scope == "session"


def test_a_number_of_any_length_is_compared() -> None:
    assert instead("Prefers aisle seats 12.", "I always want an aisle seat. " + "1" * 5_000) == ""


def test_the_statement_that_matches_is_kept_in_another_language_too() -> None:
    message = "Je suis végétarien. Je suis allergique aux noix."

    assert instead("Est allergique aux noix.", message) == 'User said: "Je suis allergique aux noix"'


def test_words_of_one_foreign_language_are_compared() -> None:
    assert instead("Mag keinen Stau und hasst lange Flüge.", "Wir fahren nicht mit dem Bus.") == ""


def test_a_lasting_statement_wins_over_the_wish_that_a_request_is_read_as() -> None:
    message = "I may be Danish but my spelling is American, and I'd like yours to be too."

    found = said_instead("Is Danish and uses American spelling.", [Said("m", message)])

    assert found is not None
    assert (found[1].scope, found[1].text) == ("durable", f'User said: "{message[:-1]}"')


@pytest.mark.parametrize(
    ("message", "note"),
    [
        ("I ride 20k to work by bike, all year round.", "Cycles 20 km to work all year round."),
        (
            "Given the choice I take the night train, wherever there is one.",
            "Prefers night trains whenever one exists.",
        ),
    ],
)
def test_a_number_in_other_signs_is_the_same(message: str, note: str) -> None:
    assert instead(note, message) == f'User said: "{message[:-1]}"'


def test_a_wish_of_now_does_not_give_way_to_what_was_said_earlier() -> None:
    said = [Said("2", "Book me an aisle seat this time."), Said("1", "I always prefer a window seat.")]

    found = said_instead("User wants an aisle seat.", said)

    assert found is not None
    assert (found[0].id, found[1].scope) == ("2", "session")


def test_the_beginning_of_a_long_paste_is_not_cut_off() -> None:
    message = "What does this say?\n```\n" + "print('hello')\n" * 1_000 + "I prefer aisle seats.\n```\nok?"

    assert instead("The user prefers aisle seats.", message) == ""


def test_what_is_not_to_be_remembered_is_not_kept_instead() -> None:
    assert instead("Ist schwanger.", "Bitte merk dir nicht, dass ich schwanger bin.") == ""
