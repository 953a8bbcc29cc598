from __future__ import annotations

from dataclasses import replace

import pytest

from core.incidents.incident_questions import Subject, answer_text
from core.model.findings import Gap, GapReason
from core.rca.explain import explain
from tests.fakes.outage import change, errors, observations, traffic


def test_a_change_of_another_day_is_listed_with_its_date() -> None:
    today, day_before = change("C-1", "shop", before=-10), change("C-2", "shop", before=-24 * 60)
    seen = observations(changes=(today, day_before))
    first, second, *_ = answer_text(Subject.CHANGES, seen.incident, seen).splitlines()[-2:]
    assert first.startswith(f"{today.at:%H:%M} UTC ")
    assert second.startswith(f"{day_before.at:%d %b %H:%M} UTC ")


@pytest.mark.parametrize("kinds", [frozenset[str](), frozenset({"changes"}), frozenset({"changes", "logs"})])
def test_that_no_change_is_recorded_is_only_said_of_changes_that_were_read(kinds: frozenset[str]) -> None:
    seen = observations(gaps=[Gap("github", GapReason.REFUSED, "403", kinds)])
    said = answer_text(Subject.CHANGES, seen.incident, seen)
    assert said.startswith("No change that I could read to shop")
    assert "Not read: github: access refused (403)" in said
    whole = replace(seen, gaps=())
    assert answer_text(Subject.CHANGES, whole.incident, whole).startswith("No change to shop")


def test_a_build_that_did_not_fail_is_said_apart_from_what_was_not_read() -> None:
    passed = Gap("ci", GapReason.NO_FAILURE, "run 2 of acme/api passed", frozenset({"builds"}))
    seen = observations([traffic("shop")], gaps=[passed])
    said = answer_text(Subject.LOGS, seen.incident, seen)
    assert "No failed build: run 2 of acme/api passed" in said
    assert "Not read" not in said
    explanation, _ = explain(seen)
    assert not any("what was read of" in line for line in explanation.ruled_out)


def test_a_level_that_is_not_in_the_text_counts_as_trouble() -> None:
    loud = errors("shop", "cannot reach the till", since=-5, level="crit")
    seen = observations([loud])
    assert f"{len(loud)} are warnings or errors" in answer_text(Subject.LOGS, seen.incident, seen)


def test_what_was_not_checked_is_listed_apart_from_what_is_ruled_out() -> None:
    seen = observations([traffic("shop")], changes=[change("C-1", "cart", -20), change("C-2", "shop", -20)])
    explanation, _ = explain(seen)
    said = answer_text(Subject.CAUSE, seen.incident.with_findings(explanation=explanation), seen)
    ruled_out, unchecked = said.split("Not checked:")
    assert "C-2" in ruled_out
    assert "C-1" in unchecked
