from __future__ import annotations

from dataclasses import replace

from core.model.catalogue import CodeOwners, OwnershipRule
from core.model.team import Team
from core.ports import Change
from core.rca.revisions import placed, revisions, touched_services
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
