from __future__ import annotations

from collections.abc import Iterable

import pytest

from adapters.chat import ChatSettings
from adapters.slack.settings import SlackSettings
from bot.config.settings import Settings, load_settings
from core.model.errors import ConfigurationError
from tests.fakes.door_secrets import LOCKED


def load(monkeypatch: pytest.MonkeyPatch, **variables: str) -> Settings:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return load_settings()


def platforms(chats: Iterable[ChatSettings]) -> list[str]:
    return [chat.platform for chat in chats]


def test_everything_is_optional() -> None:
    settings = load_settings()
    assert (settings.host, settings.port, settings.local) == ("127.0.0.1", 8080, True)
    assert settings.chats == ()
    assert platforms(settings.playgrounds) == ["teams"]


def test_without_a_database_url_all_state_is_in_the_data_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load(monkeypatch, PLUMBLINE_DATA_DIR="/var/lib/plumbline")
    assert settings.database == "sqlite:////var/lib/plumbline/plumbline.sqlite"
    assert settings.workflow_database == "sqlite:////var/lib/plumbline/workflows.sqlite"


def test_a_database_url_is_for_all_state(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load(monkeypatch, PLUMBLINE_DATABASE_URL="postgresql://plumbline@db/plumbline")
    assert settings.database == settings.workflow_database == "postgresql://plumbline@db/plumbline"


def test_an_empty_variable_is_one_that_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load(monkeypatch, PLUMBLINE_PORT="", SLACK_BOT_TOKEN="", PLUMBLINE_WEBHOOK_SECRET="")
    assert settings.port == 8080
    assert settings.chats == ()
    assert settings.webhook_secret is None


def test_the_slack_address_ends_with_a_slash_so_that_methods_can_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (
        load(monkeypatch, SLACK_API_URL="http://127.0.0.1:9/api").chat(SlackSettings).api_url
        == "http://127.0.0.1:9/api/"
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PLUMBLINE_PORT", "eighty"),
        ("PLUMBLINE_PORT", "70000"),
        ("PLUMBLINE_PORT", "-1"),
        ("PLUMBLINE_LOG", "xml"),
        ("PLUMBLINE_PUBLIC_URL", "bot.example"),
        ("PLUMBLINE_PUBLIC_URL", "localhost:8080"),
        ("PLUMBLINE_PUBLIC_URL", "javascript://bot.example"),
        ("PLUMBLINE_PUBLIC_URL", "https://[bot"),
        ("TEAMS_SDK", "neither"),
    ],
)
def test_a_variable_that_cannot_be_used_is_named_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    with pytest.raises(ConfigurationError, match=rf"^Settings in the environment .*: {name}: [^\n]+\.$"):
        load(monkeypatch, **{name: value})


def test_every_variable_that_cannot_be_used_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match=r"PLUMBLINE_PORT: .*; PLUMBLINE_LOG: "):
        load(monkeypatch, PLUMBLINE_PORT="eighty", PLUMBLINE_LOG="xml")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "plumbline.example", "10.0.0.7"])
