from __future__ import annotations

from core.model.team import CodeOwners, Team
from core.triage.candidates import code_votes, paths_in
from core.triage.managers import Enrichment, gather
from core.triage.negotiate import negotiate
from core.triage.owner_model import IncidentHistory
from tests.cases import every_case
from tests.fakes.outage import incident
from tests.fakes.triage import propose_owner

TRACE = 'Traceback:\n  File "/usr/src/app/pay/ledger.py", line 12, in post\n    return 1 / 0\n'
CODE = CodeOwners.parsed("* all\n/pay/ @x/payments\n/web/ @x/store\n").named(lambda owner: owner.rpartition("/")[2])


@every_case(
    ("text", "paths"),
    [
        (TRACE, ("/usr/src/app/pay/ledger.py",)),
        ("FAILED tests/unit/test_ledger.py::test_post", ("tests/unit/test_ledger.py",)),
        ("see https://wiki.example/pay/ledger.html for it", ()),
        ("and/or, 1/2, GET /charges 500", ()),
        ("changed web/app/main.ts and web/app/main.ts", ("web/app/main.ts",)),
    ],
)
def test_files_are_found_in_traces_and_texts_and_addresses_are_none(text: str, paths: tuple[str, ...]) -> None:
    assert paths_in(text) == paths


def test_a_file_has_one_vote_that_its_owners_share() -> None:
    both = CodeOwners.parsed("/pay/ @a/payments @b/ledger\n/web/ @c/store\n").named(
        lambda owner: owner.rpartition("/")[2]
    )
    votes = code_votes(["pay/a.py", "web/b.ts"], frozenset(), [both])
    assert {team: vote.share for team, vote in votes.items()} == {"payments": 0.25, "ledger": 0.25, "store": 0.5}


def test_rules_of_another_services_repository_say_nothing() -> None:
    other = CodeOwners(CODE.rules, frozenset({"shelf"}))
    assert code_votes(["pay/a.py"], frozenset({"till"}), [other]) == {}
    assert code_votes(["pay/a.py"], frozenset({"shelf"}), [other])
    assert code_votes(["pay/a.py"], frozenset(), [other])


def test_a_failing_file_names_the_team_whose_code_it_is() -> None:
    teams = [Team("payments", "Payments"), Team("store", "Store")]
    evidence = gather(
        incident(service="", title=f"job failed\n{TRACE}"), teams, IncidentHistory([]), Enrichment(), None, [CODE]
    )
    owner = negotiate(evidence).owner
    assert owner is not None
    assert owner.team_id == "payments"
    assert owner.reasons == ("owns /usr/src/app/pay/ledger.py by the rule /pay/",)


def test_a_file_that_monitoring_names_counts_as_well_and_an_owner_that_is_no_team_does_not() -> None:
    teams = [Team("store", "Store")]
    changed = Enrichment(text="pay/ledger.py\nweb/main.ts")
    evidence = gather(incident(service="", title="slow"), teams, IncidentHistory([]), changed, None, [CODE])
    assert evidence.code.keys() == {"store"}


def test_without_rules_nothing_changes() -> None:
    assert propose_owner(incident(title=TRACE), [], IncidentHistory([]), Enrichment()).candidates == ()
