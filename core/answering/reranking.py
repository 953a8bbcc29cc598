"""The order of a reranker: a model that reads a question together with each passage.

What it puts first is quoted first, and a language model reads the passages in its order. Nothing else follows from it: the
scores and the measures of certainty are those of the evidence, so that no answer is shown, or is certain, because a reranker
prefers it. An answer is not certain either if the reranker prefers another passage.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from core.answering.excerpts import Candidate
from core.knowledge.retriever import Retrieval
from core.model.errors import ModelUnavailable
from core.ports import Reranker


async def reranked(query: str, retrieval: Retrieval, reranker: Reranker) -> Retrieval:
    """Return the passages in the order of the reranker; as they are if it fails.

    It is not asked where there is nothing to choose, because people confirmed the answer, or there is a single passage. The
    passages keep their scores, so that both orders can be compared.
    """
    passages = retrieval.passages
    if len(passages) > 1 and not passages[0].confirmed:
        with suppress(ModelUnavailable):
            order = await reranker(query, [f"{each.passage.title}\n{each.passage.text}" for each in passages])
            return replace(retrieval, passages=[passages[place] for place in order], is_reranked=True)
    return retrieval


def preferred_first(ranked: Sequence[Candidate], retrieval: Retrieval) -> Sequence[Candidate]:
    """Return the candidates, with the best one of the passage that the reranker put first before all others.

    All others stay in the order of the evidence. A passage without a candidate, such as one of headings alone, changes
    nothing.
    """
    preferred = next((each for each in ranked if each.passage.id == retrieval.passages[0].passage.id), None)
    return sorted(ranked, key=lambda each: each is not preferred)
