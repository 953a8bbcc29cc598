from __future__ import annotations

from dataclasses import replace

import pytest

from core.model.team import CodeOwners, OwnershipRule, Team
from core.ports import Change
from core.rca.changes import placed, revisions, touched_services
from tests.fakes.outage import change, minutes

SERVICES = ("shop", "cart", "login")
FIRST = "1a2b3c4d5e6f"
SECOND = "9f8e7d6c5b4a"


def commit(id_: str, before: float, service: str = "shop", **fields: object) -> Change:
    return replace(change(id_, service, before, f"Change {id_}", "commit"), revision=id_, **fields)


def deploy(before: float, service: str = "shop", **fields: object) -> Change:
    return replace(change(f"D{before}", service, before, "Release", "deploy"), **fields)


def test_a_commit_is_in_force_from_its_deployment_on_and_both_are_one_candidate() -> None:
    (only,) = revisions([commit(FIRST, -60), deploy(-10, commits=(FIRST,))], SERVICES)
    assert (only.change.id, only.at) == (FIRST, minutes(-10))
    assert [each.id for each in only.shipped_by] == ["D-10"]


def test_a_deployment_may_name_its_commits_in_its_text() -> None:
    found = revisions([commit(FIRST, -60), deploy(-10, detail=f"Ships {FIRST[:8]}.")], SERVICES)
    assert [(each.change.id, each.at) for each in found] == [(FIRST, minutes(-10))]


def test_a_short_hash_of_letters_alone_names_its_commit() -> None:
    found = revisions([commit("bdabdfbfca", -60), deploy(-10, detail="Ships cf9487ab, bdabdfbf.")], SERVICES)
    assert [(each.change.id, each.at) for each in found] == [("bdabdfbfca", minutes(-10))]


def test_a_deployment_also_ships_the_commits_of_shared_code_since_the_one_before() -> None:
    library = replace(commit(FIRST, -60, ""), files=("libs/json/codec.go",))
    for service, last in (("shop", "eeeeeee1"), ("cart", "eeeeeee2")):
        changes = [deploy(-90, service), library, commit(last, -50, service), deploy(-10, service, revision=last)]
        found = {each.change.id: each.live for each in revisions(changes, SERVICES)}
        assert found[FIRST] == found[last] == {service: minutes(-10)}


def test_a_deployment_that_names_its_latest_commit_ships_those_since_the_one_before() -> None:
    changes = [commit("aaaaaaa1", -90), deploy(-80, revision="aaaaaaa1"), commit(FIRST, -70), commit(SECOND, -60)]
    found = revisions([*changes, deploy(-10, revision=SECOND)], SERVICES)
    assert {each.change.id: each.at for each in found} == {
        "aaaaaaa1": minutes(-80),
        FIRST: minutes(-10),
        SECOND: minutes(-10),
    }


def test_a_commit_that_was_not_shipped_though_others_were_waits() -> None:
    found = revisions([commit(FIRST, -60), deploy(-50, commits=(FIRST,)), commit(SECOND, -20)], SERVICES)
    assert {each.change.id: each.waits for each in found} == {FIRST: False, SECOND: True}


def test_shared_code_reaches_every_service_that_ships_it_each_at_its_time() -> None:
    shared = replace(commit(FIRST, -60, ""), files=("libs/retry/policy.py",))
    (only,) = revisions([shared, deploy(-10, "shop", commits=(FIRST,)), deploy(-5, "cart", commits=(FIRST,))], SERVICES)
    assert only.live == {"shop": minutes(-10), "cart": minutes(-5)}


def test_a_change_that_names_no_service_touches_those_whose_folders_it_changes() -> None:
    (only,) = revisions([replace(commit(FIRST, -60, ""), files=("services/cart/a.py", "docs/b.md"))], SERVICES)
    assert tuple(only.live) == ("cart",)


def test_a_change_that_names_no_service_is_one_of_whoever_owns_its_files() -> None:
    owners = CodeOwners(
        (OwnershipRule("*", ("everybody",)), OwnershipRule("/lib/money/", ("pay",))), frozenset({"till", "shop"})
    )
    teams = (
        Team("pay", "Payments", services=frozenset({"till", "vault"})),
        Team("everybody", "All", services=frozenset({"till", "shop"})),
    )
    money = replace(commit(FIRST, -60), service="", files=("lib/money/round.py",))
    assert placed(money, frozenset(), [owners], teams).touched == ("till",)
    assert placed(replace(money, files=("docs/a.md",)), frozenset(), [owners], teams).touched == ()
    in_folder = replace(money, files=("shop/lib/money/round.py",))
    assert touched_services(placed(in_folder, frozenset({"shop"}), [owners], teams), frozenset({"shop"})) == ("shop",)


@pytest.mark.parametrize("id_", [FIRST, FIRST[:8], f"{FIRST}0123456789abcdef"])
def test_a_deployment_with_the_id_of_its_commit_ships_it_and_both_are_one_candidate(id_: str) -> None:
    named = replace(deploy(-10), id=id_)
    (only,) = revisions([commit(FIRST, -60), named], SERVICES)
    assert (only.change.kind, only.at) == ("commit", minutes(-10))
    assert only.shipped_by == (named,)


def test_a_deployment_of_several_commits_with_the_id_of_the_last_loses_none() -> None:
    changes = [commit(FIRST, -70), commit(SECOND, -60), replace(deploy(-10, revision=SECOND), id=SECOND)]
    assert {each.change.id: each.at for each in revisions(changes, SERVICES)} == {
        FIRST: minutes(-10),
        SECOND: minutes(-10),
    }


def test_changes_of_two_systems_with_one_number_are_two_candidates() -> None:
    setting = replace(change("42", "shop", -30), kind="config")
    shipping = replace(deploy(-10, commits=(FIRST,)), id="42")
    found = revisions([commit(FIRST, -60), setting, shipping], SERVICES)
    assert [(each.change.kind, each.change.id) for each in found] == [("config", "42"), ("commit", FIRST)]


def test_a_setting_with_the_id_of_a_commit_keeps_its_own_time() -> None:
    setting = replace(change(FIRST, "shop", -30), kind="config")
    found = revisions([commit(FIRST, -60), setting, deploy(-10, commits=(FIRST,))], SERVICES)
    assert [(each.change.kind, each.at) for each in found] == [("config", minutes(-30)), ("commit", minutes(-10))]


def test_a_deployment_recorded_before_its_commit_was_written_is_in_force_from_the_commit_on() -> None:
    (only,) = revisions([commit(FIRST, -5), deploy(-20, commits=(FIRST,))], SERVICES)
    assert only.at == minutes(-5)
    assert only.live == {"shop": minutes(-5)}


def test_the_kind_of_a_change_is_known_by_its_words() -> None:
    commits = ("commit", "Git commit", "merge", "MERGE_REQUEST", "pull request", "pull-request", "PullRequest", "code")
    deployments = (
        "deploy",
        "redeployment",
        "Release",
        "roll-out",
        "canary rollout",
        "rollback",
        "promotion",
        "CodeDeploy",
    )
    others = ("config", "emergency change", "code freeze", "flag", "migration", "submerged", "")
    of = {kind: replace(change("1", "shop", 0), kind=kind) for kind in (*commits, *deployments, *others)}
    assert tuple(kind for kind in of if of[kind].is_commit) == commits
    assert tuple(kind for kind in of if of[kind].is_deployment) == deployments
