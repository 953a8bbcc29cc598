"""Where a post links the incidents that it names."""

from __future__ import annotations

import pytest

from core.incidents.handover import PostLine
from core.model.conversation import Channel, MessageReference, Place, Platform, channel_audience
from core.model.incident import Incident
from core.model.messages import Notice
from core.ports import Messenger
from handlers.common.post_message import Poster
from handlers.common.stored_incident import intent_at
from handlers.incidents.post_handover import linked_notice
from tests.fakes.messenger import RecordingMessenger
from tests.fakes.ports import some_ports
from tests.fakes.store import InMemoryStore
from tests.samples import incident, with_fields

CHANNELS = (
    Channel("ops", {Platform.SLACK: "C1"}),
    Channel("all", {Platform.SLACK: "C2"}),
    Channel("secret", {Platform.SLACK: "C3"}, private=True),
    Channel("teams", {Platform.TEAMS: "19:t"}),
)
OPS, ALL, SECRET = (Place(Platform.SLACK, channel) for channel in ("C1", "C2", "C3"))
LINES = [PostLine("Open:", count=0), PostLine("• Till is down", "i1"), PostLine("• and 2 more", count=2, has_more=True)]


@pytest.fixture
def store() -> InMemoryStore:
    return InMemoryStore()


async def links(named: Incident, place: Place, store: InMemoryStore, public_url: str = "") -> list[str]:
    chats: dict[Platform, Messenger] = dict.fromkeys((Platform.SLACK, Platform.TEAMS), RecordingMessenger())
    wired = some_ports(store=store, channels=CHANNELS, poster=Poster(store, chats), public_url=public_url)
    notice = await linked_notice(LINES, [named], place, channel_audience(place, CHANNELS), wired)
    assert notice == Notice("Open:\n• Till is down\n• and 2 more", links=notice.links)
    return list(notice.links)


def posted(place: Place, **fields: object) -> Incident:
    return with_fields(incident(id="i1"), place=place, message=MessageReference(place, "7"), **fields)


async def test_an_incident_is_linked_to_its_message_and_what_is_left_out_to_the_page(store: InMemoryStore) -> None:
    named = posted(OPS)
    assert await links(named, OPS, store) == ["", "https://chat.example/7", ""]
    assert await links(named, ALL, store) == ["", "https://chat.example/7", ""]
    page = await links(named, OPS, store, "https://plumbline.example/")
    assert page == ["", "https://chat.example/7", "https://plumbline.example/incidents"]


async def test_a_message_that_the_readers_cannot_open_is_not_linked(store: InMemoryStore) -> None:
    for named, place in ((posted(SECRET, also_in=(ALL,)), OPS), (posted(OPS), Place(Platform.TEAMS, "19:t"))):
        assert await links(named, place, store) == ["", "", ""]
        (_, page, _) = await links(named, place, store, "https://plumbline.example")
        assert page == "https://plumbline.example/incidents/i1"


async def test_the_copy_in_the_same_channel_is_linked_and_not_the_message_of_a_private_one(
    store: InMemoryStore,
) -> None:
    intent = intent_at(ALL, posted(SECRET, also_in=(ALL,)))
    async with store.transaction() as transaction:
        await transaction.posts.intend(intent, ALL)
        await transaction.posts.posted(intent, MessageReference(ALL, "9"), "")
    assert await links(posted(SECRET, also_in=(ALL,)), ALL, store) == ["", "https://chat.example/9", ""]
    assert await links(posted(SECRET, also_in=(ALL,)), SECRET, store) == ["", "https://chat.example/7", ""]
