from __future__ import annotations

from dataclasses import replace

from core.model.team import Team
from core.triage.training import training_incidents
from tests.fakes.past_incidents import past_incidents


def test_incidents_of_a_renamed_or_merged_team_count_for_its_successor_and_of_a_dissolved_one_for_nobody() -> None:
    first, second, third, fourth = (
        replace(incident, owner=owner)
        for incident, owner in zip(past_incidents()[:4], ("login", "identity", "dissolved", ""), strict=True)
    )
    learned = training_incidents([first, second, third, fourth], [Team("identity", "Identity", aliases=("login",))])
    assert learned == [replace(first, owner="identity"), second]
