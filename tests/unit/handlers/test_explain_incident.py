from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from adapters.tools.section import kept
from core.confidence.model_estimator import VERSION as ESTIMATOR_VERSION
from core.knowledge.retriever import Retriever
from core.model.alert import Severity
from core.model.badge import PredictionKind
from core.model.document import Document
from core.model.errors import ToolUnavailable
from core.model.findings import Explanation, Gap, GapReason, Origin, PastIncident
from core.model.incident import Incident
from core.model.language_model import ModelReply, ModelRequest, OnText, ignore_text
from core.model.team import Team
from core.model_calls.metered_model import Limits
from core.ports import ChangeReader, LogLine, LogReader, MetricReader, TimeWindow, ToolParameter
from core.rca.explain import redacted_explanation
from core.rca.observation_tools import SEARCH_DOCUMENTS
from core.triage.owner_model import IncidentHistory
from handlers.common.ports import Readers
from handlers.incidents import observe_incident as handler
from handlers.incidents.explain_incident import Show, explain_incident
from handlers.incidents.investigate_with_model import Progress
from tests.fakes.answering import retriever
from tests.fakes.clock import FakeClock
from tests.fakes.investigation import FakeTool, call, finalise, verdicts
from tests.fakes.language_model import ScriptedModel, passed
from tests.fakes.outage import CALLS, START, change, errors, gauge, incident, traffic
from tests.fakes.ports import some_ports
from tests.fakes.predictions import FakePredictionStore
from tests.fakes.tools import (
    BrokenTool,
    FakeChangeReader,
    FakeLogReader,
    FakeMetricReader,
    FakeToolbox,
    SilentTool,
)
from tests.samples import alert

__all__ = ["retriever"]  # the fixture

LOGS = FakeLogReader([*traffic("shop"), *errors("shop", "pool request timed out", since=-10.5)])
METRICS = FakeMetricReader([gauge("shop", "pool_pending", lambda offset: 0 if offset < -10 else 30)])
CHANGES = FakeChangeReader([change("C-1", "shop", -11, "Smaller pool", "config")])
UNSURE = Readers(
    [FakeLogReader([*traffic("shop"), *errors("shop", "request failed", since=-8)])],
    [],
    [FakeChangeReader([change("C-1", "shop", -9, "Rename a helper"), change("C-2", "shop", -10, "Tidy up")])],
    {},
)  # of which the cause cannot be told surely
HISTORY = IncidentHistory(
    [
        PastIncident("INC-1", "ShopLatencyHigh", "", "shop", Severity.WARNING, START, "sales", root_cause="Pool of 4"),
        PastIncident("INC-2", "Printer on fire", "", "press", Severity.WARNING, START, "press"),
    ]
)

Explain = Callable[..., Awaitable[Incident]]


@pytest.fixture
def store() -> FakePredictionStore:
    return FakePredictionStore()


@pytest.fixture
def explain(store: FakePredictionStore) -> Explain:
    return partial(explained, store=store)


async def explained(
    subject: Incident,
    *,
    store: FakePredictionStore,
    logs: Sequence[LogReader] = (LOGS,),
    metrics: Sequence[MetricReader] = (METRICS,),
    changes: Sequence[ChangeReader] = (CHANGES,),
) -> Incident:
    return await explain_incident(
        subject,
        some_ports(readers=Readers(logs, metrics, changes, CALLS), store=store, clock=FakeClock(START)),
        history=HISTORY,
    )


async def test_the_cause_is_found_and_stored_with_its_badge(explain: Explain, store: FakePredictionStore) -> None:
    found = (await explain(incident())).findings.explanation
    assert found is not None
    assert found.cause is not None
    assert "C-1" in found.cause.cause
    assert found.badge is not None
    (prediction,) = store.predictions.values()
    assert (prediction.id, prediction.kind, prediction.value) == (
        found.prediction_id,
        PredictionKind.CAUSE,
        found.cause.cause,
    )


