"""What only the workspace knows about an answer."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from core.answering.caveats import MAX_CONTACTS, HelpDesk
from core.model.answer import Citation, Contact, Contradiction
from core.model.conversation import Audience, Person, Place, Platform, Question
from core.model.team import Team
from tests import samples as messages
from tests.cases import every_case

ASKED_AT = datetime(2026, 3, 14, tzinfo=UTC)
QUESTION = Question(
    "q-1",
    "how do I drain a drydock runner?",
    Person(Platform.TERMINAL, "someone"),
    Place(Platform.TERMINAL, "terminal"),
    Audience(),
    ASKED_AT,
)
TEAMS = (
    Team(
        "delivery", "Delivery", "We own drydock and its runners.", frozenset(), "ci-cd", ("Hana Petrov", "Oskar Nyberg")
    ),
    Team("payments", "Payments", "We own the payment gateway.", frozenset(), "payments-private", ("Asha Brandt",)),
    Team("nobody", "Nobody"),
)
DESK = HelpDesk({"handbook": timedelta(days=365)}, TEAMS, frozenset({"ci-cd"}))


def source(days: int | None, document_id: str = "handbook/page") -> Citation:
    """A citation of what changed so many days before the question."""
    updated = ASKED_AT - timedelta(days=days) if days is not None else None
    return replace(messages.citation(), document_id=document_id, updated_at=updated)


@every_case(
    ("days", "staleness"),
    [
        (None, ""),
        (10, ""),
        (365, ""),
        (366, "stale: last changed 12 months ago"),
        (430, "stale: last changed 14 months ago"),
        (1500, "stale: last changed 4 years ago"),
    ],
)
def test_a_source_past_its_limit_is_stale(days: int | None, staleness: str) -> None:
    answer = DESK.completed(messages.answer(citations=(source(days),)), QUESTION)
    assert answer.citations[0].staleness == staleness


def test_a_limit_of_days_is_told_in_days() -> None:
    desk = HelpDesk({"handbook": timedelta(days=1)})
    assert (
        desk.completed(messages.answer(citations=(source(9),)), QUESTION).citations[0].staleness.endswith("9 days ago")
    )


def test_a_source_without_a_limit_is_never_stale() -> None:
    answer = DESK.completed(messages.answer(citations=(source(5_000, "incidents/INC-1"),)), QUESTION)
    assert answer.citations[0].stale_for is None


def test_what_contradicts_an_answer_may_be_stale_too() -> None:
    conflict = Contradiction((source(5), source(1_000)))
    answer = DESK.completed(messages.answer(conflicts=(conflict,)), QUESTION)
    assert [bool(each.staleness) for each in answer.conflicts[0].sources] == [False, True]


def test_when_plumbline_abstains_it_names_the_team_whose_work_it_is() -> None:
    answer = DESK.completed(messages.abstention(), QUESTION)
    assert answer.contacts == (Contact("Delivery", "ci-cd", ("Hana Petrov",)),)
    assert answer.contacts[0].text == "Delivery (#ci-cd, Hana Petrov)"


def test_an_answer_needs_nobody_to_ask() -> None:
    assert DESK.completed(messages.answer(), QUESTION).contacts == ()


def test_a_private_channel_is_not_named() -> None:
    [contact] = DESK.contacts("the payment gateway is slow")
    assert contact.text == "Payments (Asha Brandt)"


def test_where_no_team_fits_nobody_is_named() -> None:
    assert DESK.contacts("who won the football match?") == ()
    assert HelpDesk().contacts("drydock") == ()


def test_teams_that_fit_as_well_are_both_named_but_never_a_crowd() -> None:
    crowd = [Team(str(number), f"Team {number}", "drydock runners", frozenset()) for number in range(5)]
    assert len(HelpDesk(teams=[*crowd, TEAMS[1]]).contacts("drydock runners")) == MAX_CONTACTS


def test_a_team_without_channel_and_people_is_named_alone() -> None:
    assert Contact("Delivery").text == "Delivery"


def test_the_owner_of_a_service_that_the_question_names_is_asked() -> None:
    owner = replace(TEAMS[2], services=frozenset({"runner-fleet"}), on_call=("Kim",))
    desk = replace(DESK, teams=(*TEAMS[:2], owner))
    assert desk.contacts("Why does drydock wait for runner-fleet?") == (Contact("Nobody", "", ("Kim",)),)
