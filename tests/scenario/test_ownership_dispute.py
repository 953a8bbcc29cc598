"""An alert whose owner five teams dispute: from the webhook with its secret to the message in the chats.

Everything is real but the model, the chat and the workflow engine: each step is done as soon as it is due.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import mkdtemp

import pytest
from aiohttp.test_utils import TestClient, TestServer

from bot.web.routes import Webhooks, build_app
from bot.web.webhook_sources import webhook_sources
from bot.wiring.application import Core
from bot.wiring.ports import all_ports
from bot.work.inbox import TaskInbox
from core.incidents.incident_details import format_votes, owner_story
from core.incidents.incident_view import incident_view
from core.model.alert import AlertDelivery
from core.model.conversation import Person, Place, Platform
from core.model.errors import ModelUnavailable
from core.model.incident import Incident, Stage
from core.model.language_model import ModelReply, ModelRequest, OnText, ignore_text
from core.model.message_view import Feedback
from core.model.messages import ButtonAction, IncidentMessage
from core.model.team import Team
from core.model_calls.metered_model import Limits
from handlers.common.examine_model import ExaminedModel
from handlers.common.ports import Models
from handlers.incidents.investigate_incident import STOPPED, conclude_investigation, find_cause, reinvestigate
from handlers.incidents.open_incident import open_incident
from handlers.incidents.present_incident import present_incident
from handlers.incidents.triage_incident import WITHOUT_MODEL
from tests.fakes.gated_model import GatedModel
from tests.fakes.language_model import ScriptedModel, passed
from tests.fakes.messenger import RecordingMessenger
from tests.fakes.triage_script import TriageScript
from tests.samples import START
from tests.scenario.company import open_company
from tests.scenario.incident_in_chats import in_teams, on_slack
from tests.scenario.webhooks import alert, delivery

SECRET = "a secret of the monitoring system"
HEADERS = {"Authorization": f"Bearer {SECRET}", "Content-Type": "application/json"}
PLACE = Place(Platform.CONSOLE, "incidents")
TEAMS = [
    Team(name.lower(), name, f"# {name}\nWe run the {what} of the hall.\n", on_call=(f"{name} Quist",))
    for name, what in (
        ("Lighting", "lamps"),
        ("Power", "transformers"),
        ("Network", "switches"),
        ("Security", "doors"),
        ("Cleaning", "floors"),
    )
]


@dataclass(frozen=True)
class Desk:
    """Bots in folders of their own, whose teams have the same claim to an incident of the hall."""

    folder: Path
    limits: Limits = field(default_factory=Limits)

    async def receives(
        self, examined: ExaminedModel | None, *, stopping: bool = False, again: bool = False
    ) -> Incident:
        """The incident as the one message shows it that an alert about the hall leads to.

        With `stopping`, somebody presses “Stop” as soon as the message offers it. With `again`, the model only works when
        it is investigated for the second time.
        """
        async with open_company(Path(mkdtemp(dir=self.folder))) as core:
            return await self._receives(core, examined, stopping=stopping, again=again)

    async def _receives(self, core: Core, examined: ExaminedModel | None, *, stopping: bool, again: bool) -> Incident:
        chat = RecordingMessenger()
        ports = all_ports(core, {Platform.CONSOLE: chat})
        ports = replace(
            ports,
            company=replace(ports.company, teams=TEAMS),
            ownership=replace(ports.ownership, current_teams=None),
            models=Models(examined=examined, limits=self.limits),
        )

        async def accept(arrived: AlertDelivery) -> str | None:
            found = await open_incident(
                arrived, store=core.store, places_for=lambda _: (PLACE,), new_id=lambda: arrived.group_key
            )
            return found.id if found else None

        app = build_app(
            webhooks=Webhooks(webhook_sources({}), accept, SECRET, core.clock),
            chats={},
            ready=ready,
            add_console=lambda app: None,
        )
        body = json.dumps(delivery("hall", alert("hall", service="hall")))
        async with TestClient(TestServer(app)) as http:
            assert (await http.post("/webhooks/alertmanager", data=body)).status == 401
            async with http.post("/webhooks/alertmanager", data=body, headers=HEADERS) as accepted:
                assert accepted.status == 202, await accepted.text()
                incident_id = (await accepted.json())["incident"]
        await present_incident(incident_id, ports)
        if again:
            await find_cause(incident_id, ports.without_model)
            await conclude_investigation(incident_id, ports.store)
            await present_incident(incident_id, ports)
        async with asyncio.TaskGroup() as both:
            both.create_task((reinvestigate if again else find_cause)(incident_id, ports))
            if stopping:
                both.create_task(_stop(chat, TaskInbox(core.store, lambda: None)))
        await present_incident(incident_id, ports)
        return _shown(chat).incident


def _shown(chat: RecordingMessenger) -> IncidentMessage:
    (shown,) = chat.standing.values()
    assert isinstance(shown, IncidentMessage)
    return shown


async def _stop(chat: RecordingMessenger, inbox: TaskInbox) -> None:
    while (stop_id := incident_view(_shown(chat)).subjects.get(ButtonAction.STOP)) is None:  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    await inbox.press(Feedback("press-1", ButtonAction.STOP, stop_id, Person(Platform.CONSOLE, "ada"), PLACE, START))


async def ready() -> str:
    return ""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


async def test_a_vote_of_five_to_none_names_the_owner_with_the_managers_reasons(desk: Desk) -> None:
    without = await desk.receives(None)
    assert without.findings.owner is not None
    assert without.findings.owner.owner is None, "the teams have the same claim"
    model = TriageScript(lambda *_: "power").model(context=32_768)
    found = await desk.receives(await passed(model, writes=True))
    assert found.findings.owner is not None
    assert [(vote.round, vote.choice) for vote in found.findings.owner.votes] == [(1, "power")] * 5
    for shown in (on_slack(found), in_teams(found)):
        assert "Power" in shown
        assert "Power Quist" in shown
        assert WITHOUT_MODEL not in shown
    details = (*owner_story(found), *format_votes(found))
    for team in TEAMS:
        assert f"{team.name} votes for Power" in details
        assert any(f"{team.id} says power" in line.casefold() for line in details)


class Hanging(ScriptedModel):
    async def generate(self, request: ModelRequest, on_text: OnText = ignore_text) -> ModelReply:
        await asyncio.Event().wait()
        raise AssertionError


@pytest.mark.parametrize("again", [False, True])
async def test_a_press_of_stop_in_an_incident_ends_the_work_of_its_model_and_leaves_what_was_found(
    desk: Desk, *, again: bool
) -> None:
    without, model = await desk.receives(None), GatedModel()
    examined = await passed(model, writes=True)
    began = time.monotonic()
    found = await desk.receives(examined, stopping=True, again=again)
    assert time.monotonic() - began < 10, "the model would never have ended"
    assert len(model.cancelled) == model.arrivals.qsize() > 0
    assert (found.stage, found.stop_id, found.findings.cut_short) == (Stage.DONE, "", STOPPED)
    assert found.findings.owner is not None
    assert without.findings.owner is not None
    assert replace(found.findings.owner, prediction_id="") == replace(without.findings.owner, prediction_id="")
    for shown in (on_slack(found), in_teams(found)):
        assert STOPPED in shown
        assert "Stop" not in shown.replace(STOPPED, "")


def down(_: ModelRequest) -> str:
    raise ModelUnavailable("The model is down.")


def lying(request: ModelRequest) -> str:
    """Name a team that does not exist, with orders and links in place of a reason."""
    assert request.schema is not None
    return json.dumps({"reason": "<!channel> see https://evil.example, 99 % sure", "team": "the-night-shift"})


@pytest.mark.parametrize(
    "model", [Hanging(), ScriptedModel(down), ScriptedModel(lying), ScriptedModel(lambda _: '{"reason": "')]
)
async def test_a_model_that_hangs_lies_or_talks_nonsense_leaves_the_message_as_it_is_without_one(
    desk: Desk, model: ScriptedModel
) -> None:
    desk = replace(desk, limits=Limits(seconds=0.5))
    without, found = await desk.receives(None), await desk.receives(await passed(model, writes=True))
    assert without.findings.owner is not None
    assert found.findings.owner is not None
    assert found.findings.owner.note == f"{without.findings.owner.note} {WITHOUT_MODEL}".strip()
    assert replace(found.findings.owner, note="", prediction_id="") == replace(
        without.findings.owner, note="", prediction_id=""
    )
    assert "evil.example" not in on_slack(found) + in_teams(found)
