"""An incident that surely needs nobody may wait, where that is allowed; and it is posted if it does not end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from core.incidents.incident_view import incident_view
from core.model.alert import Severity
from core.model.badge import Holding
from core.model.conversation import Channel, Platform
from core.model.errors import ToolUnavailable
from core.model.incident import Incident, IncidentState
from core.model.messages import IncidentMessage
from core.ports import Change, TimeWindow
from core.triage.paging import Episode, PageHistory, PageModel, fit_paging
from handlers.common.ports import Readers
from handlers.incidents.arrange_incident import watch_incidents
from handlers.incidents.hold_incident import PRESENT_HELD
from handlers.incidents.suggestions import judge_page, learn_pages
from tests.benchmarks import pages
from tests.cases import every_case
from tests.fakes.clock import FakeClock
from tests.fakes.ports import some_ports
from tests.fakes.store import InMemoryStore
from tests.samples import START, incident

CHANNELS = (Channel("incidents", {Platform.SLACK: "C0INC"}),)
ALLOWED = Holding(0.2, timedelta(minutes=10), frozenset({"incidents"}))
NEW = replace(incident(), severity=Severity.WARNING, opened_at=START, resolved_at=None)


class Models:
    """A LearnedStore in memory."""

    def __init__(self, model: PageModel | None = None) -> None:
        self.model = model

    async def load(self) -> PageModel | None:
        return self.model

    load_newest = load

    async def save(self, model: PageModel) -> None:
        self.model = model


class Deployments:
    name = "deployments"

    def __init__(self, *found: Change, failure: str = "") -> None:
        self.found, self.failure = found, failure

    async def changes(self, window: TimeWindow) -> list[Change]:
        if self.failure:
            raise ToolUnavailable(self.failure)
        return [each for each in self.found if window.start <= each.at < window.end]


@pytest.fixture(scope="module")
def model() -> PageModel:
    fitted = fit_paging(pages.generate(1200, seed=5))
    assert fitted is not None
    return fitted


def quiet(count: int = 40) -> list[Episode]:
    """The alert of NEW, so often ended by itself before."""
    times = [START - timedelta(days=1 + number) for number in range(count)]
    new = "PaymentGatewayLatencyHigh", "payment-gateway", Severity.WARNING
    return [Episode(f"e{at}", *new, at, at + timedelta(minutes=5), False) for at in times]


async def judged(
    store: InMemoryStore,
    model: PageModel | None,
    subject: Incident = NEW,
    *,
    holding: Holding = ALLOWED,
    readers: Sequence[Deployments] = (),
    past: Sequence[Episode] = (),
) -> Incident:
    store.incidents.by_id[subject.id] = subject
    models, clock = Models(model), FakeClock(START)

    async def fitted(_: Sequence[Episode]) -> PageModel | None:
        return model

    await learn_pages(pages.generate(400, seed=5), models=models, fit_model=fitted, store=store, clock=clock)
    given = some_ports(
        page_models=models,
        pages=lambda: PageHistory(past or quiet()),
        readers=Readers(changes=readers),
        holding=holding,
        channels=CHANNELS,
        store=store,
        clock=clock,
    )
    return await judge_page(subject, given)


async def test_before_anything_is_learned_the_prior_judges_and_shows_no_percentage() -> None:
    found = await judged(InMemoryStore(), None)
    assert found.findings.page is not None
    assert found.findings.page.from_prior
    assert found.findings.page.badge.probability is not None
    (line,) = [
        each for each in incident_view(IncidentMessage(found)).lines if "person" in each.text or "wait" in each.text
    ]
    assert line.badge is None


@every_case(
    ("probability", "said"), [(0.05, "wait"), (0.2, ""), (0.29, ""), (0.31, "May need"), (0.75, "Probably needs")]
)
async def test_the_prior_is_told_only_if_it_knows_something(probability: float, said: str) -> None:
    found = await judged(InMemoryStore(), None)
    assert found.findings.page is not None
    page = replace(found.findings.page, badge=replace(found.findings.page.badge, probability=probability))
    lines = incident_view(IncidentMessage(found.with_findings(page=page))).lines
    told = " ".join(each.text for each in lines if "person" in each.text or "wait" in each.text)
    assert said in told
    assert bool(told) is bool(said)


async def test_a_critical_incident_never_waits_by_the_prior() -> None:
    store = InMemoryStore()
    found = await judged(store, None, replace(NEW, severity=Severity.CRITICAL), past=quiet(200))
    assert found.findings.page is not None
    assert found.findings.page.held_until is None


async def test_without_a_store_of_models_nothing_is_said() -> None:
    assert await judge_page(NEW, some_ports(store=InMemoryStore())) == NEW


async def test_a_judgement_comes_with_its_evidence_and_a_calibrated_badge(model: PageModel) -> None:
    found = await judged(InMemoryStore(), model)
    assert found.findings.page is not None
    assert found.findings.page.badge.probability is not None
    assert found.findings.page.evidence[0] == "40 of the last 40 ended by themselves"
    assert found.findings.page.held_until == START + timedelta(minutes=10)
    assert (found.findings.page.severity, found.findings.page.has_parent) == (Severity.WARNING, False)
    assert found.is_held_back(START + timedelta(minutes=9))
    assert not found.is_held_back(START + timedelta(minutes=10))


@pytest.mark.parametrize(
    ("subject", "holding"),
    [
        (NEW, Holding()),
        (NEW, replace(ALLOWED, channels=frozenset({"elsewhere"}))),
        (NEW.with_placement(also_in=(replace(NEW.placement.place, channel="C0OTHER"),)), ALLOWED),
        (replace(NEW, severity=Severity.CRITICAL), ALLOWED),
    ],
)
async def test_it_waits_only_where_that_is_allowed_and_never_if_it_is_critical(
    model: PageModel, subject: Incident, holding: Holding
) -> None:
    found = await judged(InMemoryStore(), model, subject, holding=holding)
    assert found.findings.page is not None
    assert found.findings.page.held_until is None


async def test_what_is_held_back_is_posted_at_once_when_it_becomes_critical(model: PageModel) -> None:
    found = await judged(InMemoryStore(), model)
    assert found.findings.page is not None
    assert not replace(found, severity=Severity.CRITICAL).is_held_back(START)


async def test_a_deployment_is_part_of_the_judgement_and_a_tool_that_fails_delays_nothing(model: PageModel) -> None:
    deployed = Change("d1", START - timedelta(minutes=5), "deploy", "payment-gateway", "Ada", "11.2")
    found = await judged(InMemoryStore(), model, readers=[Deployments(deployed)])
    assert found.findings.page is not None
    assert found.findings.page.deploying
    assert "a deployment is in progress" in found.findings.page.evidence
    found = await judged(InMemoryStore(), model, readers=[Deployments(failure="no answer")])
    assert found.findings.page is not None
    assert not found.findings.page.deploying


@pytest.mark.parametrize(("minutes", "is_due"), [(9, False), (10, True)])
async def test_what_does_not_end_in_time_is_posted_with_its_details(
    model: PageModel, minutes: int, is_due: bool
) -> None:
    store = InMemoryStore()
    await judged(store, model)
    clock = FakeClock(START + timedelta(minutes=minutes))
    await watch_incidents(some_ports(store=store, clock=clock))
    assert [task.workflow for task in store.tasks.added.values() if task.workflow == PRESENT_HELD] == [
        PRESENT_HELD
    ] * is_due


async def test_what_ends_in_time_is_not_posted_and_what_ends_later_is(model: PageModel) -> None:
    found = await judged(InMemoryStore(), model)
    over = replace(found, state=IncidentState.RESOLVED, resolved_at=START + timedelta(minutes=4))
    assert over.is_held_back(START + timedelta(hours=1))
    late = replace(over, resolved_at=START + timedelta(minutes=11))
    assert not late.is_held_back(START + timedelta(minutes=12))
