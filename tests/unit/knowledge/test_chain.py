"""The chain of one family, and the typed chain of several."""

from __future__ import annotations

import pytest

from core.knowledge.chain import chain_of, evidence_chain, evidence_chains
from core.knowledge.document import Document
from core.knowledge.passages import passages_of
from core.knowledge.ranking import RankedPassage


def ranked(*found: tuple[str, float]) -> list[RankedPassage]:
    """Passages of these families with these scores."""
    passages = [
        passages_of(Document(f"docs/{number}", "docs", family, "Title", "Some text."))[0]
        for number, (family, _) in enumerate(found)
    ]
    return [
        RankedPassage(passage, lexical=score, dense=score, fused=score, score=score, coverage=score, focus=score)
        for passage, (_, score) in zip(passages, found, strict=True)
    ]


def test_the_family_with_the_most_support_wins_whatever_the_order_of_the_passages() -> None:
    found = ranked(("a", 0.9), ("b", 0.8), ("b", 0.7))
    chain = chain_of(found, {"a": 1.0, "b": 3.0})
    assert chain is not None
    assert (chain.family, chain.support, chain.lead) == ("b", 0.75, 0.5)
    assert list(chain.passages) == found[1:]


def test_a_family_without_a_rival_leads_by_all_its_support() -> None:
    chain = evidence_chain(ranked(("a", 0.9)))
    assert chain is not None
    assert chain.lead == chain.support == 1.0


def test_families_that_are_level_have_no_lead() -> None:
    chain = chain_of(ranked(("a", 0.9), ("b", 0.9)), {"a": 2.0, "b": 2.0})
    assert chain is not None
    assert chain.lead == pytest.approx(0.0)


def test_without_support_there_is_no_chain() -> None:
    assert chain_of(ranked(("a", 0.9)), {"a": 0.0}) is None


def test_parts_of_several_families_have_a_chain_each_in_their_order() -> None:
    chains = evidence_chains([ranked(("b", 0.9), ("a", 0.3)), ranked(("a", 0.8), ("b", 0.1))])
    assert [chain.family for chain in chains] == ["b", "a"]
    assert all({found.passage.family for found in chain.passages} == {chain.family} for chain in chains)


def test_parts_of_one_family_are_left_to_the_chain_of_the_whole() -> None:
    assert evidence_chains([ranked(("a", 0.9), ("b", 0.3)), ranked(("a", 0.8))]) == ()


def test_a_part_for_which_nothing_is_found_leaves_no_typed_chain() -> None:
    assert evidence_chains([ranked(("a", 0.9)), [], ranked(("b", 0.8))]) == ()
