from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest
import structlog

from bot.wiring import catalogues
from bot.wiring.catalogues import WHOLE, GrowingHistory
from core.model.alert import Severity
from core.model.badge import Evaluation, Outcome, Prediction, PredictionKind
from core.model.conversation import PUBLIC, Audience, Channel, Place, Platform
from core.model.findings import PastIncident
from core.model.incident import Incident, Resolution
from core.model.team import Team
from core.ports import Store
from core.triage.paging import Episode, PageHistory
from tests.fakes.clock import FakeClock
from tests.fakes.store import InMemoryStore
from tests.fakes.store.incidents import InMemoryIncidents
from tests.samples import explained_incident, resolved_incident

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
PAST = PastIncident("INC-1", "shelf search is slow", "", "shelf", Severity.WARNING, NOW, "catalogue")
CHANNELS = (
    Channel("incidents", {Platform.SLACK: "C0INC"}),
    Channel("vault", {Platform.SLACK: "C0VAULT"}, private=True),
)
TEAMS = (Team("payments", "Payments"),)
EVERYBODY = Audience(frozenset({PUBLIC}))


def history() -> GrowingHistory:
    return GrowingHistory([PAST], CHANNELS, TEAMS, FakeClock(datetime.now(UTC)))


async def test_an_incident_that_was_noted_is_found_by_the_next_one_like_it() -> None:
    store, growing = InMemoryStore(), history()
    before = growing.readable_by(EVERYBODY, CHANNELS)
    store.incidents.by_id["i1"] = explained_incident(id="i1", resolution=Resolution("A pool of 4.", owner="Payments"))
    await growing.grow(store)
    (found,) = growing.readable_by(EVERYBODY, CHANNELS).similar("payment-gateway p99 latency", 1)
    assert (found.incident.id, found.incident.owner, found.incident.root_cause) == ("i1", "payments", "A pool of 4.")
    assert before.incidents == (PAST,)


async def test_what_was_posted_in_a_private_channel_is_for_its_readers() -> None:
    store, growing = InMemoryStore(), history()
    store.incidents.by_id["i1"] = explained_incident(
        id="i1", place=Place(Platform.SLACK, "C0VAULT"), resolution=Resolution("A pool of 4.")
    )
    await growing.grow(store)
    assert growing.readable_by(EVERYBODY, CHANNELS).incidents == (PAST,)
    assert len(growing.readable_by(Audience(frozenset({PUBLIC, "channel:vault"})), CHANNELS).incidents) == 2


async def test_growing_again_adds_nothing_twice_and_keeps_what_a_source_says() -> None:
    store, growing = InMemoryStore(), history()
    store.incidents.by_id["INC-1"] = explained_incident(id="INC-1", resolution=Resolution("Something else."))
    for _ in range(2):
        await growing.grow(store)
    assert growing.whole.incidents == (PAST,)


@pytest.mark.parametrize(("judged", "owners"), [(True, ["payments"]), (False, []), (None, [])])
async def test_an_owner_that_somebody_called_right_is_learned_from_without_a_note(
    judged: bool | None, owners: list[str]
) -> None:
    store, growing = InMemoryStore(), history()
    incident = replace(resolved_incident(), id="i1", taken_by="")
    store.incidents.by_id["i1"] = incident
    assert incident.findings.owner is not None
    if judged is not None:
        claim = incident.findings.owner.prediction_id
        store.predictions.by_id[claim] = Prediction(
            claim, PredictionKind.OWNER, "i1", "payments", Evaluation(1.0, 1.0), "evidence", "1", NOW
        )
        await store.predictions.label(Outcome(claim, judged, "slack:U1", NOW))
    await growing.grow(store)
    assert [past.owner for past in growing.whole.incidents if past.id == "i1"] == owners


async def test_what_ended_on_another_replica_is_known_here_without_reading_everything_again() -> None:
    incidents = CountingIncidents()
    store, here = InMemoryStore(incidents=incidents), history()
    await save(store, explained_incident(id="i1", revision=1, resolution=Resolution("A pool of 4.", owner="Payments")))
    await here.grow(store)
    noted = explained_incident(id="i2", group_key="2", revision=1, resolution=Resolution("A cache.", owner="Payments"))
    await save(store, noted)
    incidents.read.clear()
    await here.catch_up(store)
    assert {past.id for past in here.whole.incidents} == {"INC-1", "i1", "i2"}
    assert [since is None for since in incidents.read] == [False], "only what is new is read"


async def test_catching_up_where_nothing_is_new_leaves_the_history_as_it_is() -> None:
    store, here = InMemoryStore(), history()
    await save(store, explained_incident(id="i1", revision=1, resolution=Resolution("A pool of 4.", owner="Payments")))
    await here.grow(store)
    before = here.whole
    await here.catch_up(store)
    assert here.whole is before, "building it takes a while"


