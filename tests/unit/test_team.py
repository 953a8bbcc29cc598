from __future__ import annotations

from core.model.team import Team, current_ids, current_team, team_named
from tests.cases import every_case

SPLIT_OFF = Team("ledger", "Refunds", aliases=("payments", "billing"))
PAYMENTS = Team("payments", "Payments", aliases=("till",))
TEAMS = (SPLIT_OFF, PAYMENTS, Team("billing-2", "Billing"))


@every_case(
    ("said", "team_id"),
    [
        ("Payments", "payments"),
        ("team payments.", "payments"),
        ("refunds", "ledger"),
        ("billing", "billing-2"),
        ("TILL", "payments"),
        ("tills", None),
    ],
)
def test_whoever_has_a_name_today_is_meant_by_it_before_whoever_had_it(said: str, team_id: str | None) -> None:
    team = team_named(said, TEAMS)
    assert (team.id if team else None) == team_id


def test_an_id_of_the_past_leads_to_the_team_of_today() -> None:
    ids = current_ids(TEAMS)
    assert ids == {id_: team.id for id_ in ids if (team := current_team(id_, TEAMS)) is not None}
    assert ids.keys() == {"ledger", "payments", "billing", "till", "billing-2"}
