"""Each feature of an answer's certainty by itself, and the limits from which an answer is shown or certain."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.answering import certainty
from core.answering.certainty import (
    CLEAR,
    answerable,
    evaluation_of,
    features,
    is_certain,
    is_off_subject,
    meets_condition,
)
from core.answering.excerpts import Candidate, ReadPassage, pieces
from core.answering.fact_kinds import says_what_is_asked
from core.knowledge.passages import passages_of
from core.knowledge.retriever import RankedPassage, Retrieval
from core.model.badge import Evaluation
from core.model.document import Document, Passage
from tests.cases import every_case

FITTED = json.loads(Path(certainty.__file__).with_name("certainty.json").read_text("utf-8"))
MEANING = "all-MiniLM-L6-v2"


def passage(text: str, title: str = "", document_id: str = "docs/page", family: str = "guides") -> Passage:
    [made] = passages_of(Document(document_id, "docs", family, title, text))
    return made


def ranked(found: Passage, lexical: float = 0.0) -> RankedPassage:
    return RankedPassage(found, lexical, 0.0, 1.0)


def candidate(found: RankedPassage, **fields: float) -> Candidate:
    """All of a passage."""
    parts = pieces(found.passage)
    numbers: dict[str, Any] = {"lexical": 0.0, "telling": 0.0, "coverage": 0.0, "titled": 0.0} | fields
    none = [0.0] * len(parts)
    read = ReadPassage(found, parts, none, none, none, none, is_named=False)
    return Candidate(read, 0, parts, parts[0], **numbers)


def of(text: str, weights: Mapping[str, float] | None = None, **fields: float) -> Mapping[str, float]:
    """Return the features of a page's text."""
    found = ranked(passage(text), lexical=3.0)
    retrieval = Retrieval([found], weights or {}, attainable=12.0)
    return features(retrieval, [candidate(found, **fields)])


def test_shared_terms_count_by_the_root_of_all_terms_of_the_excerpt() -> None:
    assert of("disk quota pump lock", {"disk": 1.0, "quota": 9.0, "zinc": 1.0})["shared"] == 2 / math.sqrt(4)
    assert of("disk disk disk disk", {"disk": 1.0})["shared"] == 1.0
    assert of("…", {"disk": 1.0})["shared"] == 0.0


def test_match_is_a_share_of_what_can_be_attained() -> None:
    assert of("disk")["match"] == 0.25
    found = ranked(passage("disk"), lexical=3.0)
    assert features(Retrieval([found]), [candidate(found)])["match"] == 0.0


def test_the_margin_is_that_to_the_next_candidate_that_shows_other_text() -> None:
    best, other = (ranked(passage(text, document_id=f"docs/{text}")) for text in ("disk", "quota"))
    for scores, margin in (((5.0,), 0.0), ((5.0, 4.5), 0.5), ((5.0, 2.5), CLEAR)):
        offered = [candidate(each, score=score) for each, score in zip((best, other), scores, strict=False)]
        assert features(Retrieval([best, other]), offered)["margin"] == margin
    copy = candidate(best, score=4.9)
    assert features(Retrieval([best]), [candidate(best, score=5.0), copy])["margin"] == 0.0, "it shows the same"


def test_words_meaning_and_search_agree_as_far_as_they_put_the_same_page_first() -> None:
    best, other = (ranked(passage(text, document_id=f"docs/{text}")) for text in ("disk", "quota"))
    above = replace(other, score=2.0)
    for lexical, cosine, search, agree in (
        (1.0, 1.0, best, 3.0),
        (1.0, 0.0, best, 2.0),
        (0.0, 1.0, above, 1.0),
        (0.0, 0.0, above, 0.0),
    ):
        offered = [candidate(best, lexical=lexical, cosine=cosine), candidate(other, lexical=0.5, cosine=0.5)]
        assert features(Retrieval([best, search]), offered)["agree"] == agree


# --- another subject --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "title", "document_id"),
    [
        ("Before a drain, look at RunnerDrainSlow.", "", "docs/a"),
        ("Wait.", "RunnerDrainSlow", "docs/a"),
        ("Wait.", "", "alerts/runnerdrainslow"),
    ],
)
def test_a_page_that_names_the_alert_anywhere_is_about_it(text: str, title: str, document_id: str) -> None:
    found = ranked(passage(text, title, document_id))
    assert not is_off_subject("RunnerDrainSlow: it is slow", candidate(found), Retrieval([found]))