def test_a_bot_that_others_can_reach_needs_its_doors_locked(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    with pytest.raises(ConfigurationError, match="set PLUMBLINE_WEBHOOK_SECRET and PLUMBLINE_CONSOLE_TOKEN first"):
        load(monkeypatch, PLUMBLINE_HOST=host)


@pytest.mark.parametrize("locked", LOCKED)
def test_one_locked_door_is_not_enough(monkeypatch: pytest.MonkeyPatch, locked: str) -> None:
    (missing,) = LOCKED.keys() - {locked}
    with pytest.raises(ConfigurationError, match=f"set {missing} first"):
        load(monkeypatch, PLUMBLINE_HOST="0.0.0.0", **{locked: LOCKED[locked]})


TEAMS = {"TEAMS_APP_ID": "app", "TEAMS_APP_PASSWORD": "secret"}


@pytest.mark.parametrize(
    "credentials",
    ["TEAMS_APP_PASSWORD", "TEAMS_APP_CERTIFICATE", "AZURE_FEDERATED_TOKEN_FILE", "TEAMS_MANAGED_IDENTITY"],
)
def test_an_app_of_teams_needs_one_kind_of_credentials(monkeypatch: pytest.MonkeyPatch, credentials: str) -> None:
    with pytest.raises(ConfigurationError, match=credentials):
        load(monkeypatch, TEAMS_APP_ID="app", **LOCKED)
    assert platforms(load(monkeypatch, TEAMS_APP_ID="app", **{credentials: "true"}, **LOCKED).chats) == ["teams"]


def test_a_bot_that_others_can_reach_speaks_teams_with_credentials_only(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load(monkeypatch, PLUMBLINE_HOST="0.0.0.0", **LOCKED)
    assert settings.chats == settings.playgrounds == ()
    assert platforms(load(monkeypatch, **TEAMS).chats) == ["teams"]


SLACK = {"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_SIGNING_SECRET": "secret"}
BEHIND_A_PROXY = [
    pytest.param({"PLUMBLINE_PUBLIC_URL": "https://bot.example"}, id="public address"),
    pytest.param(SLACK, id="Slack over HTTP"),
    pytest.param(TEAMS, id="Teams"),
]


@pytest.mark.parametrize("settings", BEHIND_A_PROXY)
def test_a_bot_behind_a_proxy_does_not_start_with_open_doors(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, str]
) -> None:
    with pytest.raises(ConfigurationError, match="set PLUMBLINE_WEBHOOK_SECRET and PLUMBLINE_CONSOLE_TOKEN first"):
        load(monkeypatch, **settings)
    locked = load(monkeypatch, **settings, **LOCKED)
    assert not locked.local
    assert locked.playgrounds == ()


@pytest.mark.parametrize(
    "settings",
    [{"PLUMBLINE_PUBLIC_URL": "http://localhost:8080"}, SLACK | {"SLACK_APP_TOKEN": "xapp-1"}],
    ids=["local address", "Socket Mode"],
)
def test_a_bot_that_nobody_else_can_reach_needs_no_secret(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, str]
) -> None:
    assert load(monkeypatch, **settings).local


def test_an_emulated_slack_leaves_teams_to_the_playground(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load(monkeypatch, SLACK_API_URL="http://127.0.0.1:9/api/", **SLACK, **LOCKED)
    assert platforms(settings.playgrounds) == ["teams"]


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_half_a_slack_is_none(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    with pytest.raises(ConfigurationError, match=r"set SLACK_SIGNING_SECRET .* or SLACK_APP_TOKEN"):
        load(monkeypatch, PLUMBLINE_HOST=host, SLACK_BOT_TOKEN="xoxb-1", **LOCKED)


@pytest.mark.parametrize("other", ["SLACK_SIGNING_SECRET", "SLACK_APP_TOKEN"])
def test_slack_listens_over_http_or_a_socket(monkeypatch: pytest.MonkeyPatch, other: str) -> None:
    settings = load(monkeypatch, SLACK_BOT_TOKEN="xoxb-1", **{other: "secret"}, **LOCKED)
    assert platforms(settings.chats) == ["slack"]


def test_no_secret_shows_when_the_settings_are_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = {
        name: f"hidden-{number}"
        for number, name in enumerate(
            (
                "PLUMBLINE_WEBHOOK_SECRET",
                "PLUMBLINE_CONSOLE_TOKEN",
                "PLUMBLINE_QDRANT_API_KEY",
                "SLACK_BOT_TOKEN",
                "SLACK_SIGNING_SECRET",
                "SLACK_APP_TOKEN",
                "TEAMS_APP_PASSWORD",
                "PLUMBLINE_LLM_API_KEY",
            )
        )
    }
    assert "hidden" not in repr(load(monkeypatch, **secrets))


def test_the_language_model_has_one_address(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load(monkeypatch, PLUMBLINE_LLM_URL=" http://gpu-1:8080/v1/").llm_url == "http://gpu-1:8080/v1"
    assert load_settings(PLUMBLINE_LLM_URL="").llm_url == ""


@pytest.mark.parametrize("value", ["gpu-1:8080", "http://", "ftp://gpu-1"])
def test_a_language_model_without_an_address_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    with pytest.raises(ConfigurationError, match=r"PLUMBLINE_LLM_URL: .*http://HOST:PORT"):
        load(monkeypatch, PLUMBLINE_LLM_URL=value)


@pytest.mark.parametrize("value", ["http://gpu-1:8080,", "http://gpu-1:8080, http://gpu-2:8080/v1"])
def test_several_addresses_of_language_models_are_refused_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    with pytest.raises(ConfigurationError, match=r"PLUMBLINE_LLM_URL: .*load balancer"):
        load(monkeypatch, PLUMBLINE_LLM_URL=value)
