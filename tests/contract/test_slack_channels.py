"""Slack channels over the Web API: what a thread becomes, who may read it, and what is read again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest

from adapters.http import PATIENT
from adapters.slack.client import slack_client
from adapters.sources.slack_history import SlackChannelsSource
from core.model.conversation import PUBLIC
from core.model.document import Document, DocumentKind
from core.model.errors import SourceUnavailable
from core.ports import SourceChanges
from handlers.knowledge import ingest_knowledge as ingestion
from tests.contract.source_worlds.remote import SlackWorld, slack_world
from tests.contract.source_worlds.world import CHANNEL
from tests.fakes.passage_index import FakeEncoderStore, FakePassageIndex
from tests.fakes.slack_history_server import BOT_ID, BOT_USER, TOKEN
from tests.fakes.store import InMemoryStore

ROOT = "1769910000.000100"
DAY = 24 * 60 * 60


@pytest.fixture
async def slack() -> AsyncIterator[SlackWorld]:
    async with slack_world() as world:
        yield world


async def read(slack: SlackWorld, cursor: str = "", known: frozenset[str] = frozenset()) -> list[SourceChanges]:
    return [part async for part in slack.source.changes(cursor, known)]


async def documents(slack: SlackWorld) -> list[Document]:
    return [document for part in await read(slack) for document in part.documents]


def reply(slack: SlackWorld, second: int, text: str, **fields: str) -> None:
    slack.server.post(CHANNEL, f"17699{second:05}.000200", text, "U2", thread=ROOT, **fields)


# --- the first import ------------------------------------------------------------------------------------------------


async def test_a_killed_import_goes_on_where_it_was_and_asks_for_no_thread_twice(
    slack: SlackWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def dying(progress: ingestion.IngestProgress) -> None:
        if progress.source and progress.done == 14:
            raise Killed

    for number in range(20):
        root = f"17699{number:05}.000100"
        slack.server.post(CHANNEL, root, f"Why is build {number} red?")
        slack.server.post(CHANNEL, f"17699{number:05}.000200", "A flaky runner.", "U2", thread=root)
    monkeypatch.setattr(ingestion, "CHECKPOINT", 2)
    store, index, encoders = InMemoryStore(), FakePassageIndex(), FakeEncoderStore()
    with pytest.raises(Killed):
        await ingestion.ingest_knowledge([slack.source], index, encoders, on_progress=dying, store=store)
    (told,) = await store.ingestions.all()
    assert (told.finished_at, told.documents) == (None, 12)  # four whole pages of three
    asked = len(slack.server.asked)
    report = await ingestion.ingest_knowledge([slack.source], index, encoders, store=store)
    assert report.added == 8
    again = [query["ts"] for method, query in slack.server.asked[asked:] if method == "conversations.replies"]
    assert sorted(set(again)) == [f"17699{number:05}.000100" for number in range(8)]
    assert len({point.passage.document_id for point in index.points.values()}) == 20


# --- a thread --------------------------------------------------------------------------------------------------------


async def test_a_thread_is_one_document_with_its_replies_as_they_were_posted(slack: SlackWorld) -> None:
    slack.server.post(CHANNEL, ROOT, "Why is <https://ci.example/7|build 7> red?")
    for second, text in ((30_000, "Third."), (10_000, "First &amp; best."), (20_000, "Second."), (40_000, "Fourth.")):
        reply(slack, second, text)
    (found,) = await documents(slack)
    assert found == Document(
        id=f"docs/{CHANNEL}/{ROOT}",
        source="docs",
        family="chat",
        title="#ci-cd: Why is [build 7](https://ci.example/7) red?",
        text="Message: Why is [build 7](https://ci.example/7) red?\n\nThis message has the following responses:\n\n"
        "First & best.\n\nSecond.\n\nThird.\n\nFourth.",
        kind=DocumentKind.THREAD,
        url="https://marigold.slack.example/archives/C0CICD/p1769910000000100",
        updated_at=datetime.fromtimestamp(1_769_940_000.0002, UTC),
        readers=frozenset({PUBLIC, "channel:slack:C0CICD"}),
        people=(
            ("Asha", "Asha Brandt", "asha.brandt", "asha@marigold.example"),
            ("Mateo", "Mateo Silvestri", "msilvestri"),
        ),
        part_urls=(
            *["https://marigold.slack.example/archives/C0CICD/p1769910000000100"] * 2,
            *(
                f"https://marigold.slack.example/archives/C0CICD/p{second}000200?thread_ts={ROOT}&cid=C0CICD"
                for second in ("1769910000", "1769920000", "1769930000", "1769940000")
            ),
        ),
    )


async def test_ids_become_what_a_person_reads(slack: SlackWorld) -> None:
    text = "<@U2> see <#C0X|deploys>, <!here>, <!subteam^S1|@oncall>, <@U404>, <https://x.example>, a &lt; b"
    slack.server.post(CHANNEL, ROOT, text, files=[{"name": "build.log"}])
    (found,) = await documents(slack)
    said = "@Mateo see #deploys, @here, @oncall, @somebody, https://x.example, a < b\n(attachment: build.log)"
    assert found.text == f"Message: {said}"


async def test_code_stands_between_fences_on_lines_of_their_own(slack: SlackWorld) -> None:
    """Slack sends them at the beginning and at the end of the code's own lines."""
    slack.server.post(CHANNEL, ROOT, "How is a node drained?")
    reply(slack, 10_000, "Run ```kubectl cordon n7\nkubectl drain n7``` and wait.")
    reply(slack, 20_000, "```\nkubectl get pods\n```")
    reply(slack, 30_000, "Nobody closed ```this.")
    (found,) = await documents(slack)
    assert found.text.split("responses:\n\n")[1] == (
        "Run \n```\nkubectl cordon n7\nkubectl drain n7\n```\n and wait.\n\n"
        "```\nkubectl get pods\n```\n\nNobody closed this."
    )


