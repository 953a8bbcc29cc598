from __future__ import annotations

from dataclasses import replace

import pytest

from core.errors import PlumblineError, ToolUnavailable
from core.incident import Hop, Incident, Stage, TeamScore
from core.samples import explained_incident, owner
from handlers.investigate_incident import conclude_investigation, investigate_incident, save_findings
from handlers.update_incident import update_incident
from tests.fakes.store import InMemoryStore

RAW = explained_incident(id="i1", revision=1, owner=None, explanation=None, stage=Stage.TRIAGING)


@pytest.fixture
def store() -> InMemoryStore:
    store = InMemoryStore()
    store.incidents.by_id["i1"] = RAW
    return store


async def test_what_is_found_is_saved(store: InMemoryStore) -> None:
    async def find(incident: Incident) -> Incident:
        assert incident == RAW
        return replace(incident, owner=owner(), stage=Stage.EXPLAINING)

    await investigate_incident("i1", find, store=store)
    assert store.incidents.by_id["i1"] == replace(RAW, owner=owner(), stage=Stage.EXPLAINING, revision=2)


async def test_what_is_known_so_far_is_saved_with_what_goes_on_and_its_end_takes_that_away(
    store: InMemoryStore,
) -> None:
    async def find(incident: Incident) -> Incident:
        await save_findings(replace(incident, owner=owner()), incident, progress="looking closer", store=store)
        known = store.incidents.by_id["i1"]
        assert (known.owner, known.progress, known.stage) == (owner(), "looking closer", Stage.TRIAGING)
        return replace(incident, owner=None, stage=Stage.DONE)

    await investigate_incident("i1", find, store=store)
    known = store.incidents.by_id["i1"]
    assert (known.owner, known.progress, known.stage) == (None, "", Stage.DONE)


async def test_alerts_that_arrive_meanwhile_are_kept(store: InMemoryStore) -> None:
    async def find(incident: Incident) -> Incident:
        await update_incident("i1", lambda latest: replace(latest, alert_count=77, taken_by="Ada"), store)
        return replace(incident, owner=owner())

    await investigate_incident("i1", find, store=store)
    saved = store.incidents.by_id["i1"]
    assert (saved.alert_count, saved.taken_by, saved.owner) == (77, "Ada", owner())


async def test_an_investigation_that_fails_changes_nothing(store: InMemoryStore) -> None:
    async def fail(incident: Incident) -> Incident:
        raise ToolUnavailable("The logs are down.")

    with pytest.raises(ToolUnavailable):
        await investigate_incident("i1", fail, store=store)
    assert store.incidents.by_id["i1"] == RAW


async def test_an_incident_that_does_not_exist_is_not_investigated(store: InMemoryStore) -> None:
    async def never(incident: Incident) -> Incident:
        raise AssertionError("It was investigated.")

    with pytest.raises(PlumblineError, match="Incident i2 does not exist"):
        await investigate_incident("i2", never, store=store)


async def test_a_conclusion_is_one_whatever_was_found(store: InMemoryStore) -> None:
    await conclude_investigation("i1", store=store)
    assert store.incidents.by_id["i1"] == replace(RAW, stage=Stage.DONE, revision=2)


async def test_the_team_that_people_give_it_to_meanwhile_stays_its_owner(store: InMemoryStore) -> None:
    given = owner(owner=TeamScore("bookings", "Bookings", 1.0, ("Ada gave it to Bookings",)))
    hop = Hop("", "bookings", "Ada", "", RAW.opened_at)

    async def find(incident: Incident) -> Incident:
        await update_incident("i1", lambda latest: replace(latest, hops=(hop,), owner=given), store)
        return replace(incident, owner=owner(), stage=Stage.DONE)

    await investigate_incident("i1", find, store=store)
    saved = store.incidents.by_id["i1"]
    assert (saved.owner, saved.hops, saved.stage) == (given, (hop,), Stage.DONE)


async def test_a_triage_that_is_still_at_work_takes_nothing_back_of_what_another_step_found_meanwhile(
    store: InMemoryStore,
) -> None:
    explanation = explained_incident().explanation

    async def explain(incident: Incident) -> Incident:
        return replace(incident, explanation=explanation, cut_short="over already", stage=Stage.DONE)

    async def triage_again(incident: Incident) -> Incident:
        await investigate_incident("i1", explain, store=store)
        return replace(incident, owner=owner(), stage=Stage.EXPLAINING)

    await investigate_incident("i1", triage_again, store=store)
    saved = store.incidents.by_id["i1"]
    assert (saved.owner, saved.explanation) == (owner(), explanation)
    assert (saved.cut_short, saved.stage) == ("over already", Stage.DONE)
