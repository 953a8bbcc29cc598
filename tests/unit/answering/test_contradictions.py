"""Other documents that state something else for the same thing."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from core.answering.caveats import MAX_CONFLICTS, claim, contradictions
from core.answering.statements import statements
from core.knowledge.passages import passages_of
from core.knowledge.retriever import RankedPassage, Retrieval
from core.knowledge.terms import terms
from core.model.answer import Contradiction, Sentence
from core.model.document import Document, DocumentKind
from tests.cases import every_case

QUESTION = "How long does a roll-back of the canary take?"
ANSWER = "A roll-back of the canary takes 90 seconds."


def page(
    name: str, text: str, year: int | None = 2026, kind: DocumentKind = DocumentKind.PAGE, title: str = "Roll back"
) -> RankedPassage:
    updated = datetime(year, 1, 5, tzinfo=UTC) if year else None
    [passage] = passages_of(Document(f"docs/{name}", "docs", "f", title, text, kind, updated_at=updated))
    return RankedPassage(passage, 1.0, 0.5, 1.0)


def found(answer: RankedPassage, *others: RankedPassage, question: str = QUESTION) -> tuple[Contradiction, ...]:
    """What contradicts the first statement of a passage."""
    first = statements(answer.passage)[0]
    retrieval = Retrieval([answer, *others], dict.fromkeys(terms(question), 1.0), 1.0)
    return contradictions([Sentence(first.text, (1,))], [first.cited(1)], retrieval)


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


@every_case(
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


@every_case(
    "ban",
    [
        "Never run `seatctl erase --all` on the seat store.",
        "Do not use `seatctl erase` for the seat store, it loses every hold.",
        "You must not call `erase` on the seat store.",
        "Emptying the seat store by `seatctl drop` replaced `seatctl erase --all` in May.",
        "To empty the seat store, run `seatctl drop` instead of `seatctl erase`.",
        "For the seat store `seatctl erase` is deprecated.",
        "Never run `seatctl --all` on the seat store.",
    ],
)
def test_a_document_that_bans_a_command_contradicts_the_one_that_gives_it(ban: str) -> None:
    [conflict] = banned(ERASE, ban)
    assert [source.quote for source in conflict.sources] == [ban, "```\nseatctl erase --all\n```"]


@every_case(
    "other",
    [
        "Run `seatctl erase --all` on the seat store at night.",
        "Never run `seatctl erase --everything` on the seat store.",
        "Never run `seat` on the seat store.",
        "The seat store never erases: `seatctl erase --all` does.",
        "Never run `seatctl erase --all` on the mail queue.",
        "Emptying the seat store by `seatctl drop` was replaced by `seatctl erase --all`.",
        "For the seat store `seatctl erase --everything` is deprecated.",
        "Run `seatctl drop` on the seat store.",
    ],
)
def test_a_document_that_bans_something_else_contradicts_nothing(other: str) -> None:
    assert banned(ERASE, other) == ()


def test_an_older_document_replaces_nothing_of_a_newer_one() -> None:
    replaced = "For the seat store, `seatctl erase` was replaced by `seatctl drop`."
    assert banned(ERASE, replaced)
    assert banned(ERASE, replaced, year=2022) == ()


def test_two_documents_that_ban_the_same_command_agree() -> None:
    ban = "Never run `seatctl erase --all` on the seat store."
    assert banned(ban, f"{ban} It loses holds.") == ()


def banned(text: str, other: str, year: int = 2026) -> tuple[Contradiction, ...]:
    """What contradicts the last statement of a page."""
    answer, rival = page("a", text, 2024, title="Emptying the seat store"), page("b", other, year, title="Holds")
    last = statements(answer.passage)[-1]
    retrieval = Retrieval([answer, rival], dict.fromkeys(terms("how do I empty it?"), 1.0), 1.0)
    return contradictions([Sentence(last.text, (1,))], [last.cited(1)], retrieval)


@every_case(
    ("text", "measure", "values"),
    [
        ("It takes 90 seconds.", "s", {90.0}),
        ("It takes 1.5 minutes, or two hours.", "s", {90.0, 7200.0}),
        ("It takes 800 ms.", "s", {0.8}),
        ("At most 25 % of the pods.", "%", {25.0}),
        ("At most 25 percent of the pods.", "%", {25.0}),
        ("Messages of 1 MB.", "B", {1e6}),
        ("A disk of 2 GiB.", "B", {2.0 * 2**30}),
        ("From 14:00 to 07:30.", "time of day", {50400.0, 27000.0}),
        ("Either 3 replicas or 5 shards, for 90 seconds.", "s", {90.0}),
        ("Never on Fridays.", "weekday", {"friday"}),
        ("Needs v1.24.3.", "version", {"1.24.3"}),
        ("There are 60,000 replicas.", "number", {60000.0}),
        ("There are three replicas.", "number", {3.0}),
        ("`maximumPoolSize` 40", "number", {40.0}),
        ("port: 8080 must be open", "number", {8080.0}),
    ],
)
def test_a_value_stands_under_what_it_measures(text: str, measure: str, values: set[float | str]) -> None:
    assert claim(text).values == {measure: values}


@every_case("text", ["5 \u017f", "\u017fix days", "it is d\u0131sabled", "5 m\u0130n", f"{'9' * 400} s"])
def test_letters_that_only_a_pattern_takes_for_others_break_nothing(text: str) -> None:
    claim(text)


def test_encoded_data_is_read_at_once() -> None:
    assert claim("a" * 100_000).values == {}


@every_case("text", ["", "Nothing is counted here.", "`slipway promote`", "E1234 means nothing", "10.0.0.1/8"])
def test_what_measures_nothing_has_no_value(text: str) -> None:
    assert claim(text).values.keys() <= {"version"}


def test_the_values_are_no_part_of_the_subject() -> None:
    assert claim("A roll-back takes 90 seconds.").subject == claim("A roll-back takes two hours.").subject


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("The port is closed.", "The port is not closed."),
        ("Caching is enabled.", "Caching is disabled."),
        ("You can promote it.", "You can't promote it."),
    ],
)
def test_a_denial_has_the_subject_of_what_it_denies(first: str, second: str) -> None:
    assert claim(first).subject == claim(second).subject
    assert not claim(first).denies
    assert claim(second).denies


def test_a_denied_denial_is_none() -> None:
    assert not claim("Caching is not disabled.").denies


@every_case(
    ("first", "second", "expected"),
    [
        ("It takes 90 seconds.", "It takes 2 minutes.", True),
        ("It takes 90 seconds.", "It takes 1.5 minutes.", False),
        ("It takes 90 seconds.", "It takes 90 seconds, at times 2 minutes.", False),
        ("It takes 90 seconds.", "It needs 2 pods.", False),
        ("From Friday on.", "From Thursday on.", True),
        ("It takes a while.", "It takes 2 minutes.", False),
    ],
)
def test_values_differ_if_none_of_a_kind_is_shared(first: str, second: str, expected: bool) -> None:
    assert claim(first).differs(claim(second)) is expected
