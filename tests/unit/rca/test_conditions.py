"""The conditions of objects of any kind, as the API gives them and as `kubectl describe` prints them."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from core.rca.cluster.findings import findings
from core.rca.cluster.reading import read
from core.rca.cluster.state import Cluster
from core.rca.failures import WRONG
from core.rca.log_lines import message_of
from core.rca.tool_outputs import ToolOutput
from tests.cases import every_case

NOW = datetime(2026, 3, 10, 9, 3, tzinfo=UTC)
LATELY, LONG_AGO = "2026-03-10T08:58:00Z", "2026-03-07T08:58:00Z"
KINDS = (
    "HTTPRoute",
    "HorizontalPodAutoscaler",
    "Certificate",
    "ExternalSecret",
    "Kustomization",
    "NetworkPolicy",
    "Gateway",
)
SPECS = {
    "HTTPRoute": {"parentRefs": [{"name": "edge"}], "rules": [{"backendRefs": [{"name": "till"}]}]},
    "HorizontalPodAutoscaler": {"scaleTargetRef": {"kind": "Deployment", "name": "till"}},
}


def condition(type_: str, status: str, at: str = LATELY, message: str = "tide tables are missing") -> dict[str, str]:
    return {"type": type_, "status": status, "reason": "FailedTide", "message": message, "lastTransitionTime": at}


def status_of(kind: str, each: dict[str, str]) -> dict[str, object]:
    """Return a status with a condition, which is that of a parent for a route."""
    return (
        {"parents": [{"parentRef": {"name": "edge"}, "conditions": [each]}]}
        if kind == "HTTPRoute"
        else {"conditions": [each]}
    )


def given(kind: str, each: dict[str, str]) -> str:
    meta = {"name": "till", "namespace": "live", "uid": "1"}
    spec = SPECS.get(kind, {})
    return json.dumps(
        {"apiVersion": "v1", "kind": kind, "metadata": meta, "spec": spec, "status": status_of(kind, each)}
    )


def described(kind: str, each: dict[str, str]) -> str:
    return (
        f"Name:         till\nNamespace:    live\nAPI Version:  example.org/v1\nKind:         {kind}\nStatus:\n  Parents:\n    Conditions:\n"
        f"      Last Transition Time:  {each['lastTransitionTime']}\n      Message:               {each['message']}\n"
        f"      Observed Generation:   2\n      Reason:                {each['reason']}\n      Status:                {each['status']}\n"
        f"      Type:                  {each['type']}\n    Parent Ref:\n      Name:  edge\n"
    )


def seen(text: str) -> Cluster:
    return read([ToolOutput("kubectl", {"namespace": "live"}, text)], NOW)


@pytest.mark.parametrize("form", [given, described], ids=["API", "description"])
def test_a_condition_of_any_kind_that_became_wrong_lately_is_told_with_its_message(form: object) -> None:
    wrong: list[str] = []
    for kind in KINDS:
        for rule in (each for each in WRONG if each.fault == "CONDITION" and not each.reasons):
            for type_ in sorted(rule.types):
                bad = findings(seen(form(kind, condition(type_, rule.status))))  # type: ignore[operator]
                if not any("tide tables are missing" in each.cause and each.name == "till" for each in bad):
                    wrong.append(f"{kind} {type_}: {bad}")
                other = "True" if rule.status == "False" else "False"
                for healthy in (condition(type_, other), condition(type_, rule.status, LONG_AGO)):
                    wrong += [f"{kind} {healthy}: {each.cause}" for each in findings(seen(form(kind, healthy)))]  # type: ignore[operator]
    assert not wrong, "\n".join(wrong)


@every_case("type_", ["Active", "Fallback", "Paused", "Suspended", "Cached", "DisruptionAllowed"])
def test_a_condition_that_says_neither_good_nor_bad_is_no_fault(type_: str) -> None:
    assert not [
        each for status in ("True", "False") for each in findings(seen(given("ScaledObject", condition(type_, status))))
    ]


@every_case(
    "record",
    [
        '{"level":"error","msg":"charge failed","error":{"code":"E7","message":"no answer","cause":{"message":"the tide is out"}}}',
        '2026-03-10T09:00:00Z ERROR {"message":"charge failed","err":"{\\"error\\":{\\"message\\":\\"the tide is out\\"}}"}',
        '{"message":"charge failed","errors":[{"title":"the tide is out","status":"500"}]}',
        'level=error msg="charge failed" err="{\\"reason\\":\\"the tide is out\\"}"',
        '{"log":"{\\"msg\\":\\"charge failed\\",\\"exception\\":{\\"detail\\":\\"the tide is out\\"}}","stream":"stderr"}',
    ],
)
def test_an_error_within_a_record_is_told_to_the_innermost(record: str) -> None:
    assert message_of(record).startswith("charge failed")
    assert message_of(record).endswith("the tide is out")


def test_a_record_without_an_error_tells_none() -> None:
    assert message_of('{"msg":"12 sent","errors":0,"error":null,"cause":{},"details":[]}') == "12 sent"
