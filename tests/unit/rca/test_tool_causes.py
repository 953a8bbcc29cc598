"""What tools say in free text, weighed beside logs, metrics and changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.model.findings import EvidenceKind, Explanation
from core.model.language_model import Responsibility
from core.ports import Change, LogLine
from core.rca.explain import explain
from core.rca.observations import Observations
from core.rca.tool_outputs import ToolOutput
from tests.benchmarks.rca_engines import latest_time
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
    assert found.cause.disproof == "stock recovers and shop does not."
    assert "stock" in found.cause.next_check


def test_a_fault_belongs_to_the_service_of_its_object_whoever_was_asked_about() -> None:
    table = "NAME    READY   UP-TO-DATE   AVAILABLE   AGE\nshop    1/1     1            1           9d\nstock   0/0     0            0           9d"
    outputs = [ToolOutput("kubectl_get", {"service": name}, table) for name in ("shop", "stock")]
    refused = ToolOutput("kubectl_logs", {"service": "shop"}, "ERROR call of stock failed: connection refused\n")
    assert told(seen(*outputs)).hypotheses == (), "nobody is seen to miss it"
    found = told(seen(*outputs, refused))
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
    alone = max(each.score for each in told(seen(refused)).hypotheses)
    assert all(each.score < alone / 2 for each in found.hypotheses[1:])


LOWERED = change("C-1", "shop", -9, "Less memory for shop", "config", "memory.limit: 512Mi -> 256Mi")


def test_what_a_tool_says_of_a_service_supports_the_change_that_can_make_it() -> None:
    logs = [traffic("shop"), errors("shop", "pool request timed out", since=-8)]
    before, after = (told(seen(*outputs, logs=logs, changes=[LOWERED])) for outputs in ((), (pods("shop"),)))
    assert before.cause is not None
    assert after.cause is not None
    assert "C-1" in before.cause.cause
    assert "C-1" in after.cause.cause
    assert after.cause.score > before.cause.score
    assert any("OOMKilled" in each.quote for each in after.cause.evidence)


def test_a_change_that_cannot_make_what_a_tool_says_stands_beside_it() -> None:
    logs = [traffic("shop"), errors("shop", "pool request timed out", since=-8)]
    found = told(seen(pods("shop"), logs=logs, changes=[change("C-1", "shop", -9, "Smaller pool", "config")]))
    assert any("OOMKilled" in each.cause for each in found.hypotheses)
    assert any("C-1" in each.cause for each in found.hypotheses)


def test_no_time_is_made_up_for_a_fault_that_tells_none() -> None:
    logs = [traffic("shop"), errors("shop", "pool request timed out", since=-8)]
    found = told(seen(pods("shop"), logs=logs, changes=[LOWERED]))
    assert found.cause is not None
    assert "9 min later the container main was OOMKilled" not in found.cause.cause


def test_of_a_service_that_nobody_changed_it_is_told_what_the_tool_says() -> None:
    logs = [traffic("shop"), traffic("stock"), errors("stock", "FATAL worker died", since=-8)]
    found = told(seen(pods("stock"), logs=logs))
    assert found.cause is not None
    assert "FATAL worker died" in found.cause.cause
    assert "OOMKilled" in found.cause.cause
    assert all(each.kind is not EvidenceKind.CHANGE for each in found.cause.evidence)


def test_an_event_that_was_last_seen_long_before_explains_nothing() -> None:
    recent = ToolOutput(
        "kubernetes_events",
        {"service": "shop"},
        "LAST SEEN  TYPE  REASON  OBJECT  MESSAGE\n"
        f'{minutes(-2):%Y-%m-%d %H:%M:%S} UTC  Warning  FailedMount  pod/shop-0  configmap "till" not found',
    )
    assert told(seen(recent)).cause is not None
    long_ago = replace(recent, text=recent.text.replace(f"{minutes(-2):%H:%M:%S}", f"{minutes(-90):%H:%M:%S}"))
    assert told(seen(long_ago)).hypotheses == ()


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
    assert latest_time([ToolOutput("logs", {}, text)]) is None


def test_the_latest_time_of_the_outputs_is_read_in_all_forms() -> None:
    texts = ("at 2026-03-14T09:20:00.123Z", "Start Time: Sat, 14 Mar 2026 10:30:00 +0100", "2026-03-14 09:10:00 UTC")
    assert latest_time([ToolOutput("logs", {}, text) for text in texts]) == START
