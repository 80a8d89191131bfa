import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everthread.agents.support.diagnostics import run, sandbox, service_named, status_of
from everthread.agents.support.knowledge import bundled_articles
from everthread.errors import NotFoundError, SettingsError

CHECKS = sorted(sandbox().checks)
TARGETS = [f"host-{number}" for number in range(200)]


def test_the_estate_has_the_usual_services_and_checks() -> None:
    services = {"vpn", "email", "sso", "wifi", "file_shares", "printing", "chat", "video", "mdm", "vdi"}

    assert services <= set(sandbox().services)
    assert {"ping", "dns", "http", "disk", "certificate", "mail_flow", "printer_queue", "mfa", "sync"} <= set(CHECKS)


@pytest.mark.parametrize("check", CHECKS)
def test_the_same_question_gets_the_same_answer(check: str) -> None:
    assert run(check, "lt-0042") == run(check, "lt-0042")


@pytest.mark.parametrize("check", CHECKS)
def test_targets_reach_every_outcome_of_a_check(check: str) -> None:
    found = {run(check, target).outcome.id for target in TARGETS}

    assert found == {outcome.id for outcome in sandbox().checks[check].outcomes}


@pytest.mark.parametrize("check", CHECKS)
def test_every_placeholder_is_filled_in(check: str) -> None:
    for target in TARGETS:
        assert not re.search(r"[{}]", str(run(check, target)))


@pytest.mark.parametrize("check", CHECKS)
def test_every_failure_has_an_exact_code(check: str) -> None:
    for outcome in sandbox().checks[check].outcomes:
        assert outcome.code or outcome.verdict != "failed"


@given(st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=80))
def test_any_printable_target_is_answered(target: str) -> None:
    found = run("ping", f" {target} ")

    assert found.target == target
    assert target in found.outcome.summary


def test_spelling_of_check_and_target_does_not_change_the_result() -> None:
    first, second = run("vpn_tunnel", "LT-4711"), run("VPN Tunnel", " lt-4711 ")

    assert str(first) == str(second).replace("lt-", "LT-")


def test_a_check_agrees_with_the_status_of_the_service() -> None:
    assert ": degraded (for 95 minutes): " in status_of("vpn")
    assert run("vpn_tunnel", "vpn.corp.example").outcome.verdict == "warning"
    assert run("http", "login.corp.example").outcome.verdict == "ok"
    assert ": operational: " in status_of("sso")


def test_a_service_is_found_by_id_name_alias_and_host() -> None:
    names = ("email", "Mail and calendar", "OUTLOOK", "mail.corp.example")

    assert {service_named(name) for name in names} == {"email"}


def test_an_unknown_service_is_answered_with_those_that_exist() -> None:
    with pytest.raises(NotFoundError, match=r"unknown service 'coffee'; the services are .*vpn"):
        status_of("coffee")


def test_an_unknown_check_is_answered_with_those_that_exist() -> None:
    with pytest.raises(NotFoundError, match=r"unknown check 'smell'; the checks are .*ping \(reach"):
        run("smell", "lt-1")


@pytest.mark.parametrize("target", ["", "  ", "a\nb", "x" * 201])
def test_an_unusable_target_is_refused(target: str) -> None:
    with pytest.raises(SettingsError, match="`disk` takes: asset tag"):
        run("disk", target)


def test_every_article_that_the_sandbox_names_exists() -> None:
    data = sandbox()
    named = {service.incident.article for service in data.services.values() if service.incident}
    named |= {outcome.article for check in data.checks.values() for outcome in check.outcomes}

    assert named - {None} <= {article.id for article in bundled_articles()}


def test_names_of_the_estate_are_unambiguous() -> None:
    data = sandbox()
    services = [(name, key) for key, one in data.services.items() for name in (key, one.name, *one.aliases, *one.hosts)]
    checks = [(name, key) for key, one in data.checks.items() for name in (key, *one.aliases)]

    for pairs in (services, checks):
        keys = {name.casefold().replace("_", " "): key for name, key in pairs}
        assert all(keys[name.casefold().replace("_", " ")] == key for name, key in pairs)


def test_results_are_labelled_as_sandbox_wherever_they_are_shown() -> None:
    assert status_of().startswith("[sandbox")
    assert str(run("ping", "lt-1")).startswith("[sandbox")


def test_disturbances_come_first_with_workaround_and_article() -> None:
    lines = status_of().splitlines()

    assert "operational" not in lines[1]
    assert "Workaround: " in lines[1]
    assert "operational" in lines[-1]


def test_every_finding_of_an_incident_is_an_outcome_of_its_check() -> None:
    checks = sandbox().checks
    findings = [(name, one.incident.findings) for name, one in sandbox().services.items() if one.incident]

    for name, found in findings:
        for check, outcome in found.items():
            assert outcome in {one.id for one in checks[check].outcomes}, name


@pytest.mark.parametrize("name", ["VPN service", "the vpn", "our VPN service", "mail system"])
def test_a_service_is_known_by_what_people_call_it(name: str) -> None:
    assert service_named(name) in ("vpn", "email")