def test_another_passage_of_the_same_page_may_name_the_alert_but_not_another_page() -> None:
    best, naming = passage("Wait."), passage("This is RunnerDrainSlow.")
    for document_id, off in (("docs/page", False), ("docs/other", True), ("docs/a", True), ("docs/z", True)):
        retrieval = Retrieval([ranked(best), ranked(replace(naming, document_id=document_id))])
        assert is_off_subject("RunnerDrainSlow: slow", candidate(ranked(best)), retrieval) is off, document_id


def test_a_page_of_another_product_than_the_one_that_is_named_is_off_the_subject() -> None:
    families = frozenset({"loki", "tempo", "guides"})
    for family, query, off in (
        ("loki", "how does tempo store traces", True),
        ("loki", "how does loki store traces", False),
        ("guides", "how does tempo store traces", False),
        ("loki", "how are traces stored", False),
    ):
        found = ranked(passage("Loki stores. Loki reads. The guides say more.", family=family))
        assert is_off_subject(query, candidate(found), Retrieval([found], families=families)) is off, family


# --- the measures -----------------------------------------------------------------------------------------------------


def logistic(model: Mapping[str, Mapping[str, float]], values: Mapping[str, float]) -> float:
    evidence = sum(weight * values[name] for name, weight in model["coefficients"].items())
    return 1 / (1 + math.exp(-float(model["intercept"]) - evidence))  # pyright: ignore[reportArgumentType]


def test_a_fit_counts_for_the_model_that_it_was_made_with_and_that_for_words_for_any_other() -> None:
    found = ranked(passage("disk quota pump"), lexical=3.0)
    retrieval = Retrieval([found], {"disk": 1.0, "zinc": 1.0}, attainable=12.0)
    best = [candidate(found, coverage=0.5, cosine=0.4)]
    values = features(retrieval, best)
    by_words, by_meaning = FITTED["none"], FITTED[MEANING]
    for embedder, model in (("", by_words), ("another model", by_words), (MEANING, by_meaning)):
        evaluation = evaluation_of(replace(retrieval, embedder=embedder), best)
        assert evaluation.coe == pytest.approx(logistic(model["coe"], values))
        assert evaluation.rce == pytest.approx(logistic(model["rce"], values))


def test_nothing_found_is_no_answer() -> None:
    assert evaluation_of(Retrieval([]), []) == Evaluation(0.0, 0.0)


def test_an_answer_is_shown_from_its_threshold_on_and_certain_from_strong_evidence_on() -> None:
    assert [answerable(Evaluation(coe, 1.0)) for coe in (0.69, 0.7, 0.71)] == [False, True, True]
    assert [is_certain(Evaluation(1.0, rce)) for rce in (0.35, 0.36, 0.37)] == [False, True, True]


# --- what is said -----------------------------------------------------------------------------------------------------


@every_case(
    ("question", "text", "marked", "says"),
    [
        ("may I restart it?", "You may.", "You may.", True),
        ("may I restart it?", "You may.", "It restarts.", False),  # the rule is about something else
        ("is it allowed to restart it?", "It restarts.", "It restarts.", False),
        ("who restarts it?", "It restarts.", "It restarts.", True),
        ("how long does it take?", "Ten minutes.", "Ten minutes.", True),
        ("how long does it take?", "It ends.", "It ends.", False),
        ("how long does it take?", "It ends. 10 minutes.", "It ends.", True),
        ("what time is it?", "At 03:40.", "It is.", False),
        ("what time is it?", "At 03:40.", "", True),
        ("what time is it?", "It is.", "", False),
    ],
)
def test_a_question_for_leave_an_amount_or_a_time_is_answered_by_one(
    question: str, text: str, marked: str, says: bool
) -> None:
    assert says_what_is_asked(question, text, marked) is says


ERROR = "runner says disk full"
NEW = "alpha bravo charlie delta echo foxtrot golf hotel juliet kilo lima mike november".split()


def test_a_question_without_a_condition_is_met_by_any_text() -> None:
    assert meets_condition("who approves a roll-back?", "")
    assert not meets_condition("who approves a roll-back in the freeze?", "")
    assert meets_condition("who approves a roll-back in the freeze?", "In a freeze the director does.")