async def test_running_twice_makes_one_prediction(explain: Explain, store: FakePredictionStore) -> None:
    assert await explain(incident()) == await explain(incident())
    assert len(store.predictions) == 1


async def test_the_alert_of_what_the_alerts_say_does_not_answer_is_the_cause(
    explain: Explain, store: FakePredictionStore
) -> None:
    said = replace(
        alert(), service="till", starts_at=START, description="dial tcp: connection to orders-db:5432 refused"
    )
    down = replace(
        alert(), starts_at=START, name="PostgresDown", summary="", service="", labels={"instance": "orders-db:5432"}
    )
    store.incidents = [replace(incident(), id="db", service="", labels=down.labels, alerts=(down,))]
    nothing = {"logs": [], "metrics": [], "changes": []}
    till = replace(incident(), service="till", alerts=(said,), labels={})
    for subject in (till, replace(till, alerts=(said, down))):
        found = (await explain(subject, **nothing)).findings.cause
        assert found is not None
        assert (found.service, found.origin) == ("orders-db", Origin.SERVICE)
        assert "orders-db has the alert “PostgresDown”" in found.cause
        store.incidents = []
    assert (await explain(till, **nothing)).findings.cause is None, "nothing fires there"
    before = replace(down, starts_at=said.starts_at - timedelta(hours=1))
    assert (await explain(replace(till, alerts=(said, before)), **nothing)).findings.cause is None, "it did so before"


async def test_without_a_culprit_there_is_no_badge_and_no_prediction(
    explain: Explain, store: FakePredictionStore
) -> None:
    found = (await explain(incident(), logs=[], metrics=[], changes=[])).findings.explanation
    assert found is not None
    assert (found.cause, found.badge, found.prediction_id) == (None, None, None)
    assert store.predictions == {}


async def test_similar_past_incidents_are_shown_and_others_are_not(explain: Explain) -> None:
    found = (await explain(incident())).findings.explanation
    assert found is not None
    assert [past.id for past in found.similar] == ["INC-1"]


async def test_the_service_its_callees_and_its_callers_are_read(explain: Explain) -> None:
    logs = FakeLogReader()
    await explain(incident(), logs=[logs])
    assert logs.asked == ["shop", "cart", "login", "stock", "vault", "edge"]


def failed(explanation: Explanation) -> list[Gap]:
    return [gap for gap in explanation.gaps if gap.reason.is_failure]


async def test_what_has_no_data_of_the_time_is_named(explain: Explain) -> None:
    found = (await explain(incident(), logs=[FakeLogReader([])], changes=[CHANGES])).findings.explanation
    assert found is not None
    assert [gap.reason for gap in found.gaps] == [GapReason.OUT_OF_WINDOW]
    assert not any("unusual log message" in line for line in found.ruled_out), "what was not read is not called calm"


class BrokenLogs(FakeLogReader):
    """A reader of somebody else's package that raises what it should not."""

    async def lines(self, service: str, window: TimeWindow, limit: int) -> list[LogLine]:
        raise OverflowError("date value out of range")


async def test_reader_that_raises_anything_is_named_and_the_rest_goes_on(explain: Explain) -> None:
    found = (await explain(incident(), logs=[BrokenLogs()])).findings.explanation
    assert found is not None
    assert [gap.text.partition(": ")[2] for gap in failed(found)] == [
        "failed (unexpected error OverflowError; see the log)"
    ]
    assert found.cause is not None, "the changes and metrics were read"


class PartialLogs(FakeLogReader):
    """Could not read one of its logs."""

    async def lines(self, service: str, window: TimeWindow, limit: int) -> list[LogLine]:
        async def never() -> list[LogLine]:
            await asyncio.Event().wait()
            return []

        return await kept(self.name, [("main", super().lines(service, window, limit)), ("sidecar", never())])


