"""The app manifest asks for what the code needs, and for nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapters.slack import inbound
from adapters.slack.client import slack_client
from adapters.slack.doctor import COMMANDS, EVENTS, SCOPES, SHORTCUTS, missing_in
from adapters.slack.inbound import SlackInbound
from handlers.questions.doors import AskInForm
from tests.cases import every_case
from tests.fakes.clock import FakeClock
from tests.fakes.inbox import FakeInbox
from tests.fakes.ports import some_ports
from tests.fakes.slack_bot import CHANNELS, TEAMS
from tests.fakes.store import InMemoryStore

ROOT = Path(__file__).parents[2]
MANIFEST: dict[str, Any] = yaml.safe_load((ROOT / "deploy/slack/manifest.yaml").read_text())
TEXT = (ROOT / "deploy/slack/manifest.yaml").read_text()

READ = {"channels:read", "groups:read", "im:read", "mpim:read"}
HISTORY = {"channels:history", "groups:history", "im:history", "mpim:history"}

# The scopes of each method that is called, as https://docs.slack.dev/reference/methods gives them.
METHODS: dict[str, set[str]] = {
    "assistant.threads.setSuggestedPrompts": {"assistant:write"},
    "auth.teams.list": set(),
    "auth.test": set(),
    "chat.delete": {"chat:write"},
    "chat.getPermalink": set(),
    "chat.postEphemeral": {"chat:write"},
    "chat.postMessage": {"chat:write"},
    "chat.update": {"chat:write"},
    "conversations.history": HISTORY,
    "conversations.info": READ,
    "conversations.members": READ,
    "conversations.replies": HISTORY,
    "users.info": {"users:read"},
    "users.list": {"users:read"},
    "views.open": set(),
    "views.publish": set(),
}

# The scopes of each event, as https://docs.slack.dev/reference/events gives them.
OF_EVENTS: dict[str, set[str]] = {
    "app_context_changed": {"assistant:write"},
    "app_home_opened": set(),
    "app_mention": {"app_mentions:read"},
    "message.channels": {"channels:history"},
    "message.groups": {"groups:history"},
    "message.im": {"im:history"},
    "message.mpim": {"mpim:history"},
    "reaction_added": {"reactions:read"},
    "reaction_removed": {"reactions:read"},
}


class Overheard:
    """Notes what listeners are added for."""

    def __init__(self, **_: Any) -> None:
        self.heard: dict[str, list[Any]] = {}
        heard_apps.append(self)

    def __getattr__(self, kind: str) -> Callable[[Any], Callable[[Any], Any]]:
        def listen(what: Any) -> Callable[[Any], Any]:
            self.heard.setdefault(kind, []).append(what)
            return lambda listener: listener

        return listen


heard_apps: list[Overheard] = []


@pytest.fixture
async def heard(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Any]]:
    """What the code listens to: kind → names."""
    monkeypatch.setattr(inbound, "AsyncApp", Overheard)
    heard_apps.clear()
    store = InMemoryStore()
    SlackInbound(
        client=slack_client("xoxb-none", "http://127.0.0.1:9/"),
        signing_secret="none",
        app_token=None,
        channels=(),
        inbox=FakeInbox(),
        forms=AskInForm(some_ports(store=store, teams=TEAMS, channels=CHANNELS)),
        home_of=_no_home,
        examples=(),
        clock=FakeClock(),
    )
    return heard_apps[0].heard


async def _no_home(*_: Any) -> Any:
    raise AssertionError("nobody opens a page here")


async def test_it_subscribes_to_what_is_listened_to(heard: dict[str, list[Any]]) -> None:
    events = set(MANIFEST["settings"]["event_subscriptions"]["bot_events"])
    of_agents = {"app_context_changed"}  # Slack wants it with `agent_view`; it is acknowledged and ignored
    assert {event.partition(".")[0] for event in events} - of_agents == set(heard["event"])
    assert events == EVENTS
    assert events == OF_EVENTS.keys()


async def test_it_offers_the_commands_and_shortcuts_that_are_listened_to(heard: dict[str, list[Any]]) -> None:
    features = MANIFEST["features"]
    assert {each["command"] for each in features["slash_commands"]} == set(heard["command"]) == COMMANDS
    shortcuts = {each["callback_id"] for each in features["shortcuts"] if each["type"] == "message"}
    assert shortcuts == set(heard["message_shortcut"]) == SHORTCUTS
    assert features["app_home"]["home_tab_enabled"]
    assert MANIFEST["settings"]["interactivity"]["is_enabled"]


def test_it_asks_for_the_scopes_of_what_is_called_and_listened_to_and_for_no_other() -> None:
    families = "|".join({method.partition(".")[0] for method in METHODS})
    called = {
        method
        for module in (ROOT / "adapters/slack").glob("*.py")
        for method in re.findall(rf'"((?:{families})\.[a-zA-Z.]+)"', module.read_text())
    }
    assert called == METHODS.keys()
    needed = set().union(
        *METHODS.values(), *OF_EVENTS.values(), {"commands", "files:read"}
    )  # files are read at their address
    assert set(MANIFEST["oauth_config"]["scopes"]["bot"]) == needed == SCOPES.keys()


def test_it_says_what_each_scope_is_for() -> None:
    told = dict(re.findall(r"^ +- ([a-z_]+:[a-z]+|commands) # (.+)$", TEXT, re.MULTILINE))
    assert told == SCOPES


def test_the_one_for_socket_mode_asks_for_the_same_without_an_address() -> None:
    text = (ROOT / "deploy/slack/manifest-socket.yaml").read_text()
    lines = [line for line in TEXT.splitlines() if "YOUR-HOST" not in line and not line.startswith("#")]
    expected = "\n".join(lines).replace("socket_mode_enabled: false", "socket_mode_enabled: true")
    assert text.partition("\n")[2].strip() == expected.strip()
    assert missing_in(yaml.safe_load(text)) == set()


def test_neither_tokens_that_expire_nor_an_organisation_are_asked_for() -> None:
    settings = MANIFEST["settings"]
    assert (settings["token_rotation_enabled"], settings["org_deploy_enabled"]) == (False, False)


def test_the_doctor_finds_nothing_missing_in_it() -> None:
    assert missing_in(MANIFEST) == set()


@every_case(
    ("path", "said"),
    [
        (("settings", "event_subscriptions", "bot_events"), "event message.im"),
        (("features", "slash_commands"), "command /plumbline"),
        (("features", "shortcuts"), "shortcut ask_about_message"),
        (("features", "app_home"), "the home tab"),
        (("settings", "interactivity"), "interactivity"),
    ],
)
def test_the_doctor_finds_what_another_one_lacks(path: tuple[str, ...], said: str) -> None:
    *parents, last = path
    manifest: dict[str, Any] = yaml.safe_load(TEXT)
    part = manifest
    for parent in parents:
        part = part[parent]
    del part[last]
    assert said in missing_in(manifest)


def test_it_has_the_limits_of_a_manifest() -> None:
    assert len(MANIFEST["display_information"]["name"]) <= 35
    assert len(MANIFEST["display_information"]["description"]) <= 140
    assert len(MANIFEST["features"]["agent_view"]["agent_description"]) <= 300
    (shortcut,) = MANIFEST["features"]["shortcuts"]
    assert len(shortcut["name"]) <= 24
    assert len(shortcut["description"]) <= 150
    assert {url for url in re.findall(r"https://\S+", TEXT) if "YOUR-HOST" in url} == {"https://YOUR-HOST/slack/events"}
