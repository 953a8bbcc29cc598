"""A press that leaves a question open has a form; every other one has none."""

from __future__ import annotations

import pytest

from core.model.badge import Evaluation, Prediction, PredictionKind
from core.model.conversation import Channel, Person, Place, Platform, channel_audience
from core.model.messages import ButtonAction, CauseRequest, CorrectionRequest, Form, HandoverRequest
from core.model.team import Team
from handlers.questions.doors import AskInForm
from tests import samples as messages
from tests.fakes.ports import some_ports
from tests.fakes.store import InMemoryStore

PERSON = Person(Platform.SLACK, "U1")
TEAMS = (Team("payments", "Payments"), Team("fleet", "Fleet"), Team("bookings", "Bookings"))
HANDOVER = HandoverRequest("incident-1", "Payments", (("bookings", "Bookings"), ("fleet", "Fleet")), "owner-1")
CHANNELS = (Channel("vault", {Platform.SLACK: "C0INC"}, private=True),)
CLAIMS = {
    "answer-1": (PredictionKind.ANSWER, "q1"),
    "owner-1": (PredictionKind.OWNER, "incident-1"),
    "owner-2": (PredictionKind.OWNER, "pasted"),
    "cause-1": (PredictionKind.CAUSE, "incident-1"),
}


@pytest.fixture
async def forms() -> AskInForm:
    store = InMemoryStore()
    async with store.transaction() as transaction:
        await transaction.incidents.save(messages.explained_incident())
        for id_, (kind, subject) in CLAIMS.items():
            claim = Prediction(id_, kind, subject, "x", Evaluation(0.5, 0.5), "evidence", "v1", messages.START)
            await transaction.predictions.add(claim)
    return AskInForm(some_ports(store=store, teams=TEAMS, channels=CHANNELS))


@pytest.mark.parametrize(
    ("verdict", "subject", "form"),
    [
        (ButtonAction.WRONG, "answer-1", CorrectionRequest("answer-1")),
        (ButtonAction.CAUSE_WRONG, "cause-1", CauseRequest("cause-1")),
        (ButtonAction.OWNER_WRONG, "owner-1", HANDOVER),
        (ButtonAction.HAND_OVER, "incident-1", HANDOVER),
        (ButtonAction.HAND_OVER, "pasted", None),
        (ButtonAction.OWNER_WRONG, "owner-2", None),
        (ButtonAction.WRONG, "gone", None),
        (ButtonAction.WRONG, "cause-1", None),
        (ButtonAction.HELPFUL, "answer-1", None),
        (ButtonAction.TAKE_IT, "incident-1", None),
    ],
)
async def test_what_is_asked_follows_from_what_was_pressed(
    forms: AskInForm, verdict: ButtonAction, subject: str, form: Form | None
) -> None:
    assert (
        await forms.form(verdict, subject, channel_audience(messages.incident().placement.place, CHANNELS), PERSON)
        == form
    )


@pytest.mark.parametrize(
    ("verdict", "subject"), [(ButtonAction.HAND_OVER, "incident-1"), (ButtonAction.OWNER_WRONG, "owner-1")]
)
async def test_whose_it_is_is_not_told_where_the_incident_may_not_be_known(
    forms: AskInForm, verdict: ButtonAction, subject: str
) -> None:
    elsewhere = channel_audience(Place(Platform.SLACK, "C0ASK"), CHANNELS)
    assert await forms.form(verdict, subject, elsewhere, PERSON) is None
