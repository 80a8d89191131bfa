import re
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everthread.agents.support.knowledge import (
    SECTIONS,
    Article,
    KnowledgeBase,
    bundled_articles,
    bundled_knowledge,
    read_article,
    render,
)
from everthread.errors import RecordError, StorageError

QUESTIONS = [
    ("VPN won't connect from my hotel, it says Error 809", "KB-1001"),
    ("my vpn keeps dropping every 10 minutes", "KB-1003"),
    ("VPN is connected but I can't open the intranet", "KB-1002"),
    ("laptop cannot join the corporate wifi", "KB-1004"),
    ("WiFi is really slow in the meeting room", "KB-1005"),
    ("my IP address starts with 169.254", "KB-1007"),
    ("407 Proxy Authentication Required", "KB-1008"),
    ("NET::ERR_CERT_AUTHORITY_INVALID on an internal site", "KB-1009"),
    ("I forgot my password", "KB-1101"),
    ("why does my user get blocked after I changed the password", "KB-1102"),
    ("I got a new phone and my authenticator codes don't work", "KB-1103"),
    ("I keep getting MFA prompts that I did not start", "KB-1104"),
    ("AADSTS50105 when I open the HR application", "KB-1105"),
    ('Outlook says "Trying to connect..." and no new mail arrives', "KB-1201"),
    ("mail bounced with 550 5.1.1", "KB-1203"),
    ("cannot send mail because the quota is exceeded", "KB-1204"),
    ("I can't send from the shared mailbox", "KB-1205"),
    ("how can my assistant manage my calendar?", "KB-1206"),
    ("550 5.7.133 when a customer writes to our list", "KB-1207"),
    ("nobody can hear me in Teams", "KB-1301"),
    ("camera error 0xA00F4244", "KB-1303"),
    ("OneDrive stuck on processing changes", "KB-1304"),
    ("print jobs stuck in the queue", "KB-1401"),
    ("Windows update error 0x80070057", "KB-1501"),
    ("0x800f081f", "KB-1502"),
    ("blue screen DRIVER_IRQL_NOT_LESS_OR_EQUAL", "KB-1504"),
    ("my computer takes ages to boot", "KB-1505"),
    ("low disk space warning on C", "KB-1506"),
    ("computer wants a 48 digit key at startup", "KB-1507"),
    ("FileVault does not accept my password after a restart", "KB-1601"),
    ("Could not get lock /var/lib/dpkg/lock-frontend", "KB-1701"),
    ("git push: Permission denied (publickey)", "KB-1801"),
    ("Cannot connect to the Docker daemon", "KB-1804"),
    ("my docking station does not detect the second monitor", "KB-1901"),
    ("remote desktop error 0x204", "KB-2001"),
    ("network drive has a red cross, 0x80070035", "KB-2003"),
    ("cannot enrol my iPhone in the company portal", "KB-2101"),
    ("my laptop was stolen on the train", "KB-2103"),
    ("I clicked on a link in a phishing email and entered my password", "KB-2202"),
    ("restore a file I deleted by accident", "KB-2305"),
    ("Excel is extremely slow with a big workbook", "KB-2401"),
    ("400 Bad Request Request Header Or Cookie Too Large", "KB-2403"),
]

MINIMAL = """---
id: KB-9001
title: {title}
products: [Test]
tags: [test]
updated: 2026-01-01
---

## Symptoms

{symptoms}

## Cause

Because.

## Steps

1. First,
   on two lines.
2. Second.

## Verify

Look.

## Escalate when

Always.
"""


def article(title: str = "Title", symptoms: str = "Sign.", article_id: str = "KB-9001") -> Article:
    text = MINIMAL.format(title=title, symptoms=symptoms).replace("KB-9001", article_id)
    return read_article(text, "test.md")


def file_texts() -> Iterator[tuple[str, str]]:
    for entry in (files("everthread.agents.support") / "articles").iterdir():
        yield entry.name, entry.read_text(encoding="utf-8")


def test_at_least_fifty_articles_with_unique_ids_are_bundled() -> None:
    ids = [one.id for one in bundled_articles()]

    assert len(ids) >= 50
    assert len(set(ids)) == len(ids)


def test_every_article_has_every_section_and_a_readable_length() -> None:
    for name, text in file_texts():
        body = text.split("\n---\n", 1)[1]
        assert tuple(re.findall(r"^## (.+)$", body, re.MULTILINE)) == SECTIONS, name
        assert 120 <= len(body.split()) <= 260, name


def test_file_names_begin_with_the_article_id() -> None:
    for name, text in file_texts():
        assert name.startswith(read_article(text, name).id.lower() + "-")


def test_articles_hold_no_mail_addresses_and_no_phone_numbers() -> None:
    for name, text in file_texts():
        assert not re.search(r"\+\d[\d ]{7,}|\b\d{3}[- ]\d{3}[- ]\d{4}\b", text), name
        assert set(re.findall(r"[\w.]+@[\w-]+\.[\w.]+\w", text)) <= {"git@git.corp.example"}, name


@pytest.mark.parametrize(("question", "expected"), QUESTIONS)
def test_a_question_finds_its_article_among_the_first_three(question: str, expected: str) -> None:
    assert expected in [hit.article.id for hit in bundled_knowledge().search(question)]