async def test_joins_and_other_events_are_no_documents_and_no_replies(slack: SlackWorld) -> None:
    slack.server.post(CHANNEL, ROOT, "A question?")
    slack.server.post(CHANNEL, "1769910001.000100", "<@U1> has joined", subtype="channel_join")
    reply(slack, 10_000, "changed the topic", subtype="channel_topic")
    reply(slack, 20_000, "An answer.", subtype="thread_broadcast")
    (found,) = await documents(slack)
    assert found.text.endswith("responses:\n\nAn answer.")


async def test_what_a_bot_says_is_a_document_only_if_somebody_answered(slack: SlackWorld) -> None:
    bot: dict[str, Any] = {
        "subtype": "bot_message",
        "bot_id": "B1",
        "attachments": [{"title": "HighLatency", "text": "p95 is 3 s"}],
    }
    slack.server.post(CHANNEL, "1769900000.000100", "", **bot)
    slack.server.post(CHANNEL, ROOT, "", **bot)
    reply(slack, 10_000, "It is the pool.")
    (found,) = await documents(slack)
    assert found.text == (
        "Message: HighLatency\np95 is 3 s\n\nThis message has the following responses:\n\nIt is the pool."
    )


async def test_what_we_said_ourselves_is_not_learned_from(slack: SlackWorld) -> None:
    slack.server.post(CHANNEL, ROOT, "A question?")
    slack.server.post(CHANNEL, "1769910005.000200", "An answer of ours.", BOT_USER, thread=ROOT, bot_id=BOT_ID)
    slack.server.post(CHANNEL, "1769920000.000100", "An alert of ours.", BOT_USER, bot_id=BOT_ID)
    slack.server.post(CHANNEL, "1769920001.000200", "Thanks.", thread="1769920000.000100")
    (found,) = await documents(slack)
    assert found.text == "Message: A question?"


async def test_a_message_that_makes_no_sense_is_left_out_and_the_others_are_read(slack: SlackWorld) -> None:
    slack.server.post(CHANNEL, ROOT, "Good.")
    slack.server.messages[CHANNEL]["1769910001.000100"] = {"ts": "1769910001.000100", "text": {"not": "text"}}
    slack.server.post(CHANNEL, "9" * 18 + ".000100", "Later than any year.")
    assert [document.text for document in await documents(slack)] == ["Message: Good."]


# --- who may read it -------------------------------------------------------------------------------------------------


async def test_a_private_channel_is_read_by_itself_and_its_members(slack: SlackWorld) -> None:
    slack.server.post(CHANNEL, ROOT, "A secret.")
    slack.hide("1")
    (found,) = await documents(slack)
    people = {"person:slack:U1", "person:slack:U2", f"person:slack:{BOT_USER}"}
    assert found.readers == {"channel:slack:C0CICD", *people}


async def test_a_channel_of_a_whole_organisation_is_read_by_itself_and_its_members(slack: SlackWorld) -> None:
    slack.server.post(CHANNEL, ROOT, "Who knows <@U2>?")
    reply(slack, 10010, "I do.")
    slack.server.workspaces = ["T1", "T2"]
    for user, workspace in zip(slack.server.users, ("T1", "T2") * 9, strict=False):
        user["team_id"] = workspace
    (document,) = await documents(slack)
    assert PUBLIC not in document.readers
    assert "<@U2>" not in document.text


async def test_a_channel_is_private_unless_slack_says_that_it_is_not(slack: SlackWorld) -> None:
    slack.server.post(CHANNEL, ROOT, "A secret?")
    del slack.server.channels[CHANNEL]["is_private"]
    (found,) = await documents(slack)
    assert PUBLIC not in found.readers


async def test_who_joins_and_who_leaves_a_private_channel_is_seen(slack: SlackWorld) -> None:
    slack.server.post(CHANNEL, ROOT, "A secret.")
    slack.hide("1")
    cursor = (await read(slack))[-1].cursor
    slack.server.members[CHANNEL] = ["U1", "U9"]
    (found,) = [d for part in await read(slack, cursor, frozenset({f"docs/{CHANNEL}/{ROOT}"})) for d in part.documents]
    assert found.readers == {"channel:slack:C0CICD", "person:slack:U1", "person:slack:U9"}


