"""A sentence about what did not happen rests on data that was read, and names it."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest

from core.model.findings import Explanation, Gap, GapReason
from core.ports import LogLine, Series
from core.rca.explain import explain
from core.rca.incident_signals import survey
from core.rca.observation_tools import observation_tools
from core.rca.observations import Observations
from core.rca.tool_outputs import ToolOutput
from tests.cases import every_case
from tests.fakes.outage import change, errors, gauge, minutes, observations, traffic

SERVICES = ("shop", "cart", "login")
REASONS = (GapReason.FAILED, GapReason.TIMED_OUT, GapReason.REFUSED, GapReason.OUT_OF_WINDOW)
ABSENCE = re.compile(r"nothing unusual in (?P<places>the .+?) after it")
PLACE = re.compile(r"the (?P<kinds>logs|metrics|logs and metrics) of (?P<services>.+?)(?= and the |$)")


def drawn(seed: int) -> tuple[Observations, dict[str, set[str]]]:
    """Observations with some of their sources, and the services whose logs and metrics cover the last half hour."""
    draw = random.Random(seed)
    logs: list[list[LogLine]] = []
    series: list[Series] = []
    whole: dict[str, set[str]] = {"logs": set(), "metrics": set()}
    for service in SERVICES:
        for kind in ("logs", "metrics"):
            part = draw.choice(("all", "none", "early", "late"))
            limits = {"all": (-60, 0), "none": (1, 0), "early": (-60, -25), "late": (-8, 0)}[part]
            first, last = map(minutes, limits)
            if part == "all":
                whole[kind].add(service)
            if kind == "logs":
                logs.append([line for line in traffic(service) if first <= line.at <= last])
            elif part != "none":
                one = gauge(service, "queue_depth", lambda _: 5.0)
                kept = [pair for pair in zip(one.times, one.values, strict=True) if first <= pair[0] <= last]
                series.append(replace(one, times=tuple(at for at, _ in kept), values=tuple(value for _, value in kept)))
    gaps = [
        Gap(f"{kind}-reader", draw.choice(REASONS), kinds=frozenset({kind} if draw.random() < 0.5 else ()))
        for kind in ("logs", "metrics", "changes")
        if draw.random() < 0.3
    ]
    if "shop" in whole["logs"] and draw.random() < 0.3:
        logs.append(errors("shop", "quota of api.parcel.example exceeded", since=-6))
    changes = [
        change(f"C-{number}", draw.choice((*SERVICES, "print", "")), -draw.choice((20, 29))) for number in range(3)
    ]
    return observations(logs, series, changes if draw.random() < 0.8 else [], gaps=gaps), whole


def sentences(explanation: Explanation) -> list[str]:
    return [*explanation.ruled_out, *explanation.unchecked, *(each.cause for each in explanation.hypotheses)]


def test_no_sentence_about_a_change_rests_on_a_source_that_was_not_read() -> None:
    absent = 0
    for seed in range(50):
        seen, whole = drawn(seed)
        explanation, _ = explain(seen)
        for line in sentences(explanation):
            for match in ABSENCE.finditer(line):
                absent += 1
                places = list(PLACE.finditer(match["places"]))
                assert places, (seed, line)
                for place in places:
                    for kind in place["kinds"].split(" and "):
                        assert set(place["services"].split(", ")) <= whole[kind], (seed, line)
            assert "nothing unusual" not in line.lower() or ABSENCE.search(line), (seed, line)
            if "no change" in line.lower():
                assert not seen.unread("changes"), (seed, line)
        for line in explanation.ruled_out:
            assert ": not checked" not in line, (seed, line)
        for gap in seen.gaps:
            lacking = [line for line in sentences(explanation) if ABSENCE.search(line) or ": not checked" in line]
            if gap.kinds != {"changes"}:
                assert all(gap.text in line for line in lacking), (seed, gap, lacking)
    assert absent > 10


UNREAD_POD = Gap("cluster: log of cart-1/main", GapReason.LEFT_OUT, "1 of 1 in an unexpected format (no log)")
PARTLY = [(replace(UNREAD_POD, kinds=frozenset({kind} if kind else ())), kind) for kind in ("logs", "metrics", "")] + [
    (replace(UNREAD_POD, reason=reason, kinds=frozenset({"logs"})), "logs") for reason in REASONS[:3]
]


@every_case(("gap", "kind"), PARTLY)
def test_nothing_is_ruled_out_by_data_of_which_a_part_was_not_read(gap: Gap, kind: str) -> None:
    data = [traffic(service) for service in SERVICES]
    series = [gauge(service, "queue_depth", lambda _: 5.0) for service in SERVICES]
    changes = [change("C-1", "shop", -20), change("C-2", "cart", -29)]
    before, _ = explain(observations(data, series, changes))
    assert sum(" C-" in f" {line}" for line in before.ruled_out) == 2
    explanation, _ = explain(observations(data, series, changes, gaps=[gap]))
    for line in explanation.ruled_out:
        assert "C-1" not in line
        assert "C-2" not in line
        assert "nothing unusual" not in line.lower()
        assert "No unusual" not in line
    for line in (*explanation.ruled_out, *explanation.unchecked):
        for match in ABSENCE.finditer(line):
            assert kind not in match["places"] or not kind, line
        assert "C-" not in line or gap.text in line


def test_tool_that_lacks_a_part_does_not_rule_its_service_out() -> None:
    seen = observations([traffic("shop")])
    output = ToolOutput("cluster_pods", {"service": "shop"}, "All pods of shop serve.")
    whole, _ = explain(replace(seen, outputs=(output,)))
    assert any("Nothing in cluster_pods" in line for line in whole.ruled_out)
    partly, _ = explain(replace(seen, outputs=(replace(output, text=f"{output.text}\nNot read: pods: timed out"),)))
    assert not any("Nothing in cluster_pods" in line for line in partly.ruled_out)


@pytest.mark.parametrize("service", ["shop", "cart", "print"])
def test_a_change_without_data_around_it_is_not_ruled_out(service: str) -> None:
    explanation, _ = explain(observations([traffic("login")], changes=[change("C-1", service, -20)]))
    assert not any("C-1" in line for line in explanation.ruled_out)
    assert any(
        "C-1" in line and f"not checked: logs of {service}, metrics of {service}" in line
        for line in explanation.unchecked
    )


def test_a_change_is_ruled_out_by_the_one_kind_of_data_that_was_read_and_the_other_is_named() -> None:
    explanation, _ = explain(observations([traffic("shop")], changes=[change("C-1", "shop", -20)]))
    assert any(
        "nothing unusual in the logs of shop after it; not checked: metrics of shop" in line
        for line in explanation.ruled_out
    )


def test_data_that_ends_before_the_change_rules_nothing_out() -> None:
    early = [line for line in traffic("shop") if line.at < minutes(-30)]
    explanation, _ = explain(observations([early], changes=[change("C-1", "shop", -20)]))
    assert not any("C-1" in line for line in explanation.ruled_out)


def test_records_that_begin_after_the_change_rule_nothing_out() -> None:
    late = [line for line in traffic("shop") if line.at > minutes(-9)]
    explanation, _ = explain(observations([late], changes=[change("C-1", "shop", -40)], cut=["shop"]))
    assert not any("C-1" in line for line in explanation.ruled_out)


@pytest.mark.parametrize(
    ("gap", "said"),
    [
        (Gap("changes", GapReason.MISSING), "changes: not set up"),
        (Gap("github", GapReason.REFUSED, "403"), "github: access refused (403)"),
        (Gap("gitlab", GapReason.TIMED_OUT, kinds=frozenset({"changes"})), "gitlab: timed out"),
    ],
)
def test_that_no_change_fits_is_not_said_if_changes_were_not_read(gap: Gap, said: str) -> None:
    quota = errors("shop", "quota of api.parcel.example exceeded", since=-6)
    explanation, _ = explain(observations([traffic("shop"), quota], gaps=[gap]))
    assert explanation.cause is not None
    assert "o change" not in explanation.cause.cause
    assert said in explanation.cause.cause


def test_that_no_change_fits_is_said_if_only_metrics_were_not_read() -> None:
    quota = errors("shop", "quota of api.parcel.example exceeded", since=-6)
    gap = Gap("metrics", GapReason.MISSING)
    seen = observations([traffic("shop"), quota], changes=[change("C-1", "print", -300)], gaps=[gap])
    cause = explain(seen)[0].cause
    assert cause is not None
    assert cause.cause.startswith("api.parcel.example, on which shop depends, is failing, and no change of ours fits; ")


async def test_a_log_that_was_not_read_is_not_called_free_of_errors() -> None:
    seen = observations([traffic("shop")], gaps=[Gap("github", GapReason.FAILED, kinds=frozenset({"changes"}))])
    tools = {tool.name: tool for tool in observation_tools(seen, survey(seen))}
    assert await tools["read_logs"].call({"service": "cart"}) == "No log of cart was read."
    assert await tools["read_metrics"].call({"service": "cart"}) == "No metrics of cart were read."
    assert "Not read: github: failed" in await tools["list_changes"].call({"service": "every service"})
