import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everthread.agents.support.diagnostics import (
    SandboxData,
    SandboxEstate,
    bundled_estate,
    bundled_sandbox,
    render_diagnosis,
    render_statuses,
)
from everthread.agents.support.knowledge import bundled_articles
from everthread.errors import NotFoundError, SettingsError

CHECKS = sorted(bundled_sandbox().checks)
TARGETS = [f"host-{number}" for number in range(200)]


def test_the_estate_has_the_usual_services_and_checks() -> None:
    services = {status.service for status in bundled_estate().statuses()}

    assert {"vpn", "email", "sso", "wifi", "file_shares", "printing", "chat", "video", "mdm", "vdi"} <= services
    assert {"ping", "dns", "http", "disk", "certificate", "mail_flow", "printer_queue", "mfa", "sync"} <= set(CHECKS)


@pytest.mark.parametrize("check", CHECKS)
def test_the_same_question_gets_the_same_answer(check: str) -> None:
    answers = [SandboxEstate(bundled_sandbox()).run(check, "lt-0042") for _ in range(2)]

    assert answers[0] == answers[1]


@pytest.mark.parametrize("check", CHECKS)
def test_targets_reach_every_outcome_of_a_check(check: str) -> None:
    found = {bundled_estate().run(check, target).code for target in TARGETS}

    assert found == {outcome.code for outcome in bundled_sandbox().checks[check].outcomes}


@pytest.mark.parametrize("check", CHECKS)
def test_every_placeholder_is_filled_in(check: str) -> None:
    for target in TARGETS:
        found = bundled_estate().run(check, target)
        assert not re.search(r"[{}]", found.summary + "".join(found.evidence))


@pytest.mark.parametrize("check", CHECKS)
def test_every_failure_has_an_exact_code(check: str) -> None:
    for outcome in bundled_sandbox().checks[check].outcomes:
        assert outcome.code or outcome.verdict != "failed"


@given(st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=80))
def test_any_printable_target_is_answered(target: str) -> None:
    found = bundled_estate().run("ping", f" {target} ")

    assert found.target == target
    assert target in found.summary


def test_spelling_of_check_and_target_does_not_change_the_result() -> None:
    estate = bundled_estate()

    first, second = estate.run("vpn_tunnel", "LT-4711"), estate.run("VPN Tunnel", " lt-4711 ")

    assert (first.summary, first.check) == (second.summary.replace("lt-", "LT-"), second.check)


def test_a_check_agrees_with_the_status_of_the_service() -> None:
    estate = bundled_estate()

    assert estate.status("vpn").state == "degraded"
    assert estate.run("vpn_tunnel", "vpn.corp.example").verdict == "warning"
    assert estate.run("http", "login.corp.example").verdict == "ok"
    assert estate.status("sso").state == "operational"


def test_a_service_is_found_by_id_name_alias_and_host() -> None:
    names = ("email", "Mail and calendar", "OUTLOOK", "mail.corp.example")

    assert {bundled_estate().status(name).service for name in names} == {"email"}


def test_an_unknown_service_is_answered_with_those_that_exist() -> None:
    with pytest.raises(NotFoundError, match=r"unknown service 'coffee'; the services are .*vpn"):
        bundled_estate().status("coffee")


def test_an_unknown_check_is_answered_with_those_that_exist() -> None:
    with pytest.raises(NotFoundError, match=r"unknown check 'smell'; the checks are .*ping \(reach"):
        bundled_estate().run("smell", "lt-1")


@pytest.mark.parametrize("target", ["", "  ", "a\nb", "x" * 201])
def test_an_unusable_target_is_refused(target: str) -> None:
    with pytest.raises(SettingsError, match="`disk` takes: asset tag"):
        bundled_estate().run("disk", target)


def test_every_article_that_the_sandbox_names_exists() -> None:
    data = bundled_sandbox()
    named = {service.incident.article for service in data.services.values() if service.incident}
    named |= {outcome.article for check in data.checks.values() for outcome in check.outcomes}

    assert named - {None} <= {article.id for article in bundled_articles()}


def test_names_of_the_estate_are_unambiguous() -> None:
    data = bundled_sandbox()
    services = [(name, key) for key, one in data.services.items() for name in (key, one.name, *one.aliases, *one.hosts)]
    checks = [(name, key) for key, one in data.checks.items() for name in (key, *one.aliases)]

    for pairs in (services, checks):
        keys = {name.casefold().replace("_", " "): key for name, key in pairs}
        assert all(keys[name.casefold().replace("_", " ")] == key for name, key in pairs)


def test_results_are_labelled_as_sandbox_wherever_they_are_shown() -> None:
    estate = bundled_estate()

    assert render_statuses(estate.label, estate.statuses()).startswith("[sandbox")
    assert render_diagnosis(estate.label, estate.run("ping", "lt-1")).startswith("[sandbox")


def test_disturbances_come_first_with_workaround_and_article() -> None:
    lines = render_statuses("x", bundled_estate().statuses()).splitlines()

    assert "operational" not in lines[1]
    assert "Workaround: " in lines[1]
    assert "operational" in lines[-1]


def test_a_finding_that_does_not_exist_is_refused_when_the_data_are_read() -> None:
    values = bundled_sandbox().model_dump()
    values["services"]["vpn"]["incident"]["findings"] = {"ping": "exploded"}

    with pytest.raises(ValueError, match="no outcome 'exploded'"):
        SandboxData.model_validate(values)


@pytest.mark.parametrize("name", ["VPN service", "the vpn", "our VPN service", "mail system"])
def test_a_service_is_known_by_what_people_call_it(name: str) -> None:
    assert bundled_estate().status(name).service in ("vpn", "email")