@pytest.mark.parametrize("lines", [(), (*traffic("shop"), *errors("shop", "pool request timed out", since=-10.5))])
async def test_what_was_read_before_a_slow_part_is_kept_and_nothing_is_said_of_the_rest(
    lines: Sequence[LogLine], explain: Explain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handler, "DEADLINE", 0.5)
    found = (await explain(incident(), logs=[PartialLogs(lines, "loki")], changes=[CHANGES])).findings.explanation
    assert found is not None
    assert [(gap.tool, gap.reason) for gap in found.gaps] == [("loki: sidecar", GapReason.TIMED_OUT)]
    quotes = [entry.text for entry in found.timeline]
    assert any("pool request timed out" in text for text in quotes) is bool(lines)


def test_the_reason_of_a_server_is_redacted_like_every_text_of_another_system() -> None:
    said = Gap("loki", GapReason.FAILED, "HTTP status 400: asha@marigold.example may not (5000 > 1000)")
    clean = redacted_explanation(
        Explanation((), (), (), (), gaps=(said,)), lambda text: text.replace("asha@marigold.example", "[email]")
    )
    assert [gap.text for gap in clean.gaps] == ["loki: failed (HTTP status 400: [email] may not (5000 > 1000))"]


async def test_a_failing_tool_is_named_and_the_rest_goes_on(explain: Explain) -> None:
    broken = BrokenTool("loki")
    found = (await explain(incident(), logs=[broken, LOGS], changes=[CHANGES, broken])).findings.explanation
    assert found is not None
    assert found.cause is not None
    assert failed(found) == [Gap("loki", GapReason.FAILED, "The system is down")]


async def test_a_tool_that_never_answers_is_named_and_the_rest_goes_on(
    explain: Explain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handler, "DEADLINE", 0.01)
    found = (await explain(incident(), logs=[SilentTool("loki"), LOGS])).findings.explanation
    assert found is not None
    assert found.cause is not None
    assert [(gap.tool, gap.reason) for gap in failed(found)] == [("loki", GapReason.TIMED_OUT)]


async def test_a_service_that_only_the_text_names_is_read(explain: Explain) -> None:
    found = (
        await explain(incident(service="", title="Customers say that the shop, since today, is slow"))
    ).findings.explanation
    assert found is not None
    assert found.cause is not None
    assert found.cause.service == "shop"


async def test_an_incident_about_nothing_known_reads_nothing(explain: Explain) -> None:
    logs = FakeLogReader()
    await explain(incident(service="", title="marmalade"), logs=[logs])
    assert logs.asked == []


async def test_records_that_were_too_many_to_read_make_nothing_new(
    explain: Explain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handler, "MAX_LOG_LINES", 40)
    logs = FakeLogReader([*traffic("shop"), *traffic("cart", per_minute=1)])
    found = (await explain(incident(), logs=[logs], metrics=[], changes=[])).findings.explanation
    assert found is not None
    assert [entry.text for entry in found.timeline] == ["Alert: ShopLatencyHigh"]


async def test_a_cause_is_of_the_team_that_runs_the_service_to_blame(store: FakePredictionStore) -> None:
    for number, teams in enumerate([(), (Team("sales", "Sales", services=frozenset({"shop"})),)]):
        await explain_incident(
            replace(incident(), id=f"I-{number}"),
            some_ports(
                readers=Readers((LOGS,), (METRICS,), (CHANGES,), CALLS),
                store=store,
                clock=FakeClock(START),
                teams=teams,
            ),
            history=HISTORY,
        )
    assert [(made.group, made.references) for made in store.predictions.values()] == [
        ("shop", ("INC-1",)),
        ("sales", ("INC-1",)),
    ]


