"""What GET /metrics says of the queue, the sources and the badges; and that no dashboard asks for anything else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import yaml
from prometheus_client import REGISTRY, CollectorRegistry, Metric
from prometheus_client.metrics import MetricWrapperBase

from adapters.model_queue import ModelStatus, RequestOutcome
from bot import telemetry
from bot.tracing import CALIBRATION_EVERY, ModelCollector, StoreCollector, TokenTally, registered
from bot.wiring.ports import MeasuredMessenger
from bot.work import engine, inbox
from core.confidence.measures import ENOUGH
from core.model.badge import Evaluation, Outcome, Prediction, PredictionKind
from core.model.conversation import MessageReference, Place, Platform
from core.model.errors import ChatUnavailable, PlumblineError
from core.model.language_model import Urgency
from core.model.messages import Message, Notice
from core.ports import Ingestion, Task
from tests.fakes.clock import FakeClock
from tests.fakes.messenger import RecordingMessenger
from tests.fakes.store import InMemoryStore

DEPLOY = Path(__file__).parents[3] / "deploy"


@pytest.fixture
def store() -> InMemoryStore:
    return InMemoryStore()


def figure(figures: StoreCollector, name: str, **labels: str) -> float | None:
    registry = CollectorRegistry()
    with registered(figures, registry):
        return registry.get_sample_value(name, labels)


async def add_task(store: InMemoryStore, key: str, at: datetime) -> None:
    async with store.transaction() as transaction:
        await transaction.tasks.add(Task(key, "workflow", key, {}))
    store.tasks.added_at[key] = at


async def test_what_waits_and_for_how_long_is_shown(store: InMemoryStore) -> None:
    clock = FakeClock()
    await add_task(store, "a", clock.now() - timedelta(seconds=90))
    await add_task(store, "b", clock.now() - timedelta(seconds=30))
    async with store.transaction() as transaction:
        await transaction.tasks.claim("me", 1)
    figures = StoreCollector(store, clock)
    await figures.refresh()
    assert figure(figures, "plumbline_tasks_waiting") == 1
    assert figure(figures, "plumbline_tasks_oldest_seconds") == 30
    assert figure(figures, "plumbline_tasks_under_way") == 1
    assert figure(figures, "plumbline_dead_letters") == 0


async def test_how_old_a_source_is_and_whether_it_fails_is_shown(store: InMemoryStore) -> None:
    clock = FakeClock()
    async with store.transaction() as transaction:
        await transaction.ingestions.record(Ingestion("wiki", clock.now() - timedelta(hours=2), 40, "HTTP 502"))
    figures = StoreCollector(store, clock)
    await figures.refresh()
    assert figure(figures, "plumbline_source_age_seconds", source="wiki") == 7200
    assert figure(figures, "plumbline_source_failing", source="wiki") == 1
    assert figure(figures, "plumbline_source_documents", source="wiki") == 40


async def test_how_far_the_badges_of_each_estimator_are_off_is_shown_and_not_measured_at_every_look(
    store: InMemoryStore,
) -> None:
    clock = FakeClock()
    figures = StoreCollector(store, clock)
    await judge(store, clock, ENOUGH)
    await figures.refresh()
    labels = {"kind": "owner", "engine": "evidence", "version": "1"}
    assert figure(figures, "plumbline_calibration_error", **labels) == pytest.approx(0.4)
    limit = figure(figures, "plumbline_calibration_error_limit", **labels)
    assert limit is not None
    assert limit < 0.4
    await judge(store, clock, 2 * ENOUGH)
    await figures.refresh()
    assert figure(figures, "plumbline_calibration_outcomes", **labels) == ENOUGH
    clock.advance(CALIBRATION_EVERY.total_seconds())
    await figures.refresh()
    assert figure(figures, "plumbline_calibration_outcomes", **labels) == 2 * ENOUGH


async def judge(store: InMemoryStore, clock: FakeClock, count: int) -> None:
    """Badges of 90 % of which half come true."""
    for number in range(count):
        made = Prediction(
            f"p{number}",
            PredictionKind.OWNER,
            "i1",
            "payments",
            Evaluation(0.9, 0.9),
            "evidence",
            "1",
            clock.now(),
            probability=0.9,
        )
        async with store.transaction() as transaction:
            await transaction.predictions.add(made)
            await transaction.predictions.label(Outcome(made.id, bool(number % 2), "slack:U1", clock.now()))


async def test_a_database_that_is_down_is_shown_and_nothing_old_beside_it(store: InMemoryStore) -> None:
    figures = StoreCollector(store, FakeClock())
    await figures.refresh()
    assert figure(figures, "plumbline_database_up") == 1
    store.outages = 1
    await figures.refresh()
    assert figure(figures, "plumbline_database_up") == 0
    assert figure(figures, "plumbline_tasks_waiting") is None


# --- calls to the chats ----------------------------------------------------------------------------------------------

PLACE = Place(Platform.SLACK, "C0INC")


def calls(outcome: str) -> float:
    labels = {"platform": "slack", "call": "post", "outcome": outcome}
    return REGISTRY.get_sample_value("plumbline_chat_call_seconds_count", labels) or 0.0


class Failing(RecordingMessenger):
    error: PlumblineError

    async def post(self, place: Place, message: Message, intent: str) -> MessageReference:
        raise self.error


@pytest.mark.parametrize(
    ("error", "outcome"), [(ChatUnavailable("Slack is down."), "waits"), (PlumblineError("Refused."), "failed")]
)
async def test_a_call_that_fails_is_counted_as_what_it_is_and_raised(error: PlumblineError, outcome: str) -> None:
    messenger, before = Failing(), calls(outcome)
    messenger.error = error
    with pytest.raises(type(error)):
        await MeasuredMessenger(Platform.SLACK, messenger).post(PLACE, Notice("x"), "i")
    assert calls(outcome) == before + 1


async def test_a_message_that_was_posted_is_counted() -> None:
    messenger, before = RecordingMessenger(), calls("done")
    await MeasuredMessenger(Platform.SLACK, messenger).post(PLACE, Notice("x"), "i")
    assert calls("done") == before + 1


# --- dashboards and rules --------------------------------------------------------------------------------------------


def served() -> set[str]:
    """The name of every figure that the bot can show."""
    model = ModelStatus("gpu", True, 0, 1, dict.fromkeys(Urgency, 0), {RequestOutcome.ANSWERED: 0})
    metrics: list[Metric] = [
        *StoreCollector(InMemoryStore(), FakeClock()).collect(),
        *ModelCollector(lambda: model, TokenTally()).collect(),
        *(each for module in (telemetry, inbox, engine) for each in _of(module)),
    ]
    suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum"), "gauge": ("",)}
    return {f"{metric.name}{suffix}" for metric in metrics for suffix in suffixes[metric.type]}


def _of(module: object) -> Iterator[Metric]:
    for value in vars(module).values():
        if isinstance(value, MetricWrapperBase):
            yield from value.describe()


def asked() -> dict[str, str]:
    """Every expression of the dashboard and of the alert rules, by where it stands."""
    dashboard = json.loads((DEPLOY / "grafana" / "plumbline.json").read_text(encoding="utf-8"))
    rules = yaml.safe_load((DEPLOY / "prometheus" / "rules.yml").read_text(encoding="utf-8"))
    panels = {
        f"{panel['title']} {target['refId']}": target["expr"]
        for panel in dashboard["panels"]
        for target in panel.get("targets", ())
    }
    return panels | {rule["alert"]: rule["expr"] for group in rules["groups"] for rule in group["rules"]}


async def test_the_dashboard_and_the_rules_ask_for_nothing_that_is_not_served() -> None:
    figures = StoreCollector(store := InMemoryStore(), clock := FakeClock())
    async with store.transaction() as transaction:
        await transaction.ingestions.record(Ingestion("wiki", clock.now(), 1))
    await figures.refresh()
    known = served() | {f"{metric.name}" for metric in figures.collect()}
    missing = {
        where: unknown
        for where, expression in asked().items()
        if (unknown := set(re.findall(r"plumbline_\w+", expression)) - known)
    }
    assert missing == {}


def test_every_figure_of_plumbline_is_on_the_dashboard_or_in_a_rule() -> None:
    bases = {re.sub(r"_(total|bucket|count|sum)$", "", name) for name in served()}
    used = " ".join(asked().values())
    left_out = {"plumbline_model_cached_prompt_share"}  # since the start; the dashboard has that of a span of time
    assert {name for name in bases if name not in used} <= left_out