def test_the_first_hit_is_nearly_always_the_expected_one() -> None:
    first = [bundled_knowledge().search(question, 1)[0].article.id == expected for question, expected in QUESTIONS]

    assert sum(first) / len(first) >= 0.9


@given(st.text(st.characters(), max_size=300))
def test_any_text_is_a_legal_query(query: str) -> None:
    hits = bundled_knowledge().search(query, 2)

    assert len(hits) <= 2


@pytest.mark.parametrize(
    "query",
    [
        '"',
        "AND",
        "NOT (",
        "title:vpn OR",
        "NEAR(a b, 2)",
        "vpn*",
        "^vpn -x + {a}",
        "0x80070057",
        "a" * 9000,
        "vpn\0vpn",
    ],
)
def test_query_syntax_is_read_as_words(query: str) -> None:
    assert isinstance(bundled_knowledge().search(query), list)


@pytest.mark.parametrize("query", ["", "   ", "🙂🔥", "?!", "\ud800", "how do I get this"])
def test_a_query_without_a_telling_word_finds_nothing(query: str) -> None:
    assert bundled_knowledge().search(query) == []


def test_an_article_is_found_by_its_id() -> None:
    assert bundled_knowledge().search("What does KB-1504 say?", 1)[0].article.id == "KB-1504"


def test_diacritics_case_and_width_do_not_matter() -> None:
    knowledge = KnowledgeBase([article("Café printer"), article("Scanner", article_id="KB-9002")])

    assert [knowledge.search(query, 1)[0].article.id for query in ("CAFE", "càfé", "ｃａｆｅ")] == ["KB-9001"] * 3


def test_a_hyphenated_word_is_found_in_one_piece_and_in_two() -> None:
    knowledge = KnowledgeBase([article(symptoms="The Wi-Fi is gone."), article(article_id="KB-9002")])

    assert all(knowledge.search(query)[0].article.id == "KB-9001" for query in ("wifi", "wi fi", "Wi-Fi"))


def test_the_title_weighs_more_than_the_symptoms() -> None:
    in_title = article("Toner is empty", article_id="KB-9002")
    in_symptoms = article(symptoms="Toner is empty")
    others = [article(article_id=f"KB-80{number}") for number in range(10, 20)]

    hits = KnowledgeBase([in_symptoms, in_title, *others]).search("toner")

    assert [hit.article.id for hit in hits] == ["KB-9002", "KB-9001"]
    assert hits[0].score > hits[1].score > 0


def test_the_same_query_gives_the_same_hits_in_every_thread() -> None:
    knowledge = KnowledgeBase(bundled_articles())
    queries = [question for question, _ in QUESTIONS] * 3
    expected = [knowledge.search(query) for query in queries]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(knowledge.search, queries)) == expected


def test_steps_are_split_and_joined_over_lines() -> None:
    assert article().steps == ("First, on two lines.", "Second.")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("---\nid", "id", "front matter"),
        ("## Cause", "## Reason", "sections"),
        ("1. First", "First", "numbered list"),
        ("KB-9001", "9001", "id"),
        ("updated: 2026-01-01", "updated: soon", "updated"),
        ("tags: [test]", "tags: [test", "expected"),
        ("Because.", "", "cause"),
    ],
)
def test_a_malformed_article_is_refused_with_the_name_of_its_file(old: str, new: str, message: str) -> None:
    text = MINIMAL.format(title="Title", symptoms="Sign.").replace(old, new, 1)

    with pytest.raises(RecordError, match=rf"(?s)test\.md: .*{message}"):
        read_article(text, "test.md")


def test_two_articles_with_one_id_are_refused() -> None:
    with pytest.raises(RecordError, match="KB-9001"):
        KnowledgeBase([article(), article()])


class WithoutFts5(sqlite3.Connection):
    """What SQLite says when it was built without FTS5."""

    def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
        if "fts5" in sql:
            raise sqlite3.OperationalError("no such module: fts5")
        return super().execute(sql, *args)


def test_a_python_without_fts5_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=WithoutFts5))

    with pytest.raises(StorageError, match="without FTS5; install a Python"):
        KnowledgeBase([article()])


def test_hits_are_rendered_with_steps_and_the_way_out() -> None:
    knowledge = KnowledgeBase([article("Toner is empty")])

    text = render("toner", knowledge.search("toner"))

    assert text.startswith("KB-9001 · Toner is empty")
    assert "1. First, on two lines.\n2. Second.\nVerify: Look.\nEscalate when: Always." in text


def test_no_hit_is_said_and_not_invented() -> None:
    assert render("zzz", []).startswith("No article matches 'zzz'")


@pytest.mark.parametrize("when", ["since this morning", "since yesterday", "for two days", "today", "since Monday"])
def test_when_a_problem_began_does_not_hide_its_article(when: str) -> None:
    assert bundled_knowledge().search(f"My VPN does not connect {when}.")[0].article.id == "KB-1001"


@pytest.mark.parametrize(
    "words", ["VPN does not connect", "VPN is broken", "VPN down", "can't reach the VPN", "trouble with the VPN", "vpn"]
)
def test_a_problem_is_found_by_its_product_however_it_is_put(words: str) -> None:
    assert bundled_knowledge().search(words)[0].article.id == "KB-1001"