async def test_what_a_model_finds_is_judged_in_two_steps_by_how_earlier_cases_ended(
    store: FakePredictionStore,
) -> None:
    model = ScriptedModel(
        finding("So it is."), odds=lambda _, choices: {choices[-2]: 1.0}, context=100_000, name="local-8b"
    )
    before = replace(HISTORY.incidents[0], started_at=START - timedelta(days=30))
    later = replace(before, id="INC-3", root_cause="Settled afterwards", started_at=START + timedelta(days=1))
    found = await explain_incident(
        incident(),
        some_ports(
            readers=UNSURE,
            store=store,
            clock=FakeClock(START),
            examined=await passed(model, writes=True, tools=True),
            judge=model,
        ),
        history=IncidentHistory([before, later]),
    )
    assert found.findings.explanation is not None
    versions = {each.engine: each.estimator_version for each in store.predictions.values()}
    assert versions["local-8b"] == f"{ESTIMATOR_VERSION}:local-8b"
    judged = [each.messages[-1].text for each in model.requests if "similar" not in each.messages[-1].text]
    assert judged


def finding(analysis: str = "") -> Callable[[ModelRequest], str]:
    """Return a script that looks twice and names a change; a request without a schema is answered with the analysis."""
    looks = [call("read_logs", service="shop"), call("list_changes", service="every service")]

    def reply(request: ModelRequest) -> str:
        found = finalise("C-2 broke the shop.", "shop", change="C-2", evidence=["request failed"])
        said = verdicts(request) or (analysis if request.schema is None else None)
        return said if said is not None else looks.pop(0) if looks else found

    return reply


async def test_an_investigating_model_searches_what_the_readers_of_the_incident_may_read_and_follows_a_runbook(
    store: FakePredictionStore, retriever: Retriever
) -> None:
    said = [
        call("read_logs", service="shop"),
        call(SEARCH_DOCUMENTS, question="rebuild the shelf index"),
        call(SEARCH_DOCUMENTS, question="where is the master key"),
        finalise(
            "request failed",
            "shop",
            evidence=["request failed"],
            solution="Rebuild the shelf index with `shelf reindex --all`. Run `shelf drop --all`.",
        ),
    ]
    model = ScriptedModel(lambda request: verdicts(request) or said.pop(0), context=100_000, name="local-8b")
    ports = some_ports(
        readers=UNSURE,
        store=store,
        clock=FakeClock(START),
        examined=await passed(model, writes=True, tools=True),
        retriever=retriever,
        limits=Limits(samples=0),
    )
    found = (await explain_incident(incident(), ports, history=HISTORY)).findings.explanation
    assert found is not None
    assert found.trajectory is not None
    runbook, vault = (step.shown for step in found.trajectory.steps[1:])
    assert "shelf reindex --all" in runbook
    assert "heliotrope" not in vault
    assert [each.solution for each in found.hypotheses if each.solution] == [
        "Rebuild the shelf index with `shelf reindex --all`."
    ]
    assert found.trajectory.left_out == 1
    assert not any("shelf" in each.quote for cause in found.hypotheses for each in cause.evidence)


@dataclass
class FakeGraph:
    """Says which service calls which, or fails."""

    calls: dict[str, tuple[str, ...]]
    name: str = "traces"
    fails: bool = False

    async def dependencies(self, window: TimeWindow) -> dict[str, tuple[str, ...]]:
        assert window.end > START > window.start
        if self.fails:
            raise ToolUnavailable("It is down.")
        return self.calls


async def looked_into(
    readers: Readers,
    store: FakePredictionStore,
    progress: Progress | None = None,
    show: Show | None = None,
    **ports: Any,
) -> Incident:
    given = some_ports(readers=readers, store=store, clock=FakeClock(START), **ports)
    return await explain_incident(incident(), given, history=HISTORY, progress=progress, show=show)


async def test_what_traces_show_of_the_graph_is_added_to_what_is_configured(store: FakePredictionStore) -> None:
    logs = FakeLogReader([*traffic("shop"), *traffic("ledger"), *errors("ledger", "FATAL disk full", since=-9)])
    graphs = [FakeGraph({"shop": ("ledger",), "ledger": ("vault",)}), FakeGraph({}, "zipkin", fails=True)]
    found = (await looked_into(Readers([logs], (), (), {"shop": ("cart",)}, graphs=graphs), store)).findings.explanation
    assert logs.asked == ["shop", "cart", "ledger", "vault"]
    assert found is not None
    assert found.cause is not None
    assert found.cause.service == "ledger"
    assert failed(found) == [Gap("zipkin", GapReason.FAILED, "It is down")]
    assert Gap("metrics", GapReason.MISSING) in found.gaps


