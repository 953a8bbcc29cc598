"""Estimate which family of manuals a question is about, by its name, its keywords and a vote (Evidence-Chain RAG, Method)."""

from __future__ import annotations

import re
from math import fsum

from core.knowledge.retriever import Retrieval

MOSTLY = 0.6  # share of the mentions of a product's name that have a capital letter

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_NAME_PART = re.compile(r"[a-z0-9]+", re.IGNORECASE)


def support(query: str, retrieval: Retrieval) -> dict[str, float]:
    """Return the support of the family of each retrieved passage, in [0, 1], as a share of the best supported one's.

    The passages vote with their scores. A family's share of the keywords in the question counts as much as its share of
    the votes, and so does its share of the families that the question names. Only families with keywords of their own and products compete: for a folder such as guides, or for past
    incidents, the support is 1.
    """
    scores: dict[str, list[float]] = {}
    for each in retrieval.passages:
        scores.setdefault(each.passage.family, []).append(each.score)
    products = [family for family in scores if family in retrieval.hints or is_product(family, retrieval)]
    total = fsum(score for family in products for score in scores[family]) or 1.0
    named = named_families(query, retrieval.families).intersection(products)
    shares = {
        family: fsum(scores[family]) / total + retrieval.hints.get(family, 0.0) + (family in named) / (len(named) or 1)
        for family in products
    }
    best = max(shares.values(), default=0.0) or 1.0
    return {family: shares[family] / best if family in shares else 1.0 for family in scores}


def named_families(query: str, families: frozenset[str]) -> frozenset[str]:
    """Return the families that a question names: by their whole name, otherwise by a part of it."""
    lowered = query.lower()
    letters = "".join(_NAME_PART.findall(lowered))
    whole = frozenset(each for each in families if "".join(_NAME_PART.findall(each.lower())) in letters)
    words = {part for part in _NAME_PART.findall(lowered) if len(part) > 3}
    return whole or frozenset(each for each in families if not words.isdisjoint(_NAME_PART.findall(each.lower())))


def is_product(family: str, retrieval: Retrieval) -> bool:
    """Return whether a family is named after a product, such as Loki, and not after a topic, such as guides.

    A part of a product's name is mostly capitalised in the prose of the family's retrieved passages.
    """
    if len(retrieval.families) < 2:
        return False
    prose = "\n".join(
        _CODE.sub("", "\n".join(text for text in (each.passage.title, each.passage.text) if text != family))
        for each in retrieval.passages
        if each.passage.family == family
    )
    for part in filter(lambda part: len(part) > 2, _NAME_PART.findall(family)):
        occurrences = re.findall(rf"(?<![a-z0-9_/.-]){re.escape(part)}(?![a-z0-9_/-])", prose, re.IGNORECASE)
        capitalised = sum(not each.islower() for each in occurrences)
        if occurrences and capitalised >= MOSTLY * len(occurrences):
            return True
    return False
