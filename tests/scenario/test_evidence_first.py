"""Nobody waits for a language model: what the evidence says stands in the message while it is asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.wiring.application import Core
from bot.wiring.ports import all_ports
from core.incidents.incident_questions import CommandName
from core.model.conversation import Audience, Person, Place, Platform, Question
from core.model.errors import ModelUnavailable
from core.model.incident import Incident, Stage
from core.model.language_model import ModelRequest
from core.model.messages import IncidentMessage
from handlers.incidents.explain_incident import LOOKS_CLOSER
from handlers.incidents.investigate_incident import find_cause, triage_again
from handlers.questions.run_command import run_command
from tests.fakes.language_model import ScriptedModel, passed
from tests.fakes.messenger import RecordingMessenger
from tests.samples import explained_incident
from tests.scenario.company import open_company
from tests.scenario.incident_in_chats import CHATS
from tests.scenario.slack import TIMEOUT


class HangingModel(ScriptedModel):
    """Replies to nothing until it `fails`."""

    def __init__(self) -> None:
        super().__init__(context=32_768)
        self.asked, self.fails = asyncio.Event(), asyncio.Event()

    async def expect(self, request: ModelRequest, choices: object) -> dict[str, float]:
        self.asked.set()
        await self.fails.wait()
        raise ModelUnavailable("It never answered.")


@pytest.fixture
async def core(tmp_path: Path) -> AsyncIterator[Core]:
    async with open_company(tmp_path) as core:
        yield core


async def asked(model: HangingModel) -> None:
    async with asyncio.timeout(TIMEOUT):
        await model.asked.wait()


@pytest.fixture(autouse=True)
def undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    """The managers of this company always agree; here the model is asked all the same."""
    monkeypatch.setattr("handlers.incidents.triage_incident.needs_model", lambda *_: True)


async def with_model(core: Core, model: ScriptedModel) -> Core:
    """Return the core with a model that passed its exam."""
    return replace(core, model=model, examined=await passed(model))


def raised() -> Incident:
    began = datetime.now(UTC) - timedelta(minutes=4)
    return explained_incident(
        id="i1",
        place=Place(Platform.CONSOLE, "incidents"),
        title="till p99 latency above 2 s",
        service="till",
        started_at=began,
        opened_at=began,
        updated_at=began,
        owner=None,
        explanation=None,
        message=None,
        stage=Stage.EXPLAINING,
    )


async def stored(core: Core) -> Incident:
    async with core.store.transaction() as transaction:
        incident = await transaction.incidents.get("i1")
    assert incident is not None
    return incident


async def test_owner_and_cause_stand_there_while_a_model_never_answers(core: Core) -> None:
    async with core.store.transaction() as transaction:
        await transaction.incidents.save(raised())
    chat, model = RecordingMessenger(), HangingModel()
    ports = all_ports(await with_model(core, model), {Platform.CONSOLE: chat})
    step = asyncio.ensure_future(find_cause("i1", ports))
    await asked(model)
    (shown,) = [message for _, message in chat.posted]
    assert isinstance(shown, IncidentMessage)
    meanwhile = shown.incident
    assert (meanwhile.stage, meanwhile.progress) == (Stage.EXPLAINING, LOOKS_CLOSER)
    assert meanwhile.findings.owner is not None
    assert meanwhile.findings.owner.owner is not None
    assert meanwhile.findings.owner.owner.team_id == "payments"
    assert meanwhile.findings.explanation is not None
    assert meanwhile.findings.explanation.cause is not None
    assert "pool" in meanwhile.findings.explanation.cause.cause
    assert meanwhile.findings.explanation.badge is not None

    model.fails.set()
    await step
    done = await stored(core)
    assert (done.stage, done.progress) == (Stage.DONE, "")
    assert done.findings.explanation is not None
    assert done.findings.explanation.prediction_id == meanwhile.findings.explanation.prediction_id
    assert done.findings.owner is not None
    assert done.findings.owner.prediction_id == meanwhile.findings.owner.prediction_id, "the same claim"


async def test_who_should_own_it_instead_stands_there_while_a_model_never_answers(core: Core) -> None:
    async with core.store.transaction() as transaction:
        await transaction.incidents.save(replace(raised(), stage=Stage.DONE))
    chat, model = RecordingMessenger(), HangingModel()
    ports = all_ports(await with_model(core, model), {Platform.CONSOLE: chat})
    step = asyncio.ensure_future(triage_again("i1", ports))
    await asked(model)
    owner = (await stored(core)).findings.owner
    assert owner is not None
    assert owner.owner is not None
    assert len(chat.posted) == 1
    model.fails.set()
    await step
    assert (await stored(core)).progress == ""


@pytest.mark.parametrize("command", [CommandName.TRIAGE, CommandName.RCA])
async def test_who_asks_sees_at_once_what_the_evidence_says(core: Core, command: CommandName) -> None:
    chat, model = RecordingMessenger(), HangingModel()
    ports = all_ports(await with_model(core, model), {Platform.CONSOLE: chat})
    place = Place(Platform.CONSOLE, "incidents", "7")
    pasted = f"{command} till p99 latency above 2 s"
    asker = Person(Platform.CONSOLE, "operator")
    answering = asyncio.ensure_future(
        run_command(Question("q1", pasted, asker, place, Audience(), datetime.now(UTC)), ports)
    )
    await asked(model)
    (meanwhile,) = chat.standing.values()
    assert isinstance(meanwhile, IncidentMessage)
    assert meanwhile.incident.stage is not Stage.DONE
    assert meanwhile.incident.progress == LOOKS_CLOSER
    assert meanwhile.incident.findings.owner is not None
    assert meanwhile.incident.findings.owner.owner is not None
    assert meanwhile.incident.findings.owner.owner.team_id == "payments"
    if command is CommandName.RCA:
        assert meanwhile.incident.findings.explanation is not None
    model.fails.set()
    await answering
    done = [message.incident for message in chat.standing.values() if isinstance(message, IncidentMessage)]
    assert [(each.stage, each.progress) for each in done] == [(Stage.DONE, "")]


@pytest.mark.parametrize("chat", CHATS)
def test_every_chat_says_that_more_may_come_of_an_owner(chat: Callable[[Incident], str]) -> None:
    under_way = explained_incident(stage=Stage.TRIAGING, progress=LOOKS_CLOSER, explanation=None)
    assert LOOKS_CLOSER in chat(under_way)
    assert LOOKS_CLOSER not in chat(replace(under_way, stage=Stage.DONE, progress=""))


@pytest.mark.parametrize("chat", CHATS)
def test_every_chat_says_that_more_may_come(chat: Callable[[Incident], str]) -> None:
    under_way = explained_incident(stage=Stage.EXPLAINING, progress=LOOKS_CLOSER)
    assert LOOKS_CLOSER in chat(under_way)
    assert LOOKS_CLOSER not in chat(replace(under_way, stage=Stage.DONE))
