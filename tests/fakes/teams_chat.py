"""Teams for the messenger contract."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from adapters.teams.activity import THREAD_SEPARATOR
from adapters.teams.messenger import SdkName, TeamsMessenger
from core.model.conversation import MessageReference, Person, Place, Platform
from tests.fakes.adaptive_card import texts
from tests.fakes.teams_adapter import open_teams
from tests.fakes.teams_connector import CHANNEL, MEMBER, TENANT, Failure, TeamsConnector


class TeamsChat:
    """Implements `tests.fakes.chats.Chat`."""

    targets = True
    place = Place(Platform.TEAMS, CHANNEL, workspace=TENANT)
    member = Person(Platform.TEAMS, MEMBER["aadObjectId"])

    def __init__(self, connector: TeamsConnector, messenger: TeamsMessenger, successor: TeamsMessenger) -> None:
        self.messenger = messenger
        self.successor = successor
        self._connector = connector

    @property
    def finds(self) -> bool:
        return self._connector.graph.consented

    def shown(self, reference: MessageReference) -> str:
        return "\n".join(texts(self._connector.messages[reference.message_id].card))

    def count(self) -> int:
        return len(self._connector.messages)

    def only_for(self, reference: MessageReference) -> str | None:
        only = self._connector.messages[reference.message_id].only_for
        return self.member.id if only == MEMBER["id"] else only or None

    def thread_of(self, reference: MessageReference) -> str | None:
        return self._connector.messages[reference.message_id].conversation.partition(THREAD_SEPARATOR)[2] or None

    async def delete(self, reference: MessageReference) -> None:
        self._connector.delete(reference.message_id)

    def break_down(self) -> None:
        self._connector.failures = [Failure(503)]

    def ask_to_wait(self, seconds: int) -> None:
        self._connector.failures = [Failure(429, {"Retry-After": str(seconds)})]


@asynccontextmanager
async def teams_chat(sdk: SdkName, *, consented: bool) -> AsyncIterator[TeamsChat]:
    async with open_teams(sdk) as adapter:
        adapter.connector.graph.consented = consented
        await adapter.deliver(adapter.connector.activity(type="installationUpdate", action="add"))
        yield TeamsChat(adapter.connector, adapter.messenger, adapter.new_messenger())
