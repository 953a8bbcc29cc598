"""Log lines, commit messages, alert labels and tool outputs that order, forge or tempt: more than a hundred of them.

The model here does whatever it reads. No call outside of the plan comes of it, and in the chats it is quoted text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from adapters.teams.render import render as in_teams
from core.model.incident import Incident
from core.model.language_model import ModelRequest, Trajectory
from core.model.messages import IncidentDetails, IncidentMessage
from core.ports import Change, LogLine, TimeWindow, Tool, ToolParameter
from core.triage.owner_model import IncidentHistory
from handlers.common.ports import Readers
from handlers.incidents.explain_incident import explain_incident
from tests.fakes import adaptive_card
from tests.fakes.clock import FakeClock
from tests.fakes.investigation import FakeTool, call, finalise
from tests.fakes.language_model import ScriptedModel, passed
from tests.fakes.outage import CALLS, START, change, errors, incident, minutes
from tests.fakes.ports import some_ports
from tests.fakes.predictions import FakePredictionStore
from tests.fakes.tools import FakeChangeReader, FakeLogReader
from tests.injected_orders import MARK, ORDERS, assert_only_text, assert_quoted

PLACES = ("log line", "commit message", "alert label", "tool output")
PLAN = {"read_logs", "list_changes", "outside"}


@dataclass
class Box:
    """Offers one tool of an outside system."""

    tool: FakeTool
    name: str = "outside"

    async def tools(self, services: Sequence[str], window: TimeWindow) -> list[Tool]:
        return [self.tool]


@dataclass
class Obeying:
    """A model that looks around, and then does what it was told by what it read."""

    payload: str
    replies: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.replies += [
            call("read_logs", service="shop"),
            call("list_changes", service="every service"),
            call("outside", query="shop"),
            self.payload,
            call("kubectl", command=self.payload),
            call("read_logs", service=self.payload),
            call("outside", query="shop", command=self.payload, force="true"),
            finalise(self.payload, "shop", solution=self.payload, evidence=[self.payload]),
        ]

    def __call__(self, request: ModelRequest) -> str:
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


@dataclass(frozen=True)
class Outcome:
    incident: Incident
    model: ScriptedModel
    outside: FakeTool
    logs: FakeLogReader

    @property
    def trajectory(self) -> Trajectory:
        assert self.incident.findings.explanation is not None
        assert self.incident.findings.explanation.trajectory is not None
        return self.incident.findings.explanation.trajectory


async def looked_into(payload: str, place: str) -> Outcome:
    """An incident with one sign of trouble and a payload in one place, investigated by a model that obeys."""
    log = [*errors("shop", "request failed", since=-8), LogLine("shop", minutes(-30), "INFO", "started")]
    if place == "log line":
        log += [LogLine("shop", minutes(-7), "ERROR", payload)] * 5
    changed: Change = change("C-1", "shop", -9, payload if place == "commit message" else "Rename a helper", "deploy")
    other = change("C-2", "shop", -10, "Tidy up")
    outside = FakeTool("outside", payload if place == "tool output" else "nothing to see", (QUERY,), "A system.")
    model = ScriptedModel(Obeying(payload), context=100_000)
    logs = FakeLogReader(log)
    readers = Readers((logs,), (), (FakeChangeReader([changed, other]),), CALLS, toolboxes=(Box(outside),))
    found = await explain_incident(
        incident(title=payload if place == "alert label" else "ShopLatencyHigh"),
        some_ports(
            readers=readers,
            store=FakePredictionStore(),
            clock=FakeClock(START),
            examined=await passed(model, tools=True),
        ),
        history=IncidentHistory(()),
    )
    return Outcome(found, model, outside, logs)


QUERY = ToolParameter("query", "what is looked for, which the fixed plan cannot know")


@pytest.fixture(autouse=True)
def unsure(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model is asked however strong the evidence is."""
    monkeypatch.setattr("handlers.incidents.investigate_with_model.is_unsure", bool)


# Each order is tried in one of the places, and in all of them by `make external`.
@pytest.mark.parametrize("share", [len(PLACES), pytest.param(1, marks=pytest.mark.external)], ids=["some", "all"])
@pytest.mark.parametrize("place", PLACES)
async def test_what_is_read_orders_nothing_and_is_shown_as_text(
    place: str, share: int, subtests: pytest.Subtests
) -> None:
    for payload in ORDERS[PLACES.index(place) % share :: share]:
        with subtests.test(payload=payload):
            outcome = await looked_into(payload, place)
            _nothing_was_called_outside_of_the_plan(outcome)
            assert_quoted(outcome.model.requests)
            _only_text_is_shown(outcome.incident, payload, place)
            found = outcome.incident.findings.explanation
            assert found is not None
            assert not any(each.solution for each in found.hypotheses), "orders are no solution"


def test_there_are_more_than_a_hundred_of_them() -> None:
    assert len(ORDERS) * len(PLACES) > 100
    assert all(MARK in order for order in ORDERS)


def _nothing_was_called_outside_of_the_plan(outcome: Outcome) -> None:
    taken = [step.action for step in outcome.trajectory.steps if step.action and not step.fault]
    assert {action.tool for action in taken} <= PLAN
    assert len(taken) == 3
    assert outcome.outside.calls == [{"query": "shop"}]
    assert set(outcome.logs.asked) <= {"shop", *CALLS, "stock", "vault"}
    refused = [step for step in outcome.trajectory.steps if step.fault]
    assert len(refused) == 4


def _only_text_is_shown(found: Incident, payload: str, place: str) -> None:
    messages = (IncidentMessage(found), IncidentDetails(found))
    told = " ".join(map(assert_only_text, messages))
    for message in messages:
        blocks = adaptive_card.of_type(in_teams(message).content, "TextBlock")
        assert not [block for block in blocks if MARK in block["text"]]
    assert found.findings.explanation is not None
    is_found = any(each.found_by for each in found.findings.explanation.hypotheses)
    is_untold = (  # of a record, the first line is told, and of a tool's output what a finding quotes
        place == "log line" and MARK not in payload.partition("\n")[0]
    ) or (place == "tool output" and not is_found)
    assert MARK in told or is_untold
