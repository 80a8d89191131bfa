"""What the offline model does for IT support."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from everthread.agents.offline.articles import articles_in
from everthread.agents.offline.checks import status_step
from everthread.agents.offline.conversation import answer
from everthread.agents.offline.patterns import word_set
from everthread.agents.offline.reading import Reading, read
from everthread.agents.offline.support import issues_in
from everthread.agents.support.diagnostics import bundled_estate, render_diagnosis, render_statuses
from everthread.agents.support.knowledge import bundled_knowledge
from everthread.agents.support.knowledge import render as render_hits
from everthread.memory.rendering import render_profile

NAMES = word_set(
    "search_knowledge_base service_status run_diagnostic open_ticket update_ticket list_tickets save_memory_note"
)
ARTICLES = """KB-1001 · VPN does not connect (score 9.1)
Symptoms: error 809
Steps:
1. Sign in to the guest portal.
2. Try a hotspot.
Verify: The client shows "Connected".
Escalate when: Two networks fail.

KB-1003 · VPN drops (score 8.0)
Symptoms: drops
Steps:
1. Choose gateway west-1.
Verify: An hour without a drop.
Escalate when: It drops again.

KB-2003 · Network drive (score 1.2)
Symptoms: path
Steps:
1. Map it again.
Verify: It opens.
Escalate when: It does not."""
TICKET = "Ticket INC-7K2MQXA4 is recorded.\nINC-7K2MQXA4 · open · normal · VPN"


class Talk:
    """A conversation with the model in which the test plays the user and the tools."""

    def __init__(self, profile: dict[str, Any] | None = None) -> None:
        self.messages: list[BaseMessage] = [SystemMessage(f"You help.\n\n{render_profile(profile)}")]

    def reading(self) -> Reading:
        """Read the prompt as it is now."""
        return read(self.messages, NAMES)

    def ask(self, text: str, *results: str) -> str:
        """Say something, answer the calls with these results, and return what the model says."""
        self.messages.append(HumanMessage(text))
        calls = answer(self.reading()).calls if results else ()
        named = [
            {"name": one.tool, "args": dict(one.args), "id": f"c{len(self.messages)}-{at}"}
            for at, one in enumerate(calls)
        ]
        if named:
            self.messages.append(AIMessage("", tool_calls=named))
        for one, result in zip(named, results, strict=True):
            self.messages.append(ToolMessage(result, tool_call_id=str(one["id"])))
        reply = answer(self.reading())
        assert not reply.calls, f"unanswered calls: {reply.calls}"
        self.messages.append(AIMessage(reply.text))
        return reply.text

    def calls(self, text: str) -> list[tuple[str, dict[str, Any]]]:
        """Say something and return the calls that it leads to, without answers to them."""
        self.messages.append(HumanMessage(text))
        found = [(call.tool, dict(call.args)) for call in answer(self.reading()).calls]
        self.messages.pop()
        return found


OUTLOOK, MOUSE = "INC-D2OFNCBW", "INC-QLKNVVPW"


def two_tickets() -> Talk:
    """Open a ticket for Outlook, then one for a mouse."""
    talk = Talk()
    for name, title in ((OUTLOOK, "Outlook, mails are delayed"), (MOUSE, "mouse broken")):
        talk.ask(f"Open a ticket: {title}", f"Ticket {name} is recorded.\n{name} · open · normal · {title}")
    return talk


def test_a_problem_is_searched_and_the_best_article_presented() -> None:
    told = Talk().ask("My VPN fails with error 809.", ARTICLES)

    assert "KB-1001, “VPN does not connect”" in told
    assert "1. Sign in to the guest portal.\n2. Try a hotspot." in told
    assert "Escalate when: Two networks fail." in told
    assert "KB-1003 (VPN drops)" in told
    assert "Did that help?" in told


@pytest.mark.parametrize(
    ("text", "issues"),
    [
        ("My VPN fails. It says error 809.", ["My VPN fails. It says error 809."]),
        (
            "My laptop is slow. Also Outlook keeps asking for a password. And my printer prints nothing.",
            ["My laptop is slow.", "Outlook keeps asking for a password.", "my printer prints nothing."],
        ),
        ("1. VPN drops\n2. Teams has no audio, it fails", ["VPN drops", "Teams has no audio, it fails"]),
        ("How do I reset my password?", ["How do I reset my password?"]),
        (
            "Zoom audio does not work and OneDrive does not sync.",
            ["Zoom audio does not work", "OneDrive does not sync."],
        ),
        ("Good morning", []),
    ],
)
def test_several_problems_are_taken_apart_in_order(text: str, issues: list[str]) -> None:
    assert issues_in(text) == issues


def test_several_problems_are_searched_in_parallel_and_told_in_order() -> None:
    talk = Talk()

    told = talk.ask("My VPN fails. Also Teams has no audio, an error.", ARTICLES, "No article matches 'x'.")

    assert told.index("On “My VPN fails.”") < told.index("On “Teams has no audio, an error.”")
    assert "I found no article on this." in told


def test_a_bare_code_is_searched_together_with_the_problem_before() -> None:
    talk = Talk()
    talk.ask("My VPN fails", ARTICLES)

    assert talk.calls("The error is 0x80072746") == [
        ("search_knowledge_base", {"query": "My VPN fails The error is 0x80072746"})
    ]


def test_the_next_article_follows_and_then_a_ticket() -> None:
    talk = Talk()
    talk.ask("My VPN fails with error 809.", ARTICLES)

    assert "1. Choose gateway west-1." in talk.ask("It did not help")
    assert "Shall I open a ticket for this?" in talk.ask("still the same")
    ((tool, args),) = talk.calls("yes please")
    assert (tool, args["title"]) == ("open_ticket", "My VPN fails with error 809")
    assert "KB-1001, KB-1003" in args["description"]


def test_asking_for_a_person_opens_a_ticket_for_the_case() -> None:
    talk = Talk()
    talk.ask("My VPN fails with error 809.", ARTICLES)

    assert talk.calls("Can I talk to a human?")[0][1]["title"] == "My VPN fails with error 809"


def test_a_password_reaches_no_tool_and_no_recap() -> None:
    talk = Talk()

    ((_, args),) = talk.calls("My password is hunter22 and the VPN fails")
    talk.ask("My password is hunter22 and the VPN fails", ARTICLES)

    assert args == {"query": "VPN fails"}
    assert "Please do not send me passwords" in talk.messages[-1].text
    assert "hunter22" not in talk.ask("summarize")


def test_an_offer_can_be_declined() -> None:
    talk = Talk()
    talk.ask("My VPN fails with error 809.", "No article matches 'x'.")

    assert talk.ask("no, thanks") == "All right. Is there anything else?"


def test_a_solved_problem_leads_to_closing_the_ticket() -> None:
    talk = Talk()
    talk.ask("open a ticket about the VPN", TICKET)

    assert "Shall I close ticket INC-7K2MQXA4?" in talk.ask("It works now")
    assert talk.calls("yes") == [("update_ticket", {"ticket_id": "INC-7K2MQXA4", "status": "closed"})]


@pytest.mark.parametrize(
    ("text", "args"),
    [
        ("Is the VPN down?", {"service": "vpn"}),
        ("is single sign-on working today?", {"service": "single sign-on"}),
        ("What is the status of email?", {"service": "email"}),
        ("Any outages with Teams?", {"service": "teams"}),
        ("service status", {}),
        ("Are there any known issues?", {}),
        ("is everything up?", {}),
    ],
)
def test_questions_on_services_ask_for_their_status(text: str, args: dict[str, str]) -> None:
    assert Talk().calls(text) == [("service_status", args)]


@pytest.mark.parametrize("text", ["my printer is offline", "Why is my printer offline?", "list my tickets", "Hello"])
def test_other_messages_ask_for_no_status(text: str) -> None:
    assert status_step(text) is None


@pytest.mark.parametrize(
    ("text", "check", "target"),
    [
        ("ping files.corp.example", "ping", "files.corp.example"),
        ("check dns for mail.corp.example", "dns", "mail.corp.example"),
        ("please check if mail.corp.example is reachable", "ping", "mail.corp.example"),
        ("Please run a certificate check on sites.corp.example", "certificate", "sites.corp.example"),
        ("run a diagnostic of the disk on LT-0042", "disk", "LT-0042"),
        ("run a wifi signal test", "wifi_signal", "LT-0042"),
        ("Can you run a ping test to the vpn?", "ping", "vpn"),
    ],
)
def test_checks_are_run_on_what_is_named_or_the_user_s_device(text: str, check: str, target: str) -> None:
    talk = Talk({"name": "Ada", "devices": [{"type": "laptop", "asset_tag": "LT-0042"}]})

    assert talk.calls(text) == [("run_diagnostic", {"check": check, "target": target})]


def test_a_check_without_a_target_asks_for_it() -> None:
    talk = Talk()

    assert "Which host, device or service" in talk.ask("run a dns check")
    assert talk.calls("mail.corp.example") == [("run_diagnostic", {"check": "dns", "target": "mail.corp.example"})]


@pytest.mark.parametrize(
    ("text", "title", "description", "priority"),
    [
        ("Open an urgent ticket: nobody can print", "Nobody can print", "Reported: nobody can print", "urgent"),
        (
            "My dock is dead. It smells. Open a ticket.",
            "My dock is dead",
            "Reported: My dock is dead. It smells.",
            None,
        ),
        (
            "create a low priority ticket about my chair. It squeaks.",
            "My chair",
            "Reported: my chair\nIt squeaks.",
            "low",
        ),
    ],
)
def test_tickets_are_opened_in_the_user_s_words(text: str, title: str, description: str, priority: str | None) -> None:
    ((tool, args),) = Talk().calls(text)

    assert tool == "open_ticket"
    assert (args["title"], args["description"], args.get("priority")) == (title, description, priority)


def test_a_ticket_about_nothing_asks_for_its_subject() -> None:
    talk = Talk()

    assert "What is the ticket about?" in talk.ask("open a ticket")
    assert talk.calls("My monitor flickers")[0][1]["title"] == "My monitor flickers"


@pytest.mark.parametrize(
    ("text", "args"),
    [
        ("close the ticket", {"status": "closed"}),
        ("mark my ticket as resolved", {"status": "resolved"}),
        ("reopen the ticket", {"status": "open"}),
        ("raise priority to high on my ticket", {"priority": "high"}),
        ("Add a comment to the ticket: rebooted, same error", {"comment": "rebooted, same error"}),
        ("update ticket INC-ABCDEFGH: solved by itself", {"ticket_id": "INC-ABCDEFGH", "comment": "solved by itself"}),
    ],
)
def test_tickets_are_changed(text: str, args: dict[str, str]) -> None:
    talk = Talk()
    talk.ask("open a ticket about the VPN", TICKET)

    assert talk.calls(text) == [("update_ticket", {"ticket_id": "INC-7K2MQXA4", **args})]


def test_an_unnamed_ticket_is_asked_for() -> None:
    talk = Talk()

    assert "Which ticket" in talk.ask(
        "close my ticket", "INC-7K2MQXA4 · open · low · VPN\nINC-ABCDEFGH · open · low · Dock"
    )
    assert talk.calls("INC-ABCDEFGH") == [("update_ticket", {"ticket_id": "INC-ABCDEFGH", "status": "closed"})]


@pytest.mark.parametrize(
    ("text", "ticket_id"),
    [
        ("Close the mouse ticket", MOUSE),
        ("close the ticket about the mouse, please", MOUSE),
        ("close the ticket for Outlook", OUTLOOK),
        ("please close the first ticket", OUTLOOK),
        ("close the second ticket", MOUSE),
        ("close it", MOUSE),
        ("you can close that ticket", MOUSE),
    ],
)
def test_the_ticket_that_the_user_describes_is_closed(text: str, ticket_id: str) -> None:
    talk = two_tickets()

    assert talk.calls(text) == [("update_ticket", {"ticket_id": ticket_id, "status": "closed"})]


@pytest.mark.parametrize(
    "text", ["Close the keyboard ticket", "resolve the ticket about my badge", "close the third ticket"]
)
def test_a_ticket_that_is_not_known_is_not_guessed(text: str) -> None:
    talk = two_tickets()

    assert talk.calls(text) == [("list_tickets", {})]
    told = talk.ask(text, f"{MOUSE} · open · normal · Mouse broken")
    assert "Which ticket do you mean?" in told
    assert talk.calls("the mouse one")[0][1]["ticket_id"] == MOUSE


def test_the_priority_of_the_ticket_that_is_named_changes() -> None:
    talk = two_tickets()

    assert talk.calls("Set priority of the first ticket to high") == [
        ("update_ticket", {"ticket_id": OUTLOOK, "priority": "high"})
    ]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("And one for the printer too, please", "The printer"),
        ("another one for the printer", "The printer"),
        ("Open a second ticket: dock dead", "Dock dead"),
        ("one more ticket about my badge would help, please open another ticket for my badge", "My badge"),
    ],
)
def test_another_ticket_is_opened_in_the_same_conversation(text: str, title: str) -> None:
    ((tool, args),) = two_tickets().calls(text)

    assert (tool, args["title"]) == ("open_ticket", title)


def test_a_ticket_for_a_thing_keeps_what_was_reported_about_it() -> None:
    talk = Talk()
    talk.ask("My VPN fails with error 809 and error 0x80072746.", ARTICLES)

    ((_, args),) = talk.calls("Open a ticket for the VPN")

    assert args["title"] == "My VPN fails with error 809 and error 0x80072746"
    assert "0x80072746" in args["description"]
    assert "Articles given to the user: KB-1001." in args["description"]


def test_a_closed_ticket_is_not_offered_for_closing_again() -> None:
    talk = two_tickets()
    talk.ask("close it", f"Ticket {MOUSE} is up to date.\n{MOUSE} · closed · normal · Mouse broken")

    assert talk.ask("yes") == "Good. Is there anything else?"


def test_a_question_on_a_ticket_changes_nothing() -> None:
    assert two_tickets().calls("Is my mouse ticket closed?") == [("list_tickets", {})]


@pytest.mark.parametrize(
    ("text", "args"),
    [("list my tickets", {}), ("show my open tickets", {"status": "open"}), ("what is the status of my tickets?", {})],
)
def test_tickets_are_listed(text: str, args: dict[str, str]) -> None:
    assert Talk().calls(text) == [("list_tickets", args)]


def test_the_description_of_another_ticket_holds_nothing_of_the_last_case() -> None:
    talk = Talk()
    talk.ask("My VPN fails with error 809.", ARTICLES)

    ((_, args),) = talk.calls("open a ticket about my broken chair")

    assert args["description"] == "Reported: my broken chair"


def test_services_that_work_take_one_line_together() -> None:
    estate = bundled_estate()

    told = Talk().ask("service status", render_statuses(estate.label, estate.statuses()))

    assert "- vpn (Remote access VPN): degraded" in told
    assert "services are operational." in told
    assert "- email" not in told


def test_a_diagnosis_is_quoted_and_leads_to_its_article() -> None:
    estate, talk = bundled_estate(), Talk()

    told = talk.ask("ping vpn.corp.example", render_diagnosis(estate.label, estate.run("ping", "vpn.corp.example")))

    assert "WARNING: vpn.corp.example loses" in told
    assert "Shall I look up KB-1005?" in told
    assert talk.calls("yes") == [("search_knowledge_base", {"query": "KB-1005", "limit": 1})]


def test_preferences_are_saved_and_symptoms_are_not() -> None:
    talk = Talk()

    assert talk.calls("Remember that I work on Linux.")[0][1]["text"] == "Works on Linux."
    assert [tool for tool, _ in talk.calls("I always get error 809 on the VPN")] == ["search_knowledge_base"]


def test_what_is_known_is_listed() -> None:
    talk = Talk(
        {"employee_id": "E-9", "name": "Ada", "devices": [{"type": "laptop", "model": "T14", "asset_tag": "LT-1"}]}
    )

    told = talk.ask("what do you know about me?")

    assert "- Devices: laptop T14" in told
    assert "E-9" not in told


def test_the_articles_of_the_bundled_knowledge_base_are_read() -> None:
    hits = bundled_knowledge().search("VPN error 809")

    found = articles_in(render_hits("VPN error 809", hits))

    assert [(one.id, one.title, one.score) for one in found] == [
        (hit.id, hit.title, round(hit.score, 1)) for hit in hits
    ]
    assert all(one.steps.startswith("1. ") and one.verify and one.escalate for one in found)
