from __future__ import annotations

from dataclasses import replace

import pytest

from core.model.conversation import Person, Platform
from core.model.errors import PlumblineError, ToolUnavailable
from core.model.findings import TeamScore
from core.model.incident import Hop, Incident, Stage
from handlers.common.stored_incident import update_incident
from handlers.incidents import investigate_incident
from handlers.incidents.investigate_incident import (
    conclude_investigation,
    investigate_and_save,
    reinvestigate,
    save_findings,
)
from tests.fakes.ports import some_ports
from tests.fakes.store import InMemoryStore
from tests.samples import explained_incident, owner

ADA = Person(Platform.SLACK, "U1", "Ada")
RAW = explained_incident(id="i1", revision=1, owner=None, explanation=None, stage=Stage.TRIAGING)


@pytest.fixture
def store() -> InMemoryStore:
    store = InMemoryStore()
    store.incidents.by_id["i1"] = RAW
    return store


async def test_what_is_found_is_saved(store: InMemoryStore) -> None:
    async def find(incident: Incident) -> Incident:
        assert incident == RAW
        return replace(incident.with_findings(owner=owner()), stage=Stage.EXPLAINING)

    await investigate_and_save("i1", find, store=store)
    assert store.incidents.by_id["i1"] == replace(RAW.with_findings(owner=owner()), stage=Stage.EXPLAINING, revision=2)


async def test_what_is_known_so_far_is_saved_with_what_goes_on_and_its_end_takes_that_away(
    store: InMemoryStore,
) -> None:
    async def find(incident: Incident) -> Incident:
        await save_findings(incident.with_findings(owner=owner()), incident, progress="looking closer", store=store)
        known = store.incidents.by_id["i1"]
        assert (known.findings.owner, known.progress, known.stage) == (owner(), "looking closer", Stage.TRIAGING)
        return replace(incident.with_findings(owner=None), stage=Stage.DONE)

    await investigate_and_save("i1", find, store=store)
    known = store.incidents.by_id["i1"]
    assert (known.findings.owner, known.progress, known.stage) == (None, "", Stage.DONE)


async def test_alerts_that_arrive_meanwhile_are_kept(store: InMemoryStore) -> None:
    async def find(incident: Incident) -> Incident:
        await update_incident("i1", lambda latest: replace(latest, alert_count=77, taken_by="Ada"), store)
        return incident.with_findings(owner=owner())

    await investigate_and_save("i1", find, store=store)
    saved = store.incidents.by_id["i1"]
    assert (saved.alert_count, saved.taken_by, saved.findings.owner) == (77, "Ada", owner())


async def test_an_investigation_that_fails_changes_nothing(store: InMemoryStore) -> None:
    async def fail(incident: Incident) -> Incident:
        raise ToolUnavailable("The logs are down.")

    with pytest.raises(ToolUnavailable):
        await investigate_and_save("i1", fail, store=store)
    assert store.incidents.by_id["i1"] == RAW


async def test_an_incident_that_does_not_exist_is_not_investigated(store: InMemoryStore) -> None:
    async def never(incident: Incident) -> Incident:
        raise AssertionError("It was investigated.")

    with pytest.raises(PlumblineError, match="Incident i2 does not exist"):
        await investigate_and_save("i2", never, store=store)


async def test_a_conclusion_is_one_whatever_was_found(store: InMemoryStore) -> None:
    await conclude_investigation("i1", store=store)
    assert store.incidents.by_id["i1"] == replace(RAW, stage=Stage.DONE, revision=2)


async def test_the_team_that_people_give_it_to_meanwhile_stays_its_owner(store: InMemoryStore) -> None:
    given = owner(owner=TeamScore("bookings", "Bookings", 1.0, ("Ada gave it to Bookings",)))
    hop = Hop("", "bookings", "Ada", "", RAW.opened_at)

    async def find(incident: Incident) -> Incident:
        await update_incident("i1", lambda latest: replace(latest.with_findings(owner=given), hops=(hop,)), store)
        return replace(incident.with_findings(owner=owner()), stage=Stage.DONE)

    await investigate_and_save("i1", find, store=store)
    saved = store.incidents.by_id["i1"]
    assert (saved.findings.owner, saved.hops, saved.stage) == (given, (hop,), Stage.DONE)


