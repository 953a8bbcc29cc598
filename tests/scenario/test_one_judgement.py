"""A reaction and a button that say the same of a message lead to the same."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.wiring.application import Core
from bot.wiring.ports import all_ports
from core.model.badge import Evaluation, Prediction, PredictionKind, RecordedFailure
from core.model.conversation import MessageReference, Person, Place, Platform
from core.model.message_view import Feedback, Reaction
from core.model.messages import ButtonAction, IncidentDetails
from handlers.common.ports import Ports
from handlers.feedback.record_feedback import record_reaction, take_feedback
from tests.fakes.messenger import RecordingMessenger
from tests.samples import explained_incident
from tests.scenario.company import open_company

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
PLACE = Place(Platform.SLACK, "C0INC", "17.25")
ADA = Person(Platform.SLACK, "U1", "Ada")
CLAIM = "cause-1"  # what the details of the sample incident claim


@pytest.fixture
async def core(tmp_path: Path) -> AsyncIterator[Core]:
    async with open_company(tmp_path) as core:
        yield core


async def press(ports: Ports, _message: MessageReference) -> None:
    await take_feedback(Feedback("f1", ButtonAction.CAUSE_RIGHT, CLAIM, ADA, PLACE, NOW), ports)


async def react(ports: Ports, message: MessageReference) -> None:
    await record_reaction(Reaction("r1", message, True, ADA, NOW), ports)


@pytest.mark.parametrize("judge", [press, react])
async def test_who_says_that_the_cause_of_a_failed_build_is_right_confirms_its_lines(
    core: Core, judge: Callable[[Ports, MessageReference], Awaitable[None]]
) -> None:
    ports = all_ports(core, {Platform.SLACK: RecordingMessenger()})
    async with core.store.transaction() as transaction:
        claim = Prediction(CLAIM, PredictionKind.CAUSE, "i1", "x", Evaluation(0.5, 0.5), "evidence", "v1", NOW)
        await transaction.predictions.add(claim)
        await transaction.build_failures.save(RecordedFailure(CLAIM, "shop", "a\nb", 0, 1, NOW))
    message = await ports.poster.post_once("details:i1", PLACE, IncidentDetails(explained_incident()))
    await judge(ports, message)
    async with core.store.transaction() as transaction:
        failure = await transaction.build_failures.get(CLAIM)
        (label,) = await transaction.predictions.labels_of(CLAIM)
    assert (label.labelled_by, label.correct) == ("slack:U1", True)
    assert failure is not None
    assert failure.confirmed_by == "slack:U1"
