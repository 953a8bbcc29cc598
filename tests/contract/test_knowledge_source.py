"""The contract that KnowledgeSource and ChangingSource share, over every source, through the ingestion that reads them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import chain, count
from pathlib import Path

import pytest

from core.model.conversation import PUBLIC
from core.model.document import Passage
from core.model.errors import SourceUnavailable
from core.ports import ChangingSource, CheckedSource
from handlers.knowledge import ingest_knowledge as module
from handlers.knowledge.ingest_knowledge import IngestReport, ingest_knowledge
from tests.cases import every_case
from tests.contract.source_worlds.kinds import LOCAL, REMOTE, STRUCK, world
from tests.contract.source_worlds.world import RemoteWorld, World
from tests.fakes.passage_index import FakeEncoderStore, FakePassageIndex
from tests.fakes.store import InMemoryStore

KEYS = "123456789"
EVERYBODY = frozenset({PUBLIC})


class Reader:
    """Reads one source again and again, as the nightly ingestion does."""

    def __init__(self, source_world: World) -> None:
        self.world = source_world
        self.index = FakePassageIndex()
        self.encoders = FakeEncoderStore()
        self.store = InMemoryStore()

    async def read(self) -> IngestReport:
        return await ingest_knowledge([self.world.source], self.index, self.encoders, store=self.store)

    def passages(self) -> list[Passage]:
        return [point.passage for point in self.index.points.values()]

    def holds(self, text: str) -> bool:
        return any(text in passage.text for passage in self.passages())

    async def public(self, text: str) -> bool:
        """Whether everybody may read a passage with this text."""
        return any(text in passage.text and not passage.readers.isdisjoint(EVERYBODY) for passage in self.passages())


@pytest.fixture(params=[*LOCAL, *REMOTE])
async def reader(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Reader]:
    async with world(request.param, tmp_path) as found:
        for key in KEYS:
            found.write(key, f"The word of {key} is heliotrope{key}.")
        yield Reader(found)


def breaks() -> Iterator[int]:
    """After how many answers a server breaks: the first ones all, the later ones, of which some have dozens, by fives."""
    return chain(range(9), count(9, 5))


@asynccontextmanager
async def remote_world_of(kind: str) -> AsyncIterator[tuple[Reader, RemoteWorld]]:
    async with REMOTE[kind]() as found:
        for key in KEYS:
            found.write(key, f"The word of {key} is heliotrope{key}.")
        yield Reader(found), found


@pytest.fixture(params=REMOTE)
async def remote(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Reader, RemoteWorld]]:
    async with remote_world_of(request.param) as found:
        yield found


# --- every source ----------------------------------------------------------------------------------------------------


async def test_every_document_is_read_once_and_named_after_its_source(reader: Reader) -> None:
    report = await reader.read()
    assert report == IngestReport(added=9)
    assert all(reader.holds(f"heliotrope{key}") for key in KEYS)
    ids = [passage.document_id for passage in reader.passages()]
    assert len(set(ids)) == 9
    assert all(document_id.startswith("docs/") for document_id in ids)
    assert all(passage.title and passage.readers for passage in reader.passages())


async def test_what_did_not_change_is_not_written_again(reader: Reader) -> None:
    await reader.read()
    before = dict(reader.index.points)
    report = await reader.read()
    assert (report.added, report.changed, report.removed) == (0, 0, 0)
    assert all(reader.index.points[key] is point for key, point in before.items())


async def test_a_change_and_a_new_document_are_seen(reader: Reader) -> None:
    await reader.read()
    reader.world.write("3", "The word is amaranth now.")
    reader.world.write("0", "A new one: celadon.")
    report = await reader.read()
    assert (report.added, report.changed, report.removed) == (1, 1, 0)
    assert reader.holds("amaranth")
    assert reader.holds("celadon")
    assert not reader.holds("heliotrope3")


@pytest.mark.parametrize("kind", [*LOCAL, *REMOTE])
async def test_text_that_is_struck_out_is_left_out_whatever_the_source(kind: str, tmp_path: Path) -> None:
    async with world(kind, tmp_path) as found:
        found.write("1", f"Wait. {STRUCK[kind].format('Run seatctl amaranth.')} Look into ~/.seatctl, ~5 min.")
        reader = Reader(found)
        await reader.read()
    assert reader.holds("Wait. Look into ~/.seatctl, ~5 min.")
    assert not reader.holds("amaranth")


async def test_a_deletion_is_seen(reader: Reader) -> None:
    await reader.read()
    reader.world.remove("4")
    report = await reader.read()
    assert (report.added, report.changed, report.removed) == (0, 0, 1)
    assert not reader.holds("heliotrope4")
    assert reader.holds("heliotrope5")


async def test_the_first_the_last_and_all_documents_can_go(reader: Reader) -> None:
    await reader.read()
    reader.world.remove("1")
    reader.world.remove("9")
    assert (await reader.read()).removed == 2
    for key in "2345678":
        reader.world.write(key, "")
    reader.world.write("2", "Only this one is left: indigo.")
    await reader.read()
    assert reader.holds("indigo")
    assert not reader.holds("heliotrope")


async def test_what_is_no_longer_public_is_not_shown_to_everybody_after_the_next_reading(reader: Reader) -> None:
    await reader.read()
    assert await reader.public("heliotrope5")
    reader.world.hide("5")
    assert not (await reader.read()).failed
    assert not await reader.public("heliotrope5")


async def test_what_was_never_public_never_becomes_so(reader: Reader) -> None:
    reader.world.hide("5")
    await reader.read()
    await reader.read()
    assert not await reader.public("heliotrope5")


async def test_an_index_that_was_lost_is_filled_again(reader: Reader) -> None:
    await reader.read()
    reader.index, reader.encoders = FakePassageIndex(), FakeEncoderStore()
    assert (await reader.read()).added == 9


@pytest.mark.parametrize("kind", ["git clone", "git url", *REMOTE])
async def test_a_position_that_nobody_understands_is_the_start(kind: str, tmp_path: Path) -> None:
    async with world(kind, tmp_path) as found:
        for key in KEYS:
            found.write(key, f"The word of {key} is heliotrope{key}.")
        assert isinstance(found.source, ChangingSource)
        for position in ("nonsense", "{}", "[1]", '{"C0CICD": 3}', '{"C0CICD": {"mark": 3, "what": 4}}'):
            parts = [part async for part in found.source.changes(position, frozenset())]
            assert len({document.id for part in parts for document in part.documents}) == 9, position


async def test_a_process_that_is_killed_midway_loses_nothing_and_the_next_one_completes_it(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def dying(progress: module.IngestProgress) -> None:
        if progress.source and progress.done == 6:
            raise Killed

    monkeypatch.setattr(module, "CHECKPOINT", 2)
    with pytest.raises(Killed):
        await ingest_knowledge(
            [reader.world.source], reader.index, reader.encoders, on_progress=dying, store=reader.store
        )
    reader.world.remove("2")
    reader.world.write("7", "The word is amaranth now.")
    await reader.read()
    assert {key for key in KEYS if reader.holds(f"heliotrope{key}")} == set("1345689")
    assert reader.holds("amaranth")
    assert (await reader.read()).removed == 0


# --- those behind a server -------------------------------------------------------------------------------------------


@every_case("kind", REMOTE)
async def test_a_server_that_breaks_after_any_of_its_answers_makes_nothing_go(kind: str) -> None:
    for answered in breaks():
        async with remote_world_of(kind) as (reader, remote_world):
            await reader.read()
            remote_world.write("3", "The word is amaranth now.")
            remote_world.refusals.refuse(500, times=10_000, after=answered)
            broken = await reader.read()
            assert broken.removed == 0, answered
            assert all(reader.holds(f"heliotrope{key}") for key in KEYS.replace("3", "")), answered
            remote_world.refusals.relent()
            assert not (await reader.read()).failed, answered
            assert reader.holds("amaranth"), answered
            assert len(reader.passages()) == 9, answered
        if not broken.failed:
            assert answered > 0
            break


@every_case("kind", REMOTE)
async def test_a_first_reading_that_breaks_after_any_answer_is_completed_by_the_next(kind: str) -> None:
    for answered in breaks():
        async with remote_world_of(kind) as (reader, remote_world):
            remote_world.refusals.refuse(503, times=10_000, after=answered)
            first = await reader.read()
            remote_world.refusals.relent()
            second = await reader.read()
            assert not second.failed, answered
            assert first.added + second.added == 9, answered
            assert all(reader.holds(f"heliotrope{key}") for key in KEYS), answered
        if not first.failed:
            assert answered > 0
            break


@pytest.mark.parametrize("status", [429, 503])
async def test_the_server_is_given_the_time_that_it_asks_for(remote: tuple[Reader, RemoteWorld], status: int) -> None:
    reader, remote_world = remote
    remote_world.refusals.refuse(status, {"Retry-After": "17"}, times=2, after=2)
    assert (await reader.read()).added == 9
    assert remote_world.pauses == [17.0, 17.0]


async def test_a_date_to_come_back_at_is_understood(remote: tuple[Reader, RemoteWorld]) -> None:
    reader, remote_world = remote
    dates = {"Date": "Sun, 01 Feb 2026 10:00:00 GMT", "Retry-After": "Sun, 01 Feb 2026 10:00:40 GMT"}
    remote_world.refusals.refuse(429, dates, after=1)
    assert (await reader.read()).added == 9
    assert remote_world.pauses == [40.0]


async def test_a_server_that_names_no_time_is_asked_less_and_less_often(remote: tuple[Reader, RemoteWorld]) -> None:
    reader, remote_world = remote
    remote_world.refusals.refuse(429, times=4, after=1)
    assert (await reader.read()).added == 9
    assert remote_world.pauses == [1.0, 2.0, 4.0, 8.0]


@pytest.mark.parametrize("asked", ["100000", "9223372036854775807"])
async def test_a_server_that_asks_for_too_much_time_is_left_until_the_next_run(
    remote: tuple[Reader, RemoteWorld], asked: str
) -> None:
    reader, remote_world = remote
    remote_world.refusals.refuse(429, {"Retry-After": asked}, times=10_000, after=1)
    assert (await reader.read()).failed
    assert remote_world.pauses == []


async def test_tries_are_bounded(remote: tuple[Reader, RemoteWorld]) -> None:
    reader, remote_world = remote
    remote_world.refusals.refuse(503, times=10_000)
    report = await reader.read()
    assert list(report.failed) == ["docs"]
    assert len(remote_world.pauses) == 6


async def test_a_token_that_expired_is_told_and_makes_nothing_go(remote: tuple[Reader, RemoteWorld]) -> None:
    reader, remote_world = remote
    await reader.read()
    remote_world.expire_token()
    report = await reader.read()
    assert report.removed == 0
    assert list(report.failed) == ["docs"]
    assert "token" in report.failed["docs"]
    assert len(reader.passages()) == 9


async def test_a_reading_of_what_did_not_change_asks_for_no_more_than_the_first(
    remote: tuple[Reader, RemoteWorld],
) -> None:
    reader, remote_world = remote
    await reader.read()
    first = len(remote_world.refusals.requests)
    await reader.read()
    assert len(remote_world.refusals.requests) - first <= first


async def test_a_door_that_opens_is_found_well_without_reading_everything(
    remote: tuple[Reader, RemoteWorld],
) -> None:
    source = remote[1].source
    assert isinstance(source, CheckedSource)
    await source.check()


async def test_a_door_that_is_shut_is_found_before_anything_is_read(remote: tuple[Reader, RemoteWorld]) -> None:
    _, remote_world = remote
    remote_world.expire_token()
    assert isinstance(remote_world.source, CheckedSource)
    with pytest.raises(SourceUnavailable):
        await remote_world.source.check()
