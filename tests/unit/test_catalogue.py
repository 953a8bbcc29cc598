from __future__ import annotations

from core.model.conversation import Platform
from core.model.team import CodeOwners, Team, merged_dependencies, merged_teams, named_code

PAYMENTS = Team("payments", "Payments", services=frozenset({"till"}), channel="pay", aliases=("billing",))


def test_what_is_written_wins_and_what_it_leaves_open_is_taken_from_the_catalogue() -> None:
    found = Team(
        "payments",
        "Pay & Co",
        "Charges and refunds.",
        frozenset({"refunds"}),
        "elsewhere",
        mentions={Platform.SLACK: "S0PAY"},
        members=frozenset({"ana"}),
    )
    (team,) = merged_teams([PAYMENTS], [found])
    assert (team.name, team.channel, team.document) == ("Payments", "pay", "Charges and refunds.")
    assert team.services == {"till", "refunds"}
    assert team.mentions == {Platform.SLACK: "S0PAY"}
    assert team.people == {"ana"}


def test_a_team_is_known_by_the_id_or_name_that_it_had_before() -> None:
    (team,) = merged_teams([PAYMENTS], [Team("billing", "Billing", services=frozenset({"invoices"}))])
    assert (team.id, team.services) == ("payments", {"till", "invoices"})


def test_a_service_that_is_written_to_be_one_teams_is_no_other_teams() -> None:
    _, fleet = merged_teams([PAYMENTS], [Team("fleet", "Fleet", services=frozenset({"till", "tracker"}))])
    assert fleet.services == {"tracker"}


def test_teams_that_are_only_in_catalogues_are_added_once() -> None:
    found = [Team("fleet", "Fleet", services=frozenset({"a"})), Team("fleet", "Fleet", services=frozenset({"b"}))]
    _, fleet = merged_teams([PAYMENTS], found)
    assert fleet.services == {"a", "b"}


def test_written_dependencies_stand_and_the_others_add_up() -> None:
    found = [{"till": ("x",), "shelf": ("db",)}, {"shelf": ("cache", "db")}]
    assert merged_dependencies({"till": ("shelf",)}, found) == {"till": ("shelf",), "shelf": ("db", "cache")}


def test_owners_become_teams_by_what_is_given_by_their_name_or_by_a_former_id_and_people_none() -> None:
    code = CodeOwners.parsed("/a/ @acme/billing\n/b/ @acme/crew-7 @ana\n/c/ @acme/strangers\n")
    named = named_code(code, [PAYMENTS, Team("fleet", "Fleet")], {"@acme/crew-7": "fleet"})
    assert [rule.owners for rule in named.rules] == [("payments",), ("fleet",), ()]