async def test_what_the_tools_of_an_outside_system_say_is_read_without_a_language_model(
    store: FakePredictionStore,
) -> None:
    killed = FakeTool(
        "pods", "ERROR worker was OOMKilled: out of memory", (ToolParameter("service", "", ("shop", "till")),)
    )
    search = FakeTool("search", parameters=(ToolParameter("query", ""),))
    down = FakeTool("events", parameters=(), fails=True)
    readers = Readers((), (), (), CALLS, toolboxes=[FakeToolbox("k8s", [killed, search, down])])
    found = (await looked_into(readers, store)).findings.explanation
    assert (killed.calls, search.calls) == ([{"service": "shop"}], [])
    assert found is not None
    assert found.cause is not None
    assert found.cause.evidence[0].quote == killed.says
    assert failed(found) == [Gap("events", GapReason.FAILED, "log store: connection refused")]


@pytest.mark.parametrize("patience", [0.0, 60.0])
async def test_what_is_being_done_is_told_at_every_step_that_takes_a_while(
    patience: float, store: FakePredictionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handlers.incidents.explain_incident.PROGRESS_DELAY", patience)
    told: list[str] = []

    async def progress(doing: str) -> None:
        told.append(doing)

    await looked_into(Readers([LOGS], [METRICS], [CHANGES], CALLS), store, progress=progress)
    if patience:
        assert told == []
    else:
        assert told[0] == "reading logs, metrics, changes and tools"
        assert told[1].endswith("log records, 1 metric, 1 change with the time before the incident")


class HangingModel(ScriptedModel):
    """Takes a request and never replies."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()

    async def generate(self, request: ModelRequest, on_text: OnText = ignore_text) -> ModelReply:
        self.asked.set()
        await asyncio.Event().wait()
        raise AssertionError


async def test_while_a_model_never_answers_what_the_evidence_says_is_shown(store: FakePredictionStore) -> None:
    shown: list[Incident] = []

    async def show(found: Incident) -> None:
        assert not model.asked.is_set()
        shown.append(found)

    model = HangingModel()
    waiting = asyncio.ensure_future(looked_into(UNSURE, store, examined=await passed(model, tools=True), show=show))
    await model.asked.wait()
    waiting.cancel()
    await asyncio.wait([waiting])
    (found,) = [each.findings.explanation for each in shown]
    assert found is not None
    assert found.cause is not None
    assert (found.engine, found.badge is not None) == ("evidence", True)
    assert [prediction.value for prediction in store.predictions.values()] == [found.cause.cause]


async def test_what_a_model_finds_after_what_was_shown_is_a_claim_of_its_own(store: FakePredictionStore) -> None:
    shown: list[Incident] = []

    async def show(found: Incident) -> None:
        shown.append(found)

    model = ScriptedModel(finding(), context=100_000)
    found = await looked_into(UNSURE, store, examined=await passed(model, writes=True, tools=True), show=show)
    first, last = shown[0].findings.explanation, found.findings.explanation
    assert first is not None
    assert last is not None
    assert last.engine == "scripted"
    assert first.prediction_id != last.prediction_id
    assert store.predictions.keys() == {first.prediction_id, last.prediction_id}


async def test_secrets_in_what_was_read_are_not_shown(store: FakePredictionStore) -> None:
    def redact(document: Document) -> Document:
        return replace(document, text=document.text.replace("Smaller", "[name]").replace("timed", "[secret]"))

    found = await looked_into(Readers([LOGS], [METRICS], [CHANGES], CALLS), store, redact=redact)
    assert "Smaller" not in repr(found.findings.explanation)
    assert "timed" not in repr(found.findings.explanation)
    assert "[name] pool" in repr(found.findings.explanation)
