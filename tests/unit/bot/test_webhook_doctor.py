from __future__ import annotations

from collections.abc import Mapping

import pytest

from adapters.alerts.generic import GenericSection
from adapters.chat import CheckResult
from bot.commands.doctor import check_access, check_agent, check_webhooks
from bot.config.section import FORMATS
from bot.config.settings import Settings
from bot.config.workspace import AgentSection

LONG = "a-secret-that-nobody-guesses"
OWN = {"pagerduty": GenericSection(secret_env="PAGERDUTY_WEBHOOK_SECRET")}


def found(webhooks: Mapping[str, GenericSection], secret: str = "") -> list[CheckResult]:
    return list(check_webhooks(Settings.model_validate({"PLUMBLINE_WEBHOOK_SECRET": secret or None}), webhooks))


def test_a_secret_that_the_environment_does_not_hold_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PAGERDUTY_WEBHOOK_SECRET", raising=False)
    (finding,) = found(OWN, LONG)
    assert finding.fatal
    assert "webhooks.pagerduty needs PAGERDUTY_WEBHOOK_SECRET" in finding.remedy


def test_a_path_that_is_none_is_found() -> None:
    (finding,) = found({"generic": GenericSection(title=("$.[",))}, LONG)
    assert finding.fatal
    assert "JSONPath" in finding.remedy


def test_a_secret_that_can_be_guessed_is_found_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGERDUTY_WEBHOOK_SECRET", "hunter2")
    weak, well = found(OWN, LONG)
    assert (weak.result, weak.fatal) == ("the secret of pagerduty has 7 characters", False)
    assert "hunter2" not in str(weak)
    assert well.well


def test_a_door_without_a_secret_is_found() -> None:
    (finding,) = found({})
    assert (finding.result, finding.fatal) == ("open to this machine", False)


def test_secrets_that_are_there_are_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGERDUTY_WEBHOOK_SECRET", LONG)
    (finding,) = found(OWN, LONG)
    assert finding.well
    assert (
        finding.result == f"{len(FORMATS.all()) - 1} sources, 1 with a secret of their own"
    )  # all but that of any JSON


def test_open_doors_of_a_bot_behind_a_proxy_are_fatal() -> None:
    finding = check_access(Settings.model_validate({"PLUMBLINE_PUBLIC_URL": "https://bot.example"}))
    assert finding.fatal
    assert not finding.well
    assert "because of PLUMBLINE_PUBLIC_URL" in finding.remedy


def test_open_doors_of_a_local_bot_are_a_warning_about_proxies() -> None:
    finding = check_access(Settings.model_validate({"PLUMBLINE_WEBHOOK_SECRET": LONG}))
    assert (finding.well, finding.fatal) == (False, False)
    assert finding.result.startswith("the local page require")
    assert "proxy" in finding.remedy


def test_locked_doors_are_well() -> None:
    secrets = {"PLUMBLINE_WEBHOOK_SECRET": LONG, "PLUMBLINE_CONSOLE_TOKEN": LONG}
    assert check_access(Settings.model_validate(secrets | {"PLUMBLINE_PUBLIC_URL": "https://bot.example"})).well


@pytest.mark.parametrize(("token", "well", "fatal"), [(LONG, True, True), ("hunter2", False, False), ("", False, True)])
def test_a_token_of_an_agent_must_be_set_and_long_enough(
    monkeypatch: pytest.MonkeyPatch, token: str, well: bool, fatal: bool
) -> None:
    monkeypatch.setenv("EDITOR_TOKEN", token)
    finding = check_agent(AgentSection(name="editor", token_env="EDITOR_TOKEN"))
    assert (finding.well, finding.fatal) == (well, fatal)
    assert "hunter2" not in str(finding)
