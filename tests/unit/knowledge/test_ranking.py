"""Fusion, rerank and evidence chain."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from core.knowledge.chain import evidence_chain
from core.knowledge.document import Document, DocumentKind, Passage
from core.knowledge.passages import passages_of
from core.knowledge.ranking import Candidate, FusedHit, RankedPassage, fused, reranked
from core.knowledge.rerank import Closeness, WeightedQuery, closeness, weighted
from core.knowledge.terms import terms, tokens
from core.knowledge.windows import windowed
from core.ports import Hit


def passage(
    name: str, text: str = "Some text.", family: str = "runbooks", kind: DocumentKind = DocumentKind.PAGE
) -> Passage:
    return passages_of(Document(f"docs/{name}", "docs", family, "Title", text, kind))[0]


def hits(*scores: tuple[str, float]) -> list[Hit]:
    return [Hit(name, score) for name, score in scores]


def names(found: list[RankedPassage]) -> list[str]:
    return [item.passage.document_id.removeprefix("docs/") for item in found]


def ranked(name: str, score: float, family: str = "runbooks") -> RankedPassage:
    return RankedPassage(passage(name, family=family), 1.0, 0.5, score, score, 1.0, 0.5)


# --- fusion ----------------------------------------------------------------------------------------------------------


def test_scores_are_normalised_and_averaged() -> None:
    found = fused(hits(("a", 20.0), ("b", 15.0), ("c", 10.0)), hits(("b", 0.9), ("c", 0.1)), 0.5)
    assert [(hit.passage_id, hit.fused) for hit in found] == [
        ("b", pytest.approx(0.75)),
        ("a", pytest.approx(0.5)),
        ("c", pytest.approx(0.0)),
    ]


def test_partial_scores_are_kept_as_they_were_retrieved() -> None:
    found = {hit.passage_id: hit for hit in fused(hits(("a", 20.0)), hits(("b", 0.9)), 0.3)}
    assert (found["a"].lexical, found["a"].dense) == (20.0, 0.0)
    assert (found["b"].lexical, found["b"].dense) == (0.0, 0.9)


def test_a_wide_margin_outvotes_a_narrow_one() -> None:
    sure = hits(("a", 30.0), ("b", 10.0), ("c", 5.0))
    unsure = hits(("b", 0.52), ("a", 0.5), ("c", 0.1))
    assert fused(sure, unsure, 0.5)[0].passage_id == "a"


def test_nothing_retrieved_gives_nothing() -> None:
    assert fused([], [], 0.5) == []
    assert reranked([], 0.5, {}) == []


# --- closer look -----------------------------------------------------------------------------------------------------

TEXT = (
    """The pools are large.

## Draining a runner

Mark the runner as drained. It finishes its job.

## Cache

