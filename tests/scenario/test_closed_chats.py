"""A chat takes no messages until somebody mends it: an incident is then told of once, as it is by then, without a command."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from adapters.slack.client import REMEDIES, slack_client
from adapters.slack.messenger import SlackMessenger
from core.model.conversation import Place, Platform
from core.model.errors import Undeliverable
from core.model.messages import Notice
from core.ports import Messenger
from handlers.common.ports import Ports
from handlers.common.post_message import Poster
from handlers.incidents.present_incident import update_chats
from handlers.questions.closed_chats import find_closed_chats, redeliver_waiting
from tests.fakes import slack_api, teams_connector
from tests.fakes.ports import some_ports
from tests.fakes.slack_api import BOT_TOKEN, FakeSlack
from tests.fakes.store import InMemoryStore
from tests.fakes.teams_adapter import open_teams
from tests.fakes.teams_connector import Failure, TeamsConnector
from tests.samples import explained_incident

INCIDENT = "closed"
TITLE = "What is known by then"
# Of a secret, of a certificate, of an app registration that was disabled, and of one that was deleted.
REVOKED = {
    "AADSTS7000222": "The provided client secret keys for app are expired. See the portal.",
    "AADSTS700027": "The certificate with identifier used to sign the client assertion is not registered.",
    "AADSTS7000112": "Application is disabled.",
    "AADSTS700016": "Application was not found in the directory.",
}


@dataclass
class BrokenChat:
    """A chat that is broken in one way, and can be mended. `texts` returns the messages in it, without their threads."""

    place: Place
    messenger: Messenger
    reason: str
    mend: Callable[[], None]
    shut: Callable[[], None]
    texts: Callable[[], list[str]]

    def __post_init__(self) -> None:
        self.store = InMemoryStore()

    @property
    def ports(self) -> Ports:
        return some_ports(store=self.store, poster=Poster(self.store, {self.place.platform: self.messenger}))

    async def save(self, title: str) -> None:
        incident = explained_incident(id=INCIDENT, group_key=INCIDENT, revision=1, message=None, place=self.place)
        async with self.store.transaction() as transaction:
            stored = await transaction.incidents.get(INCIDENT)
            revision = stored.revision + 1 if stored else 1
            await transaction.incidents.save(replace(stored or incident, title=title, revision=revision))


def _refusing(slack: FakeSlack, error: str) -> None:
    for method in ("chat.postMessage", "chat.update"):
        slack.refuse(200, json.dumps({"ok": False, "error": error}), method=method, times=99)


IN_TEAMS: dict[str, Failure | tuple[int, dict[str, Any]]] = {
    "HTTP 401": Failure(401),
    "BotNotInConversationRoster": Failure(403, body='{"error": {"message": "BotNotInConversationRoster"}}'),
    "no such conversation": Failure(404, body='{"error": {"code": "ConversationNotFound"}}'),
    "TeamArchived": Failure(403, body='{"error": {"code": "Forbidden", "message": "TeamArchived"}}'),
    **{
        number: (401, {"error": "invalid_client", "error_description": f"{number}: {words}\r\nTrace ID: 1"})
        for number, words in REVOKED.items()
    },
}
NEVER_MET = "Teams has not told yet where"


@pytest.fixture(
    params=[*(f"slack: {each}" for each in REMEDIES), *(f"teams: {each}" for each in (*IN_TEAMS, NEVER_MET))]
)
async def chat(request: pytest.FixtureRequest) -> AsyncIterator[BrokenChat]:
    platform, _, way = request.param.partition(": ")
    if platform == "slack":
        async with FakeSlack() as slack:
            yield BrokenChat(
                Place(Platform.SLACK, slack_api.CHANNEL),
                SlackMessenger(slack_client(BOT_TOKEN, slack.url)),
                way,
                slack.refusals.clear,
                lambda: _refusing(slack, way),
                lambda: [json.dumps(each) for each in slack.messages if "thread_ts" not in each],
            )
        return
    async with open_teams("builtin") as teams:
        connector = teams.connector
        await teams.deliver(connector.activity(type="typing"))
        addresses = dict(teams.references.stored)
        yield BrokenChat(
            Place(Platform.TEAMS, teams_connector.CHANNEL, None, teams_connector.TENANT),
            teams.messenger,
            way,
            lambda: teams.references.stored.update(addresses) if way == NEVER_MET else _mended(connector),
            lambda: teams.references.stored.clear() if way == NEVER_MET else _shut(connector, IN_TEAMS[way]),
            lambda: [json.dumps(each.activity) for each in connector.messages.values() if ";" not in each.conversation],
        )


def _shut(connector: TeamsConnector, way: Failure | tuple[int, dict[str, Any]]) -> None:
    if isinstance(way, Failure):
        connector.failures = [way] * 99
    else:
        connector.token_answer = way
        connector.failures = [Failure(401)] * 99  # a token that was issued before


def _mended(connector: TeamsConnector) -> None:
    connector.failures.clear()
    connector.token_answer = (200, {"access_token": "token-2", "expires_in": 3600})


async def test_an_incident_is_posted_once_when_the_chat_is_mended_as_it_is_by_then(chat: BrokenChat) -> None:
    await chat.save("What was known at first")
    chat.shut()
    for _ in range(2):  # every step of an investigation, which goes on
        with pytest.raises(Undeliverable):
            await update_chats(INCIDENT, chat.ports)
    (told,) = await find_closed_chats(chat.store)
    assert chat.reason in told
    assert "1 channel since" in told
    assert "1 message" in told
    await redeliver_waiting(chat.ports)
    assert [each.partition(". ")[0] for each in await find_closed_chats(chat.store)] == [told.partition(". ")[0]]
    assert chat.texts() == []
    await chat.save(TITLE)
    chat.mend()
    for _ in range(3):
        await redeliver_waiting(chat.ports)
    assert await find_closed_chats(chat.store) == []
    assert len([text for text in chat.texts() if TITLE in text]) == 1
    assert not [text for text in chat.texts() if "known at first" in text]


async def test_an_edit_that_was_refused_is_made_when_the_chat_is_mended(chat: BrokenChat) -> None:
    if chat.reason == "no such conversation":
        pytest.skip("a message that is gone is posted anew")
    await chat.save("What was known at first")
    await update_chats(INCIDENT, chat.ports)
    chat.shut()
    await chat.save("What was known later")
    with pytest.raises(Undeliverable):
        await update_chats(INCIDENT, chat.ports)
    assert len(await find_closed_chats(chat.store)) == 1
    await chat.save(TITLE)
    chat.mend()
    await redeliver_waiting(chat.ports)
    assert await find_closed_chats(chat.store) == []
    assert len([text for text in chat.texts() if TITLE in text]) == 1


async def test_what_was_said_last_is_posted_and_all_that_waits_in_a_channel(chat: BrokenChat) -> None:
    chat.shut()
    for intent, text in (("answer:1", "Reading …"), ("answer:1", "The answer"), ("answer:2", "Another")):
        with pytest.raises(Undeliverable):
            await chat.ports.poster.post_or_edit(intent, chat.place, Notice(text), text)
    chat.mend()
    await redeliver_waiting(chat.ports)
    async with chat.store.transaction() as transaction:
        waiting = [letter.intent for letter in await transaction.dead_letters.waiting()]
    assert waiting == ["answer:2"], "the first shows that the chat is mended, the others follow as tasks"
    assert [text for text in chat.texts() if "The answer" in text]
    assert not [text for text in chat.texts() if "Reading" in text]


async def test_a_token_that_teams_refuses_once_is_renewed_and_the_message_posted_at_once() -> None:
    async with open_teams("builtin") as teams:
        await teams.deliver(teams.connector.activity(type="typing"))
        place = Place(Platform.TEAMS, teams_connector.CHANNEL, None, teams_connector.TENANT)
        await teams.messenger.post(place, Notice("one"), "one")
        before = teams.connector.tokens_issued
        teams.connector.failures = [Failure(401)]
        teams.connector.token_answer = (200, {"access_token": "token-2", "expires_in": 3600})
        await teams.messenger.post(place, Notice("two"), "two")
        assert teams.connector.tokens_issued == before + 1
        assert [sent.authorization for sent in teams.connector.sent] == ["Bearer token-1", "Bearer token-2"]
