"""An incident that ended without a cure: what is told of it, and what is not learned from it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, timedelta

import pytest
from pydantic import TypeAdapter

from core.incidents.folding import fold
from core.incidents.handover import (
    ENDED_HOW,
    OVER_HOW,
    ListedIncident,
    Shift,
    Week,
    draft_update,
    format_digest,
    format_handover,
    storm_summary,
)
from core.incidents.incident_questions import Subject, answer_text
from core.incidents.postmortem import as_markdown, draft_postmortem, offers_postmortem
from core.model.alert import AlertDelivery, AlertEnd, AlertStatus, EndReason
from core.model.incident import Incident, OwnerLabels, closed_incident
from core.model.team import Team
from core.triage.paging import needed_person
from handlers.incidents.investigate_incident import RESOLVED, reason_to_stop
from tests.samples import START, alert, resolved_incident

ENDS = [AlertEnd(reason, "gone", "Sentry") for reason in EndReason if reason is not EndReason.CURED]
HOUR = timedelta(hours=1)


@pytest.fixture(params=ENDS, ids=lambda end: end.reason)
def uncured(request: pytest.FixtureRequest) -> Incident:
    ended = replace(alert(status=AlertStatus.RESOLVED), end=request.param, note="fix: Duplicate of INC-7")
    return replace(resolved_incident(), alerts=(ended,), taken_by="")


def told(incident: Incident) -> dict[str, str]:
    """The texts that say how an incident ended, by who reads them."""
    shift = Shift(START, START + 9 * HOUR, (incident,), {}, (), (), ())
    held = replace(shift, held={incident.id: "quiet hours"})
    listed = (ListedIncident(incident, 1, START),)
    return {
        "handover": "\n".join(line.text for line in format_handover(shift)),
        "held": "\n".join(line.text for line in format_handover(held)),
        "storm": "\n".join(line.text for line in storm_summary(listed, 0, {})),
        "postmortem": as_markdown(draft_postmortem(incident)),
    }


def test_everywhere_it_is_told_as_ended_and_nowhere_as_resolved_or_over(uncured: Incident) -> None:
    for reader, text in told(uncured).items():
        assert uncured.state_text().lower() in text.replace("\\", "").lower(), reader
        for word in ("✅", "resolved", "over since", "over only", OVER_HOW):
            assert word not in text, (reader, word)
    assert ENDED_HOW in told(uncured)["storm"]
    assert " ended without a cure" in format_digest(Week(HOUR, (uncured,), (), (), {}, ()))[1].text


def test_it_is_no_success_for_outsiders_and_no_postmortem_is_offered(uncured: Incident) -> None:
    title, text = draft_update(uncured, START + HOUR)
    assert "works again" not in title
    assert "solved" not in text
    assert not offers_postmortem(uncured)
    assert "not known to be over" in answer_text(Subject.POSTMORTEM, uncured)


async def test_it_stops_no_investigation(uncured: Incident) -> None:
    assert await reason_to_stop(uncured, ()) == ""
    assert await reason_to_stop(resolved_incident(), ()) == RESOLVED


def test_nothing_is_learned_of_its_owner_or_of_who_was_needed(uncured: Incident) -> None:
    teams, labels = (Team("payments", "Payments"),), OwnerLabels(right="payments")
    assert closed_incident(uncured, teams, frozenset({"public"}), labels) is None
    assert needed_person(uncured) is None
    cured = replace(resolved_incident(), taken_by="")
    assert closed_incident(cured, teams, frozenset({"public"}), labels) is not None
    assert needed_person(cured) is False


def test_its_note_is_no_fix(uncured: Incident) -> None:
    (ended,) = uncured.alerts
    firing = replace(uncured, alerts=(alert(),), resolved_at=None)
    delivery = AlertDelivery("k", firing.source, firing.group_key, (ended,), START.astimezone(UTC) + HOUR)
    assert fold(firing, delivery).resolution is None
    cured = replace(delivery, alerts=(replace(ended, end=AlertEnd(EndReason.CURED)),))
    assert fold(firing, cured).resolution is not None


def test_an_end_is_stored_and_one_that_an_earlier_version_stored_was_a_cure(uncured: Incident) -> None:
    adapter = TypeAdapter(Incident)
    stored = adapter.dump_python(uncured, mode="json")
    assert adapter.validate_python(stored).end == uncured.end
    del stored["alerts"][0]["end"]
    assert adapter.validate_python(stored).is_cured