A new runner has a cold cache. """
    + "Nothing else is known about it here. " * 40
)


def look(query: str, text: str = TEXT) -> Closeness:
    return closeness(weighted(tokens(query), dict.fromkeys(terms(query), 1.0)), [windowed(passage("a", text))])[0]


def test_coverage_is_the_share_of_the_query_that_the_passage_holds() -> None:
    assert look("drain runner").coverage == 1.0
    assert look("drain zebra").coverage == 0.5
    assert look("zebra").coverage == 0.0


def test_words_near_together_are_worth_more_than_words_far_apart() -> None:
    near, far = look("runner drained"), look("pools cache")
    assert near.coverage == far.coverage == 1.0
    assert near.focus > far.focus


def test_the_heading_counts_for_what_stands_below_it() -> None:
    filler = " ".join(f"word{n}" for n in range(70))
    text = f"## {{}}\n\n{filler}\n\n{filler}\n\nThe job ends."
    assert look("draining job", text.format("Draining")).focus > look("draining job", text.format("Other")).focus


def test_neighbouring_words_of_the_query_that_stand_together_are_counted() -> None:
    assert look("cold cache").pairs == 1.0
    assert look("cache cold").pairs == 0.0
    assert look("cold pools cache").pairs == 0.0


def test_the_order_of_the_words_is_compared() -> None:
    assert look("mark runner drained job").order == 1.0
    assert look("job drained mark").order < 1.0


def test_a_query_without_a_term_is_near_to_nothing() -> None:
    assert look("") == Closeness(0.0, 0.0, 0.0, 0.0, 0.0)
    assert look("the of") == Closeness(0.0, 0.0, 0.0, 0.0, 0.0)


def test_a_weighted_query_has_each_term_once_in_ascending_order() -> None:
    query: WeightedQuery = weighted(tokens("drain the drain runner"), {"drain": 2.0, "runner": 1.0})
    assert query.numbers.tolist() == sorted(set(query.numbers.tolist()))
    assert query.total == 3.0
    assert len(query.pairs) == 1


# --- rerank ----------------------------------------------------------------------------------------------------------


def candidate(name: str, kind: DocumentKind = DocumentKind.PAGE, updated: int | None = None) -> Candidate:
    chosen = replace(passage(name, kind=kind), updated_at=datetime(updated, 1, 1, tzinfo=UTC) if updated else None)
    closeness = Closeness(8.0, 0.5, 1.0, 0.5, 0.5)
    return Candidate(chosen, FusedHit(chosen.id, 10.0, 0.5, 0.5), closeness, 0.5)


def test_of_two_that_say_the_same_the_newer_comes_first() -> None:
    assert names(reranked([candidate("old", updated=2024), candidate("new", updated=2026)], 0.5, {})) == ["new", "old"]


def test_a_page_comes_before_a_thread_and_a_thread_before_an_incident() -> None:
    kinds = (DocumentKind.INCIDENT, DocumentKind.THREAD, DocumentKind.PAGE)
    found = reranked([candidate(str(kind), kind) for kind in kinds], 0.5, {})
    assert names(found) == ["page", "thread", "incident"]


def test_the_best_spot_decides_between_equals() -> None:
    usual = candidate("a")
    better = replace(usual, passage=passage("b"), closeness=replace(usual.closeness, window=16.0))
    assert names(reranked([usual, better], 0.5, {})) == ["b", "a"]


def test_the_wording_decides_between_equals() -> None:
    usual = candidate("a")
    better = replace(usual, passage=passage("b"), likeness=0.8)
    assert names(reranked([usual, better], 0.5, {})) == ["b", "a"]


def of_family(name: str, family: str) -> Candidate:
    return replace(candidate(name), passage=passage(name, family=family))


def test_of_two_that_match_as_well_the_one_of_the_smaller_family_comes_first() -> None:
    candidates = [of_family("a", "manual"), of_family("b", "runbooks")]
    assert names(reranked(candidates, 0.5, {"manual": 5_000, "runbooks": 100})) == ["b", "a"]


def test_a_clearly_better_match_comes_first_whatever_its_family() -> None:
    found = of_family("b", "runbooks")
    close = replace(found.closeness, window=3.0, pairs=0.0, order=0.1)
    worse = replace(found, hit=replace(found.hit, lexical=4.0), closeness=close)
    candidates = [of_family("a", "manual"), worse]
    assert names(reranked(candidates, 0.5, {"manual": 5_000, "runbooks": 100})) == ["a", "b"]


def test_families_of_a_few_passages_count_as_equally_large() -> None:
    candidates = [of_family("a", "guides"), of_family("b", "runbooks")]
    first, second = reranked(candidates, 0.5, {"guides": 20, "runbooks": 2})
    assert first.score == second.score


def test_a_family_far_larger_than_another_never_makes_a_score_negative() -> None:
    found = of_family("a", "manual")
    close = replace(found.closeness, window=0.0, pairs=0.0, order=0.0)
    hit = replace(found.hit, lexical=0.0, dense=0.0)
    hopeless = replace(found, hit=hit, closeness=close, likeness=0.0)
    last = reranked([hopeless, of_family("b", "runbooks")], 0.5, {"manual": 1_000_000})[-1]
    assert last.score == 0.0


def test_scores_lie_between_0_and_1() -> None:
    for item in reranked([candidate("a"), candidate("b")], 0.8, {}):
        assert 0 <= item.score <= 1


# --- evidence chain --------------------------------------------------------------------------------------------------


def test_the_family_with_the_most_support_wins_and_keeps_only_its_own() -> None:
    chain = evidence_chain([ranked("a", 0.9), ranked("b", 0.85, "chat"), ranked("c", 0.8), ranked("d", 0.8)])
    assert chain is not None
    assert chain.family == "runbooks"
    assert names(list(chain.passages)) == ["a", "c", "d"]
    assert 0.5 < chain.support < 1.0


def test_families_may_outvote_the_first_passage_when_it_is_hardly_better() -> None:
    chain = evidence_chain([ranked("a", 0.90, "chat"), *(ranked(str(n), 0.89) for n in range(5))])
    assert chain is not None
    assert chain.family == "runbooks"


def test_many_weak_passages_do_not_outvote_a_strong_one() -> None:
    chain = evidence_chain([ranked("a", 0.9, "architecture"), *(ranked(str(n), 0.4, "chat") for n in range(19))])
    assert chain is not None
    assert chain.family == "architecture"


def test_one_family_has_all_support() -> None:
    chain = evidence_chain([ranked("a", 0.5)])
    assert chain is not None
    assert chain.support == 1.0


def test_without_passages_there_is_no_chain() -> None:
    assert evidence_chain([]) is None
    assert evidence_chain([ranked("a", 0.0)]) is None
