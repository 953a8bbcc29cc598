"""A press about an incident counts where the incident may be spoken of, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.model.badge import Evaluation, Prediction, PredictionKind
from core.model.conversation import (
    Channel,
    MessageReference,
    Person,
    Place,
    Platform,
    channel_audience,
    person_audience,
    with_outsiders,
)
from core.model.message_view import Feedback
from core.model.messages import ButtonAction
from handlers.feedback.record_feedback import ABOUT_INCIDENTS, is_visible_here
from tests.fakes.ports import some_ports
from tests.fakes.store import InMemoryStore
from tests.samples import START, incident

ADA = Person(Platform.SLACK, "U0ADA", "Ada")
VAULT, HELP, DIRECT = (Place(Platform.SLACK, channel) for channel in ("C0VAULT", "C0HELP", "D0ADA"))
CHANNELS = (Channel("vault", {Platform.SLACK: "C0VAULT"}, private=True), Channel("help", {Platform.SLACK: "C0HELP"}))


@pytest.fixture
def store() -> InMemoryStore:
    store = InMemoryStore()
    store.incidents.by_id["i1"] = replace(incident().with_placement(place=VAULT), id="i1")
    return store


def press(place: Place, verdict: ButtonAction = ButtonAction.BELONGS, subject: str = "i1") -> Feedback:
    audience = person_audience(ADA) if place == DIRECT else channel_audience(place, CHANNELS)
    return Feedback("f1", verdict, subject, ADA, replace(place, thread="1.1"), START, audience=audience)


@pytest.mark.parametrize("verdict", sorted(ABOUT_INCIDENTS))
async def test_a_private_incident_is_pressed_on_in_its_own_channel_alone(
    store: InMemoryStore, verdict: ButtonAction
) -> None:
    for place, expected in ((VAULT, True), (HELP, False), (DIRECT, False)):
        assert await is_visible_here(press(place, verdict), some_ports(channels=CHANNELS, store=store)) is expected
    assert not await is_visible_here(press(VAULT, verdict, "curated-1"), some_ports(channels=CHANNELS, store=store)), (
        "no incident"
    )


async def test_a_public_incident_is_pressed_on_anywhere_among_members(store: InMemoryStore) -> None:
    store.incidents.by_id["i1"] = replace(incident().with_placement(place=HELP), id="i1")
    elsewhere = press(VAULT)
    assert await is_visible_here(elsewhere, some_ports(channels=CHANNELS, store=store))
    outside = replace(elsewhere, audience=with_outsiders(elsewhere.audience))
    assert not await is_visible_here(outside, some_ports(channels=CHANNELS, store=store))


async def test_where_its_message_stands_it_may_be_pressed_on(store: InMemoryStore) -> None:
    posted = store.incidents.by_id["i1"].with_placement(message=MessageReference(DIRECT, "1.1"))
    store.incidents.by_id["i1"] = posted
    assert await is_visible_here(press(DIRECT), some_ports(channels=CHANNELS, store=store))


async def test_what_is_about_no_incident_is_not_asked_for_one(store: InMemoryStore) -> None:
    assert await is_visible_here(
        press(HELP, ButtonAction.HELPFUL, "answer-1"), some_ports(channels=CHANNELS, store=store)
    )


async def test_who_speaks_of_a_claim_speaks_of_its_incident(store: InMemoryStore) -> None:
    store.predictions.by_id["owner-1"] = Prediction(
        "owner-1", PredictionKind.OWNER, "i1", "payments", Evaluation(0.5, 0.5), "evidence", "1", START
    )
    for place, expected in ((VAULT, True), (HELP, False)):
        pressed = press(place, ButtonAction.NOT_OURS, "owner-1")
        assert await is_visible_here(pressed, some_ports(channels=CHANNELS, store=store)) is expected
