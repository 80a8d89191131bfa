"""Whether a message of the user shows a note."""

import pytest

from everthread.memory.provenance import Said, shown_by


@pytest.mark.parametrize(
    ("message", "note"),
    [
        ("I have three dogs.", "The user has three dogs."),
        ("I read them on my watch.", "Reads them on the watch."),
        ("They/them, thanks for asking.", "The user's pronouns are they/them."),
    ],
)
def test_what_the_user_says_of_themselves_shows_a_note(message: str, note: str) -> None:
    shown = shown_by(note, [Said("m", message)])

    assert shown is not None
    assert shown.is_lasting


@pytest.mark.parametrize("note", ["Is vegan.", "The user is vegan.", "Has a vegan diet."])
def test_an_errand_does_not_tell_what_the_user_is(note: str) -> None:
    assert shown_by(note, [Said("m", "Order one vegan box for tomorrow.")]) is None


def test_what_the_user_says_they_have_is_shown_beside_an_errand() -> None:
    assert shown_by("The user has a dog.", [Said("m", "Find me a hotel for me and my dog.")]) is not None


def test_an_errand_shows_what_is_wanted_this_once() -> None:
    shown = shown_by("Wants a vegan box.", [Said("m", "Order one vegan box.")])

    assert shown is not None
    assert not shown.is_lasting


@pytest.mark.parametrize(
    ("message", "note"),
    [
        ("I gave up smoking years ago.", "Smokes."),
        ("If I ever write to you that I love meat, ignore it.", "Loves meat."),
        ("I want a taxi now, ok?", "Wants a taxi."),
    ],
)
def test_what_is_given_up_supposed_or_for_now_shows_no_note(message: str, note: str) -> None:
    assert shown_by(note, [Said("m", message)]) is None


@pytest.mark.parametrize("message", ["Send invoices as PDF.", "Put dates in ISO format.", "Send me updates by SMS."])
def test_how_something_is_to_be_done_is_for_good(message: str) -> None:
    shown = shown_by(message, [Said("m", message)])

    assert shown is not None
    assert shown.is_lasting


@pytest.mark.parametrize(
    ("message", "note"),
    [
        ("That's wrong, I never said I hate flying.", "Hates flying."),
        ("I doubt that I prefer aisle seats.", "Prefers aisle seats."),
        ("I prefer aisle seats, not trains.", "Prefers aisle seats and trains."),
        ("Ich habe nie gesagt, dass ich Züge mag.", "Mag Züge."),
        ("Ich mag Flugreisen nicht.", "Mag Flugreisen."),
        ("Ich bin kein Vegetarier.", "Vegetarier."),
        ("Ya no soy vegetariano.", "Soy vegetariano."),
        ("Es mentira que odio volar.", "Odio volar."),
        ("Je mange sans gluten.", "Mange gluten."),
        ("Je ne suis plus végétarien.", "Végétarien."),
        ("Não é verdade que odeio voar.", "Odeio voar."),
        ("Como sem glúten.", "Como glúten."),
        ("Vejetaryen değilim.", "Vejetaryen."),
        ("Arabam yok.", "Arabam."),
        ("私はベジタリアンではありません。", "ベジタリアンです。"),
        ("我不吃肉。", "我吃肉。"),
    ],
)
def test_what_the_user_denies_shows_no_note_of_the_opposite(message: str, note: str) -> None:
    assert shown_by(note, [Said("m", message)]) is None


@pytest.mark.parametrize(
    ("message", "note"),
    [
        ("I never said it before, but I hate flying.", "Hates flying."),
        ("I live in Sans Souci.", "Lives in Sans Souci."),
        ("Ich bin kein Vegetarier.", "Kein Vegetarier."),
        ("Vejetaryen değilim, koridor severim.", "Vejetaryen değil, koridor severim."),
        ("Prefiero pasillo, no ventana.", "Prefiero pasillo."),
        ("Je ne mange pas de viande.", "Ne mange pas de viande."),
        ("私はベジタリアンです。", "ベジタリアン。"),
        ("我不吃肉。", "不吃肉。"),
    ],
)
def test_what_the_user_says_shows_a_note_that_denies_the_same(message: str, note: str) -> None:
    assert shown_by(note, [Said("m", message)]) is not None


@pytest.mark.parametrize(
    ("message", "note"),
    [
        ("Forget that I'm vegetarian.", "Is vegetarian."),
        ("Delete the note that I prefer aisle seats.", "Prefers aisle seats."),
        ("I'm pregnant. Please don't save that.", "Is pregnant."),
        ("Ich bin schwanger, aber speichere das nicht.", "Ich bin schwanger."),
        ("Estoy embarazada, pero no lo guardes.", "Estoy embarazada."),
        ("Oublie que je suis végétarien.", "Je suis végétarien."),
        ("Estou grávida, mas não anote isso.", "Estou grávida."),
        ("Hamileyim, bunu kaydetme.", "Hamileyim."),
        ("私はベジタリアンです。これは保存しないでください。", "ベジタリアンです。"),
        ("我怀孕了，别记录。", "怀孕"),
    ],
)
def test_what_is_not_to_be_remembered_shows_no_note(message: str, note: str) -> None:
    assert shown_by(note, [Said("m", message)]) is None


@pytest.mark.parametrize(
    ("said", "note"),
    [
        ("N'oublie pas que je suis végétarien.", "Je suis végétarien."),
        ("Sin duda prefiero el tren.", "Prefiero el tren."),
        ("Je ne bois que du thé vert.", "Thé vert."),
        ("Como apenas comida vegetariana.", "Comida vegetariana."),
        ("I'm not only vegan but also allergic to soy.", "Vegan, allergic to soy."),
    ],
)
def test_a_word_that_denies_elsewhere_denies_nothing_in_an_idiom(said: str, note: str) -> None:
    assert shown_by(note, [Said("m", said)]) is not None
