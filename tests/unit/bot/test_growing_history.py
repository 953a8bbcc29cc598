from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from bot.growing_history import GrowingHistory
from core.confidence.prediction import Evaluation, Outcome, Prediction, PredictionKind
from core.confidence.resolution import Resolution
from core.conversation import PUBLIC, Audience, Channel, Place, Platform
from core.incident import PastIncident, Severity
from core.team import Team
from tests.fakes.messages import explained_incident, resolved_incident
from tests.fakes.store import InMemoryStore

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
PAST = PastIncident("INC-1", "shelf search is slow", "", "shelf", Severity.WARNING, NOW, "catalogue")
CHANNELS = (
    Channel("incidents", {Platform.SLACK: "C0INC"}),
    Channel("vault", {Platform.SLACK: "C0VAULT"}, private=True),
)
TEAMS = (Team("payments", "Payments"),)
EVERYBODY = Audience(frozenset({PUBLIC}))


def history() -> GrowingHistory:
    return GrowingHistory([PAST], CHANNELS, TEAMS)


async def test_an_incident_that_was_noted_is_found_by_the_next_one_like_it() -> None:
    store, growing = InMemoryStore(), history()
    before = growing.readable_by(EVERYBODY)
    store.incidents.by_id["i1"] = explained_incident(id="i1", resolution=Resolution("A pool of 4.", owner="Payments"))
    await growing.grow(store)
    (found,) = growing.readable_by(EVERYBODY).similar("payment-gateway p99 latency", 1)
    assert (found.incident.id, found.incident.owner, found.incident.root_cause) == ("i1", "payments", "A pool of 4.")
    assert before.incidents == (PAST,)


async def test_what_was_posted_in_a_private_channel_is_for_its_readers() -> None:
    store, growing = InMemoryStore(), history()
    store.incidents.by_id["i1"] = explained_incident(
        id="i1", place=Place(Platform.SLACK, "C0VAULT"), resolution=Resolution("A pool of 4.")
    )
    await growing.grow(store)
    assert growing.readable_by(EVERYBODY).incidents == (PAST,)
    assert len(growing.readable_by(Audience(frozenset({PUBLIC, "channel:vault"}))).incidents) == 2


async def test_growing_again_adds_nothing_twice_and_keeps_what_a_source_says() -> None:
    store, growing = InMemoryStore(), history()
    store.incidents.by_id["INC-1"] = explained_incident(id="INC-1", resolution=Resolution("Something else."))
    for _ in range(2):
        await growing.grow(store)
    assert growing.incidents == (PAST,)


@pytest.mark.parametrize(("judged", "owners"), [(True, ["payments"]), (False, []), (None, [])])
async def test_an_owner_that_somebody_called_right_is_learned_from_without_a_note(
    judged: bool | None, owners: list[str]
) -> None:
    store, growing = InMemoryStore(), history()
    incident = replace(resolved_incident(), id="i1", taken_by="")
    store.incidents.by_id["i1"] = incident
    assert incident.owner is not None
    if judged is not None:
        claim = incident.owner.prediction_id
        store.predictions.by_id[claim] = Prediction(
            claim, PredictionKind.OWNER, "i1", "payments", Evaluation(1.0, 1.0), "evidence", "1", NOW
        )
        await store.predictions.label(Outcome(claim, judged, "slack:U1", NOW))
    await growing.grow(store)
    assert [past.owner for past in growing.incidents if past.id == "i1"] == owners