async def test_a_triage_that_is_still_at_work_takes_nothing_back_of_what_another_step_found_meanwhile(
    store: InMemoryStore,
) -> None:
    explanation = explained_incident().findings.explanation

    async def explain(incident: Incident) -> Incident:
        return replace(incident.with_findings(explanation=explanation, cut_short="over already"), stage=Stage.DONE)

    async def triage_again(incident: Incident) -> Incident:
        if incident.findings.explanation is None:
            await investigate_and_save("i1", explain, store=store)
        return replace(
            incident.with_findings(owner=owner()),
            stage=Stage.DONE if incident.findings.explanation else Stage.EXPLAINING,
        )

    await investigate_and_save("i1", triage_again, store=store)
    saved = store.incidents.by_id["i1"]
    assert (saved.findings.owner, saved.findings.explanation) == (owner(), explanation)
    assert (saved.findings.cut_short, saved.stage) == ("over already", Stage.DONE)


BY_TEXT, BY_CAUSE = owner(prediction_id="by text"), owner(prediction_id="by cause")


async def test_a_triage_that_outlasts_the_search_for_the_cause_is_made_again_in_its_light(store: InMemoryStore) -> None:
    async def explain(incident: Incident) -> Incident:
        return incident.with_findings(explanation=explained_incident().findings.explanation, owner=BY_CAUSE)

    async def triage_again(incident: Incident) -> Incident:
        if incident.findings.explanation is not None:
            return incident.with_findings(owner=BY_CAUSE)
        await save_findings(incident.with_findings(owner=BY_TEXT), incident, store=store)
        await investigate_and_save("i1", explain, store=store)
        await save_findings(incident.with_findings(owner=BY_TEXT), incident, store=store)
        assert store.incidents.by_id["i1"].findings.owner == BY_CAUSE
        return incident.with_findings(owner=BY_TEXT)

    await investigate_and_save("i1", triage_again, store=store)
    assert store.incidents.by_id["i1"].findings.owner == BY_CAUSE


async def test_a_second_triage_that_finds_the_same_again_leaves_no_activity_and_nothing_to_stop(
    store: InMemoryStore,
) -> None:
    explained = RAW.with_findings(owner=BY_CAUSE, explanation=explained_incident().findings.explanation)

    async def triage_again(incident: Incident) -> Incident:
        if incident.findings.explanation is None:
            await store.incidents.save(replace(explained, revision=2))
            return incident.with_findings(owner=BY_TEXT)
        await save_findings(incident, incident, progress="asking the language model", stop_id="i1:2", store=store)
        return incident

    await investigate_and_save("i1", triage_again, store=store)
    saved = store.incidents.by_id["i1"]
    assert (saved.findings.owner, saved.progress, saved.stop_id) == (BY_CAUSE, "", "")


async def test_an_incident_that_is_sent_on_while_the_cause_is_looked_for_is_triaged_again_once_that_is_known(
    store: InMemoryStore,
) -> None:
    hop = Hop("payments", "", "Ada", "", RAW.opened_at)

    async def explain(incident: Incident) -> Incident:
        await update_incident("i1", lambda latest: replace(latest.with_findings(owner=BY_TEXT), hops=(hop,)), store)
        return incident.with_findings(explanation=explained_incident().findings.explanation, owner=owner())

    await investigate_and_save("i1", explain, store=store)
    saved = store.incidents.by_id["i1"]
    assert (saved.findings.owner, saved.findings.explanation) == (BY_TEXT, explained_incident().findings.explanation)
    assert [(task.key, task.workflow) for task in store.tasks.added.values()] == [
        ("triage-again:i1:1:explained", "triage_again")
    ]


async def test_what_people_said_of_the_owner_is_not_triaged_again_for_a_step_that_looked_for_nothing_else(
    store: InMemoryStore,
) -> None:
    async def triage(incident: Incident) -> Incident:
        hop = Hop("payments", "", "Ada", "", RAW.opened_at)
        await update_incident("i1", lambda latest: replace(latest, hops=(hop,)), store)
        return incident.with_findings(owner=owner())

    await investigate_and_save("i1", triage, store=store)
    assert not store.tasks.added


@pytest.mark.parametrize(("error", "left"), [(ToolUnavailable("It is down."), "i1:1"), (ValueError("A bug."), "")])
async def test_a_step_that_fails_for_good_leaves_nothing_to_stop_and_one_that_is_tried_again_does(
    store: InMemoryStore, monkeypatch: pytest.MonkeyPatch, error: Exception, left: str
) -> None:
    async def fail(incident: Incident, *_: object) -> Incident:
        await save_findings(incident, incident, progress="asking", stop_id="i1:1", store=store)
        raise error

    monkeypatch.setattr(investigate_incident, "_explain_and_show", fail)
    with pytest.raises(type(error)):
        await reinvestigate("i1", some_ports(store=store))
    assert store.incidents.by_id["i1"].stop_id == left
