from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from core.incidents.folding import COUNTED, format_count, recurring
from core.incidents.incident_view import incident_view
from core.incidents.readable import known_before, old_thread
from core.model.conversation import MessageReference, Place, Platform
from core.model.incident import Incident, IncidentState, Recurrence, Resolution
from core.model.messages import IncidentMessage, RelatedIncident
from tests.samples import explained_incident, explanation

DAY = timedelta(days=1)
MESSAGE = MessageReference(Place(Platform.SLACK, "C0INC"), "1.0")
FIRST = replace(explained_incident(id="first", message=MESSAGE), state=IncidentState.RESOLVED)
ENDED = FIRST.opened_at + timedelta(hours=1)
LAST = replace(FIRST, resolved_at=ENDED)
URL = "https://chat.example/1"


def opened(at: datetime) -> Incident:
    return replace(explained_incident(id="next", message=None), opened_at=at, started_at=at)


def test_each_firing_is_counted_since_the_first_one_until_it_was_quiet_for_long() -> None:
    second = recurring(opened(ENDED + DAY), LAST)
    assert second.recurrence == Recurrence("first", 2, LAST.started_at)
    ended = replace(second, resolved_at=second.opened_at + timedelta(hours=1))
    assert recurring(opened(ended.opened_at + DAY), ended).recurrence == Recurrence("next", 3, LAST.started_at)
    assert recurring(opened(ENDED + COUNTED + DAY), LAST).recurrence is None
    assert recurring(opened(ENDED), None).recurrence is None


@pytest.mark.parametrize(
    ("count", "days", "text"),
    [
        (2, 0, "second time today"),
        (3, 2, "third time since {first:%A}"),
        (12, 20, "12 times since {first.day} {first:%b}"),
    ],
)
def test_the_count_is_told_since_a_day(count: int, days: int, text: str) -> None:
    again = Recurrence("first", count, FIRST.started_at)
    incident = replace(opened(FIRST.started_at + timedelta(days=days)), recurrence=again)
    assert format_count(incident) == text.format(first=FIRST.started_at)
    assert incident_view(IncidentMessage(incident)).state.endswith(f" · {format_count(incident)}")
    assert format_count(opened(ENDED)) == ""


def test_the_old_thread_is_that_of_the_same_channel_and_of_the_time_that_is_set() -> None:
    assert old_thread(opened(ENDED + DAY), LAST, DAY) == MESSAGE.thread
    assert old_thread(opened(ENDED + 1.1 * DAY), LAST, DAY) is None
    elsewhere = opened(ENDED).with_placement(place=Place(Platform.SLACK, "C0OTHER"))
    answer_to_a_bot = opened(ENDED).with_placement(place=Place(Platform.SLACK, "C0INC", "9.9"))
    never_posted = LAST.with_placement(message=None)
    for incident, last in ((elsewhere, LAST), (answer_to_a_bot, LAST), (opened(ENDED), never_posted)):
        assert old_thread(incident, last, DAY) is None


def test_what_people_said_about_the_last_time_counts_before_what_was_found() -> None:
    found = explanation().summary.rstrip(".")
    noted = replace(LAST, resolution=Resolution(root_cause="a full disk", fix="more disk"))
    only_fix = replace(noted, resolution=Resolution(fix="more disk")).with_findings(explanation=None)
    expected = {"a full disk; fix: more disk": noted, "fix: more disk": only_fix, found: LAST}
    for text, last in expected.items():
        assert known_before(last) == text
        link = RelatedIncident(last.id, last.title, 1, is_open=False, url=URL)
        message = IncidentMessage(opened(ENDED), last=link, note=text)
        (line,) = [each for each in incident_view(message).lines if each.label == "Last time"]
        assert line.links[0].url == URL
