from __future__ import annotations

from core.incidents.incident_questions import Subject, answer_text
from tests.fakes.outage import change, observations


def test_a_change_of_another_day_is_listed_with_its_date() -> None:
    today, day_before = change("C-1", "shop", before=-10), change("C-2", "shop", before=-24 * 60)
    seen = observations(changes=(today, day_before))
    first, second, *_ = answer_text(Subject.CHANGES, seen.incident, seen).splitlines()[-2:]
    assert first.startswith(f"{today.at:%H:%M} UTC ")
    assert second.startswith(f"{day_before.at:%d %b %H:%M} UTC ")
