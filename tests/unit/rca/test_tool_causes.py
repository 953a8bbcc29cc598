"""What tools say in free text, weighed beside logs, metrics and changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.model.explanation import EvidenceKind, Explanation
from core.model.trajectory import Responsibility
from core.ports import Change, LogLine
from core.rca.explain import explain
from core.rca.incident_signals import survey
from core.rca.merge import first_time, tool_causes
from core.rca.observations import Observations
from core.rca.tool_outputs.clues import ToolOutput
from tests.fakes.outage import START, change, errors, incident, minutes, observations, traffic

KILLED = """Name:  {service}-0
Namespace:  live
Status:  Running
Containers:
  main:
    State:  Waiting
      Reason:  CrashLoopBackOff
    Last State:  Terminated
      Reason:  OOMKilled
      Exit Code:  137
    Ready:  False
    Restart Count:  7
    Limits:
      memory:  256Mi
"""
FINE = "Name:  {service}-0\nNamespace:  live\nStatus:  Running\nContainers:\n  main:\n    State:  Running\n    Ready:  True\n"


def pods(service: str, form: str = KILLED) -> ToolOutput:
    return ToolOutput("kubernetes_pods", {"service": service}, form.format(service=service))


def seen(
    *outputs: ToolOutput, logs: list[list[LogLine]] | None = None, changes: list[Change] | None = None
) -> Observations:
    return replace(observations(logs or [], changes=changes or []), outputs=outputs)


def told(observed: Observations) -> Explanation:
    return explain(observed)[0]


def test_a_cause_that_only_a_tool_tells_is_named_with_its_lines() -> None:
    found, evaluation = explain(seen(pods("shop"), pods("cart", FINE)))
    assert found.cause is not None
    assert found.cause.service == "shop"
    assert "OOMKilled" in found.cause.cause
    assert "Reason:  OOMKilled" in found.cause.evidence[0].quote
    assert found.cause.evidence[0].source == "kubernetes_pods(shop)"
    assert found.cause.responsibility is Responsibility.OWN_CODE
    assert evaluation is not None
    assert "Nothing in kubernetes_pods shows a cause in cart." in found.ruled_out


def test_a_fault_in_a_callee_is_a_dependency_s_and_says_what_would_disprove_it() -> None:
    found = told(seen(pods("shop", FINE), pods("stock")))
    assert found.cause is not None
    assert (found.cause.service, found.cause.responsibility) == ("stock", Responsibility.DEPENDENCY)
    assert found.cause.disproof == "stock is fixed and shop does not recover."
    assert "stock" in found.cause.next_check


def test_a_fault_belongs_to_the_service_of_its_object_whoever_was_asked_about() -> None:
    table = "NAME    READY   UP-TO-DATE   AVAILABLE   AGE\nshop    1/1     1            1           9d\nstock   0/0     0            0           9d"
    outputs = [ToolOutput("kubectl_get", {"service": name}, table) for name in ("shop", "stock")]
    found = told(seen(*outputs))
    assert [each.service for each in found.hypotheses] == ["stock"]
    assert found.hypotheses[0].next_check.startswith("Find out who scaled stock to 0")
    assert "stock: it is scaled to 0 replicas" in found.hypotheses[0].cause


def test_where_nothing_complains_no_culprit_is_named() -> None:
    found = told(seen(pods("shop", FINE), pods("stock", FINE)))
    assert found.hypotheses == ()
    assert "Nothing in kubernetes_pods shows a cause in shop, stock." in found.ruled_out


def test_trouble_that_names_a_callee_with_a_cause_of_its_own_is_a_red_herring() -> None:
    refused = ToolOutput(
        "kubectl_logs", {"service": "shop"}, 'level=error msg="call of stock failed: connection refused"\n' * 5
    )
    found = told(seen(refused, pods("stock")))
    assert found.cause is not None
    assert found.cause.service == "stock"
    alone = tool_causes(seen(refused), survey(seen()))
    beside = tool_causes(seen(refused, pods("stock")), survey(seen()))
    assert beside[0].service == "stock"
    assert beside[1].score < alone[0].score / 2


def test_what_a_tool_says_of_a_service_supports_the_change_that_fits() -> None:
    logs = [traffic("shop"), errors("shop", "pool request timed out", since=-8)]
    changes = [change("C-1", "shop", -9, "Smaller pool", "config")]
    before, after = (told(seen(*outputs, logs=logs, changes=changes)) for outputs in ((), (pods("shop"),)))
    assert before.cause is not None
    assert after.cause is not None
    assert "C-1" in after.cause.cause
    assert after.cause.cause == before.cause.cause
    assert after.cause.score > before.cause.score
    assert any("OOMKilled" in each.quote for each in after.cause.evidence)


def test_of_a_service_that_nobody_changed_it_is_told_what_the_tool_says() -> None:
    logs = [traffic("shop"), traffic("stock"), errors("stock", "FATAL worker died", since=-8)]
    found = told(seen(pods("stock"), logs=logs))
    assert found.cause is not None
    assert "FATAL worker died" in found.cause.cause
    assert "OOMKilled" in found.cause.cause
    assert all(each.kind is not EvidenceKind.CHANGE for each in found.cause.evidence)


def test_what_began_after_the_first_sign_explains_nothing() -> None:
    late = ToolOutput(
        "kubernetes_events",
        {"service": "shop"},
        "LAST SEEN  TYPE  REASON  OBJECT  MESSAGE\n"
        f'{minutes(9):%Y-%m-%d %H:%M:%S} UTC  Warning  FailedMount  pod/shop-0  configmap "till" not found',
    )
    assert told(seen(late)).hypotheses == ()
    in_time = replace(late, text=late.text.replace(f"{minutes(9):%H:%M:%S}", f"{minutes(-2):%H:%M:%S}"))
    assert told(seen(in_time)).cause is not None


def test_what_is_not_about_a_service_is_about_the_incident_s() -> None:
    pasted = ToolOutput("pasted text", {}, KILLED.format(service="shop"))
    found = told(seen(pasted))
    assert found.cause is not None
    assert found.cause.service == "shop"


def test_an_incident_of_no_known_service_can_be_explained_by_what_was_pasted() -> None:
    pasted = ToolOutput("pasted text", {}, KILLED.format(service="till"))
    found = told(replace(seen(pasted), incident=incident(service="")))
    assert found.cause is not None
    assert "OOMKilled" in found.cause.cause


@pytest.mark.parametrize("text", ["no time", "2026-13-45 09:30:00 UTC", "2026-03-14 09:30:00"])
def test_a_text_without_a_time_of_a_known_zone_has_none(text: str) -> None:
    assert first_time(text) is None


def test_the_first_time_of_a_text_is_read() -> None:
    assert first_time("at 2026-03-14T09:30:00.123Z and 2026-03-15 00:00:00 UTC") == START
