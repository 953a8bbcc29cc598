from __future__ import annotations

from dataclasses import replace

import pytest

from core.model.conversation import MessageReference, Place, Platform
from core.model.incident import Incident, Stage
from core.model.messages import Notice
from handlers.common.post_message import Poster
from handlers.incidents.present_incident import link_postmortem
from tests.fakes.messenger import RecordingMessenger
from tests.fakes.ports import some_ports
from tests.fakes.store import InMemoryStore
from tests.samples import explained_incident, resolved_incident

MESSAGE = MessageReference(Place(Platform.SLACK, "C0INC"), "77")
RESOLVED = replace(resolved_incident().with_placement(message=MESSAGE), id="i 1")


async def notices(incident: Incident, public_url: str = "", times: int = 1) -> list[Notice]:
    store, chat = InMemoryStore(), RecordingMessenger()
    store.incidents.by_id[incident.id] = incident
    poster = Poster(store, {Platform.SLACK: chat})
    for _ in range(times):
        await link_postmortem(incident, some_ports(store=store, poster=poster, public_url=public_url))
    messages = list(chat.standing.values())
    assert all(isinstance(message, Notice) for message in messages)
    return [message for message in messages if isinstance(message, Notice)]


async def test_the_thread_gets_one_link_to_the_draft() -> None:
    (notice,) = await notices(RESOLVED, "https://plumbline.example/", times=3)
    assert notice.text.endswith("https://plumbline.example/incidents/i%201/postmortem")
    assert notice.links == ("https://plumbline.example/incidents/i%201/postmortem",)


async def test_without_a_public_address_the_page_is_named_and_not_linked() -> None:
    (notice,) = await notices(RESOLVED)
    assert notice.text.endswith(" /incidents/i%201/postmortem")
    assert not any(notice.links)


@pytest.mark.parametrize(
    "incident",
    [
        explained_incident(message=MESSAGE),
        RESOLVED.with_findings(explanation=None, owner=None),
        replace(RESOLVED, stage=Stage.EXPLAINING),
        RESOLVED.with_placement(message=None),
    ],
    ids=["open", "nothing found", "not looked into yet", "not posted"],
)
async def test_nothing_is_said_while_there_is_nothing_to_say(incident: Incident) -> None:
    assert await notices(incident) == []
