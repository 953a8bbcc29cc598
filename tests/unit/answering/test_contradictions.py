"""Other documents that state something else for the same thing."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from core.answering.answer import Conflict, Sentence
from core.answering.citations import citation
from core.answering.contradictions import MAX_CONFLICTS, contradictions
from core.answering.statements import statements
from core.knowledge.passages import passages_of
from core.knowledge.ranking import RankedPassage
from core.knowledge.retriever import Retrieval
from core.knowledge.terms import terms
from core.model.document import Document, DocumentKind

QUESTION = "How long does a roll-back of the canary take?"
ANSWER = "A roll-back of the canary takes 90 seconds."


def page(
    name: str, text: str, year: int | None = 2026, kind: DocumentKind = DocumentKind.PAGE, title: str = "Roll back"
) -> RankedPassage:
    updated = datetime(year, 1, 5, tzinfo=UTC) if year else None
    [passage] = passages_of(Document(f"docs/{name}", "docs", "f", title, text, kind, updated_at=updated))
    return RankedPassage(passage, 1.0, 0.5, 1.0)


def found(answer: RankedPassage, *others: RankedPassage, question: str = QUESTION) -> tuple[Conflict, ...]:
    """What contradicts the first statement of a passage."""
    first = statements(answer.passage)[0]
    retrieval = Retrieval([answer, *others], dict.fromkeys(terms(question), 1.0), 1.0)
    return contradictions([Sentence(first.text, (1,))], [citation(1, first)], retrieval)


def test_two_values_for_the_same_thing_contradict_each_other_and_the_newer_source_comes_first() -> None:
    [conflict] = found(page("old", ANSWER, 2024), page("new", "A roll-back of a canary takes up to 5 minutes.", 2026))
    assert [source.document_id for source in conflict.sources] == ["docs/new", "docs/old"]
    assert [source.quote for source in conflict.sources] == ["A roll-back of a canary takes up to 5 minutes.", ANSWER]
    assert [source.number for source in conflict.sources] == [2, 1]


def test_a_source_without_a_date_comes_last() -> None:
    [conflict] = found(page("a", ANSWER, None), page("b", "A roll-back of a canary takes 5 minutes.", 2020))
    assert conflict.sources[0].document_id == "docs/b"


def test_a_denial_contradicts() -> None:
    asked = "May a canary be rolled back during the freeze?"
    assert found(
        page("a", "A canary may be rolled back during the freeze."),
        page("b", "A canary must not be rolled back during the freeze."),
        question=asked,
    )


@pytest.mark.parametrize(
    "other",
    [
        "A roll-back of the canary takes 90 s.",  # the same value in another unit
        "A roll-back of the canary takes a while.",  # no value
        "A roll-back of the canary in `south` takes 5 minutes.",  # of something else
        "A roll-back of the database takes 5 minutes.",  # of something else
        "Draining a runner takes 45 minutes.",  # about something else
        "A roll-back of the canary needs 2 approvals.",  # another kind of value
    ],
)
def test_what_speaks_of_something_else_contradicts_nothing(other: str) -> None:
    assert found(page("a", ANSWER), page("b", other)) == ()


def test_a_document_does_not_contradict_itself() -> None:
    twice = page("a", f"{ANSWER}\n\nA roll-back of a canary takes 5 minutes.")
    assert found(twice) == ()


def test_a_past_incident_says_what_was_once() -> None:
    incident = page("b", "A roll-back of the canary took 5 minutes.", kind=DocumentKind.INCIDENT)
    assert found(page("a", ANSWER), incident) == ()


def test_there_is_one_conflict_for_a_document_and_never_more_than_a_reader_can_weigh() -> None:
    others = [
        page(f"b{n}", f"A roll-back of a canary takes {n} minutes. A roll-back of the canary takes {n} hours.")
        for n in range(3, 9)
    ]
    conflicts = found(page("a", ANSWER), *others)
    assert len(conflicts) == MAX_CONFLICTS
    assert len({source.document_id for each in conflicts for source in each.sources}) == MAX_CONFLICTS + 1


ERASE = "Empty the seat store:\n\n```\nseatctl erase --all\n```"


@pytest.mark.parametrize(
    "ban",
    [
        "Never run `seatctl erase --all` on the seat store.",
        "Do not use `seatctl erase` for the seat store, it loses every hold.",
        "You must not call `erase` on the seat store.",
    ],
)
def test_a_document_that_bans_a_command_contradicts_the_one_that_gives_it(ban: str) -> None:
    [conflict] = banned(ERASE, ban)
    assert [source.quote for source in conflict.sources] == [ban, "```\nseatctl erase --all\n```"]


@pytest.mark.parametrize(
    "other",
    [
        "Run `seatctl erase --all` on the seat store at night.",
        "Never run `seatctl erase --everything` on the seat store.",
        "Never run `seat` on the seat store.",
        "The seat store never erases: `seatctl erase --all` does.",
        "Never run `seatctl erase --all` on the mail queue.",
    ],
)
def test_a_document_that_bans_something_else_contradicts_nothing(other: str) -> None:
    assert banned(ERASE, other) == ()


def test_two_documents_that_ban_the_same_command_agree() -> None:
    ban = "Never run `seatctl erase --all` on the seat store."
    assert banned(ban, f"{ban} It loses holds.") == ()


def banned(text: str, other: str) -> tuple[Conflict, ...]:
    """What contradicts the last statement of a page."""
    answer, rival = page("a", text, 2024, title="Emptying the seat store"), page("b", other, 2026, title="Holds")
    last = statements(answer.passage)[-1]
    retrieval = Retrieval([answer, rival], dict.fromkeys(terms("how do I empty it?"), 1.0), 1.0)
    return contradictions([Sentence(last.text, (1,))], [citation(1, last)], retrieval)