async def test_replicas_that_caught_up_and_one_that_read_all_of_it_know_the_same() -> None:
    store, followed = InMemoryStore(), history()
    await followed.grow(store)
    for number in range(4):
        opened_at = NOW + timedelta(minutes=(number * 7) % 5)
        note = Resolution(f"Cause {number}.", owner="Payments")
        noted = explained_incident(id=f"i{number}", group_key=str(number), revision=1, resolution=note)
        await save(store, replace(noted, opened_at=opened_at))
        await followed.catch_up(store)
    fresh = history()
    await fresh.grow(store)
    assert len(fresh.whole.incidents) == 5
    assert followed.whole.incidents == fresh.whole.incidents


async def test_an_owner_that_is_judged_after_the_end_is_learned_and_forgotten_again() -> None:
    store, here = InMemoryStore(), history()
    incident = replace(resolved_incident(), id="i1", taken_by="")
    store.incidents.by_id["i1"] = incident  # long ago: nothing says that it changed
    await here.grow(store)
    assert incident.findings.owner is not None
    claim = incident.findings.owner.prediction_id
    store.predictions.by_id[claim] = Prediction(
        claim, PredictionKind.OWNER, "i1", "payments", Evaluation(1.0, 1.0), "evidence", "1", NOW
    )
    now = datetime.now(UTC)
    await store.predictions.label(Outcome(claim, True, "slack:U1", now))
    await here.catch_up(store)
    assert {past.id for past in here.whole.incidents} == {"INC-1", "i1"}
    await store.predictions.label(Outcome(claim, False, "slack:U1", now))
    await here.catch_up(store)
    assert here.whole.incidents == (PAST,)


async def test_what_ends_while_a_judgement_reads_the_history_is_in_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    store, here = InMemoryStore(), history()
    building, may_go_on = threading.Event(), threading.Event()

    def slow_history(episodes: Sequence[Episode]) -> PageHistory:
        building.set()
        assert may_go_on.wait(5)
        return PageHistory(episodes)

    monkeypatch.setattr(catalogues, "PageHistory", slow_history)
    judging = asyncio.create_task(asyncio.to_thread(here.pages))
    assert await asyncio.to_thread(building.wait, 5)
    store.incidents.by_id["i1"] = explained_incident(id="i1", resolution=Resolution("A pool of 4."))
    await here.grow(store)
    may_go_on.set()
    assert await judging is not here.pages(), "the history has grown meanwhile"


async def test_once_a_day_all_of_it_is_read() -> None:
    clock = FakeClock(datetime.now(UTC))
    store, here = InMemoryStore(), GrowingHistory([PAST], CHANNELS, TEAMS, clock)
    await save(store, explained_incident(id="i1", revision=1, resolution=Resolution("A pool of 4.", owner="Payments")))
    await here.grow(store)
    del store.incidents.by_id["i1"]  # as retention does
    await here.catch_up(store)
    assert len(here.whole.incidents) == 2
    clock.advance(WHOLE.total_seconds())
    await here.catch_up(store)
    assert here.whole.incidents == (PAST,)


async def test_whoever_follows_knows_it_soon_and_bears_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogues, "EVERY", 0.01)
    store, here = InMemoryStore(), history()
    await here.grow(store)
    store.outages = 1
    following = asyncio.create_task(here.follow(store))
    try:
        async with asyncio.timeout(30):
            while store.outages:  # noqa: ASYNC110 -- nothing tells it
                await asyncio.sleep(0.01)
            note = Resolution("A pool of 4.", owner="Payments")
            await save(store, explained_incident(id="i1", revision=1, resolution=note))
            while len(here.whole.incidents) < 2:  # noqa: ASYNC110 -- nothing tells it
                await asyncio.sleep(0.01)
    finally:
        following.cancel()


async def test_whoever_follows_bears_what_cannot_be_read_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogues, "EVERY", 0.01)
    here = history()
    looks: list[int] = []

    async def mistaken(_store: Store) -> None:
        looks.append(1)
        raise TypeError("This incident cannot be read.")

    monkeypatch.setattr(here, "catch_up", mistaken)
    with structlog.testing.capture_logs() as events:
        following = asyncio.create_task(here.follow(InMemoryStore()))
        try:
            async with asyncio.timeout(30):
                while len(looks) < 2:  # noqa: ASYNC110 -- nothing tells it
                    await asyncio.sleep(0.01)
        finally:
            following.cancel()
    assert {event["event"] for event in events} == {"past incidents cannot be read"}


async def save(store: InMemoryStore, incident: Incident) -> None:
    async with store.transaction() as transaction:
        await transaction.incidents.save(incident)


@dataclass(slots=True)
class CountingIncidents(InMemoryIncidents):
    """Writes down since when it is asked for what ended."""

    read: list[datetime | None] = field(default_factory=list)

    async def ended(self, limit: int, since: datetime | None = None) -> list[Incident]:
        self.read.append(since)
        return await InMemoryIncidents.ended(self, limit, since)