async def test_direct_messages_are_not_read(slack: SlackWorld) -> None:
    slack.server.channels[CHANNEL]["is_im"] = True
    with pytest.raises(SourceUnavailable, match="direct messages"):
        await read(slack)


# --- what is read again ----------------------------------------------------------------------------------------------


async def changed(slack: SlackWorld, cursor: str, *known: str) -> tuple[list[str], set[str], str]:
    """The texts, the removed ids, and the new cursor."""
    ids = frozenset(f"docs/{CHANNEL}/{ts}" for ts in known)
    parts = await read(slack, cursor, ids)
    texts = [document.text for part in parts for document in part.documents]
    return texts, {each.rpartition("/")[2] for part in parts for each in part.removed_ids}, parts[-1].cursor


async def test_only_threads_in_which_something_happened_are_asked_for_their_replies(slack: SlackWorld) -> None:
    for day in range(5):
        slack.server.post(CHANNEL, f"176990000{day}.000100", f"Question {day}?")
        slack.server.post(CHANNEL, f"176990000{day}.000200", "Answer.", thread=f"176990000{day}.000100")
    cursor = (await read(slack))[-1].cursor
    slack.server.refusals.requests.clear()
    now = f"{slack.clock.now().timestamp():.6f}"
    slack.server.post(CHANNEL, now, "Another answer.", thread="1769900003.000100")
    texts, removed, _ = await changed(slack, cursor, *(f"176990000{day}.000100" for day in range(5)))
    assert [text.splitlines()[0] for text in texts] == ["Message: Question 3?"]
    assert removed == set()
    asked = [request for request in slack.server.refusals.requests if "replies" in request]
    assert asked
    assert all("ts=1769900003.000100" in request for request in asked)


async def test_an_edit_or_a_deletion_of_a_reply_is_seen_within_a_week(slack: SlackWorld) -> None:
    slack.server.post(CHANNEL, ROOT, "A question?")
    reply(slack, 10_000, "First.")
    reply(slack, 20_000, "Wrong.")
    cursor = (await read(slack))[-1].cursor
    slack.server.delete(CHANNEL, "1769920000.000200")
    slack.clock.advance(2 * DAY)
    assert (await changed(slack, cursor, ROOT))[0] == []
    slack.clock.advance(5 * DAY)
    texts, _, _ = await changed(slack, cursor, ROOT)
    assert texts == ["Message: A question?\n\nThis message has the following responses:\n\nFirst."]


async def test_a_deleted_question_is_gone_and_its_replies_are_a_thread(slack: SlackWorld) -> None:
    slack.server.post(CHANNEL, ROOT, "A question?")
    reply(slack, 10_000, "First.")
    cursor = (await read(slack))[-1].cursor
    slack.server.delete(CHANNEL, ROOT)
    assert (await changed(slack, cursor, ROOT))[:2] == (["Message: First."], set())


async def test_a_channel_that_is_no_longer_wanted_goes(slack: SlackWorld) -> None:
    parts = await read(slack, "", frozenset({"docs/C0OLD/1769910000.000100"}))
    assert parts[-1].removed_ids == {"docs/C0OLD/1769910000.000100"}


async def test_a_channel_that_refuses_keeps_no_other_from_being_read(slack: SlackWorld) -> None:
    slack.server.post(CHANNEL, ROOT, "A question?")
    slack.server.channel("C0LEFT", "left")
    slack.server.channels["C0LEFT"]["is_member"] = False
    async with aiohttp.ClientSession() as session:
        client = slack_client(TOKEN, slack.server.url, session, PATIENT, only_reads=True)
        source = SlackChannelsSource("docs", client, ["C0GONE", "C0LEFT", CHANNEL], slack.clock)
        reading = source.changes("", frozenset({"docs/C0LEFT/1769910000.000100"}))
        parts = [await anext(reading), await anext(reading)]
        with pytest.raises(SourceUnavailable, match=r"C0GONE.*channel_not_found.*C0LEFT.*invite the bot"):
            await anext(reading)
    assert [document.text for part in parts for document in part.documents] == ["Message: A question?"]
    assert [part.removed_ids for part in parts] == [frozenset(), frozenset()]


async def test_what_was_read_in_a_channel_that_slack_no_longer_shows_goes(slack: SlackWorld) -> None:
    """It was deleted, or made private without us: nobody is known who still may read it."""
    slack.server.post(CHANNEL, ROOT, "A question?")
    cursor = (await read(slack))[-1].cursor
    channel = slack.server.channels.pop(CHANNEL)
    known, parts = frozenset({f"docs/{CHANNEL}/{ROOT}"}), list[SourceChanges]()

    async def collect() -> None:
        async for part in slack.source.changes(cursor, known):
            parts.append(part)

    with pytest.raises(SourceUnavailable, match="channel_not_found"):
        await collect()
    assert frozenset[str]().union(*(part.removed_ids for part in parts)) == known
    slack.server.channels[CHANNEL] = channel
    again = [document.id for part in await read(slack, parts[-1].cursor) for document in part.documents]
    assert again == [f"docs/{CHANNEL}/{ROOT}"]
