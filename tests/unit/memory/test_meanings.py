import pytest

from everthread.memory.learned import FOLDER
from everthread.memory.learned.meanings import meanings_in


@pytest.mark.parametrize(
    "text",
    [
        "Sends the invoices",
        "verschickt die Rechnungen",
        "envía las facturas",
        "envoie les factures",
        "envia as faturas",
        "faturaları gönder",
        "請求書を送信する",
        "发送发票",
    ],
)
def test_words_of_eight_languages_have_one_meaning(text: str) -> None:
    assert "send" in meanings_in(text)


def test_meanings_come_in_the_order_of_the_text() -> None:
    meanings = meanings_in("Delete the notes before they confirm.")

    assert meanings.index("delete") < meanings.index("before") < meanings.index("confirm")


def test_a_star_stands_for_any_ending_and_a_word_without_one_for_itself() -> None:
    assert "send" in meanings_in("senders")
    assert "send" not in meanings_in("sentence")


def test_a_phrase_is_found_whole_only() -> None:
    assert "forward" in meanings_in("pass on")
    assert "forward" not in meanings_in("pass exams")


def test_a_word_of_another_language_is_none() -> None:
    assert "never" in meanings_in("nie ohne Rückfrage buchen")
    assert "never" not in meanings_in("Nie likes green tea and old books")


def test_accents_and_case_do_not_matter() -> None:
    assert meanings_in("ENVÍA LOS RECIBOS") == meanings_in("envia los recibos")


def test_a_text_without_known_words_has_no_meanings() -> None:
    assert meanings_in("Zzyzx 42 !") == ()
    assert meanings_in("") == ()


def test_each_meaning_has_one_line_with_words_of_every_language() -> None:
    head, *lines = (FOLDER / "meanings.tsv").read_text(encoding="utf-8").splitlines()
    names = [line.split("\t")[0] for line in lines]

    assert all(len(line.split("\t")) == len(head.split("\t")) and "\t\t" not in line for line in lines)
    assert len(names) == len(set(names))
