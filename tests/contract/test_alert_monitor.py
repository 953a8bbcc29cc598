"""What monitoring systems are asked about alerts, over what their APIs are documented to answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from adapters.http import Http
from adapters.tools.alertmanager import MAX_SILENCES, Alertmanager, PrometheusAlerts
from core.model.alert import AlertStatus
from core.model.errors import ToolUnavailable
from core.model.silences import silenced_now
from core.ports import AlertState
from tests.fakes.alert_systems import FIRING, INCIDENT, NOW, Systems, known_alert, rule, silence


@pytest.fixture
def systems() -> Systems:
    return Systems()


@pytest.fixture
async def http(systems: Systems) -> AsyncIterator[Http]:
    app = web.Application()
    app.router.add_get("/{path:.*}", systems.answer)
    async with TestServer(app) as server, aiohttp.ClientSession() as session:
        yield Http("The system", str(server.make_url("/")), session)


@pytest.fixture
def alertmanager(http: Http) -> Alertmanager:
    return Alertmanager("Alertmanager", http, "alertmanager")


@pytest.mark.parametrize(("fingerprint", "expected"), [("f1", True), ("f2", False)])
async def test_an_alert_fires_that_alertmanager_knows_silenced_or_not(
    systems: Systems, alertmanager: Alertmanager, fingerprint: str, *, expected: bool
) -> None:
    systems.alerts = [known_alert(fingerprint, "suppressed")]
    assert (await alertmanager.firing(INCIDENT)).fires is expected


async def test_an_alertmanager_that_has_just_started_cannot_tell(systems: Systems, alertmanager: Alertmanager) -> None:
    systems.up_since = datetime.now(UTC)
    assert await alertmanager.firing(INCIDENT) == AlertState(None, "it started a moment ago")


async def test_of_what_another_system_sent_alertmanager_cannot_tell(
    systems: Systems, alertmanager: Alertmanager
) -> None:
    assert await alertmanager.firing(replace(INCIDENT, source="pagerduty")) == AlertState(None)
    assert systems.asked == []


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (silence(), True),
        (silence(value="n.*", isRegex=True), True),
        (silence(value="south"), False),
        (silence(value="south", isEqual=False), True),
        (silence("expired"), False),
        (silence("pending"), False),
    ],
)
async def test_a_silence_in_force_silences_what_it_matches(
    systems: Systems, alertmanager: Alertmanager, told: dict[str, Any], *, expected: bool
) -> None:
    systems.silences = [told]
    silenced = silenced_now(INCIDENT, await alertmanager.silences(), (), NOW)
    assert (silenced is not None) is expected
    if silenced is not None:
        assert (silenced.silenced_by, silenced.reason) == ("Alertmanager", "new ledger")


async def test_the_silences_in_force_are_read_before_those_that_are_over(
    systems: Systems, alertmanager: Alertmanager
) -> None:
    systems.silences = [*[silence("expired")] * MAX_SILENCES, silence()]
    assert len(await alertmanager.silences()) == 1


async def test_a_storm_asks_for_the_silences_once(systems: Systems, alertmanager: Alertmanager) -> None:
    for _ in range(20):
        await alertmanager.silences()
    assert systems.asked == ["/api/v2/silences"]


NOT_EVALUATED = "the rule Slow was not evaluated"


@pytest.mark.parametrize(
    ("rules", "expected", "reason"),
    [
        ([rule(cluster="north")], True, ""),
        ([rule(cluster="south")], False, ""),
        ([rule(state="pending", cluster="north")], None, "the rule Slow is pending"),
        ([rule(state="pending", cluster="south")], False, ""),
        ([rule(state="")], False, ""),
        (
            [rule(state="", health="err", error="many-to-many matching")],
            None,
            f"{NOT_EVALUATED} (many-to-many matching)",
        ),
        ([rule(state="", health="unknown")], None, f"{NOT_EVALUATED} (unknown)"),
        ([rule(state="", health="nodata")], None, f"{NOT_EVALUATED} (nodata)"),
        ([rule(state=""), rule(state="", health="err")], None, f"{NOT_EVALUATED} (err)"),
        ([rule(state="", health="err"), rule(cluster="north")], True, ""),
        ([rule(state=""), rule("Another", "", "err")], False, ""),
        ([rule("Another", cluster="north")], None, ""),
        ([], None, ""),
    ],
)
async def test_prometheus_tells_by_the_labels_of_the_rules_that_it_has_and_could_evaluate(
    systems: Systems, http: Http, rules: list[dict[str, Any]], *, expected: bool | None, reason: str
) -> None:
    systems.rules = rules
    assert await PrometheusAlerts("Prometheus", http).firing(INCIDENT) == AlertState(expected, reason)


async def test_a_ruler_that_did_not_answer_leaves_the_state_unknown(systems: Systems, http: Http) -> None:
    systems.rules, systems.warnings = [rule(state="")], ["the ruler at 10.0.0.4 did not answer"]
    assert await PrometheusAlerts("Thanos", http).firing(INCIDENT) == AlertState(None, systems.warnings[0])


async def test_a_system_that_answers_nonsense_is_unavailable(
    systems: Systems, http: Http, alertmanager: Alertmanager
) -> None:
    systems.alerts = systems.silences = systems.rules = {"not": "a list"}
    for question in (
        alertmanager.firing(INCIDENT),
        PrometheusAlerts("P", http).firing(INCIDENT),
        alertmanager.silences(),
    ):
        with pytest.raises(ToolUnavailable):
            await question


async def test_what_is_over_is_not_asked_about(systems: Systems, alertmanager: Alertmanager) -> None:
    over = replace(INCIDENT, alerts=(replace(FIRING, status=AlertStatus.RESOLVED),))
    assert await alertmanager.firing(over) == AlertState(None)
    assert systems.asked == []
