"""A question → an answer with its evaluation: the evidence engine from end to end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.answering.answer import Answer, Citation
from core.answering.compose import Composition, citation, compose
from core.answering.contradictions import contradictions
from core.answering.rewrite import standalone
from core.answering.statements import statements
from core.answering.typed_answer import better, part_queries
from core.answering.verify import supported
from core.aside import aside
from core.confidence.evidence import certain, decidability, lead, support
from core.confidence.prediction import Evaluation
from core.conversation import Audience, Question
from core.knowledge.chain import evidence_chain, evidence_chains
from core.knowledge.document import DocumentKind
from core.knowledge.ranking import RankedPassage
from core.knowledge.retriever import Retrieval, Retriever

ENGINE = "evidence"
RETRIEVED = 20  # passages that the evidence chain is chosen from
NEAREST = 3  # documents that are named instead of an answer
ANSWER_THRESHOLD = 0.33  # `coe` below which the references cannot decide; 90 % of what it was fitted on pass


async def find_answer(question: Question, retriever: Retriever) -> tuple[Answer, Evaluation]:
    """Answer from what the question's audience may read, or abstain and name the nearest documents.

    Raises IndexUnavailable.
    """
    query = standalone(question.text, question.history)
    whole = await aside(answer, question, query, await search(query, question.audience, retriever))
    parts = part_queries(question.text, query)
    if len(parts) == 1:
        return whole
    retrievals = [await search(part, question.audience, retriever) for part in parts]
    if not evidence_chains([retrieval.passages for retrieval in retrievals]):
        return whole
    return better([await aside(answer, question, *part) for part in zip(parts, retrievals, strict=True)], whole)


async def search(query: str, audience: Audience, retriever: Retriever) -> Retrieval:
    """What is found that can answer: a thread that says nothing, as nobody answered in it, hides no page that does."""
    found = await retriever.search(query, audience, RETRIEVED)
    telling = [
        each for each in found.passages if each.passage.kind is not DocumentKind.THREAD or statements(each.passage)
    ]
    return replace(found, passages=telling)


def answer(question: Question, query: str, retrieval: Retrieval) -> tuple[Answer, Evaluation]:
    """The answer that the retrieved passages give, without a badge, and the evaluation that its badge is made from.

    `query` is the question made to stand alone, that was searched for.
    """
    chain = evidence_chain(retrieval.passages)
    if chain is None:
        return _answer(question, Composition()), Evaluation(0.0, 0.0)
    composition = compose(query, retrieval.weights, chain.passages)
    passages = {found.passage.id: found.passage for found in chain.passages}
    kept = supported(composition.sentences, composition.citations, passages)
    cited = {source.document_id for source in composition.citations}
    ahead = lead(retrieval.passages, cited)
    coe = decidability(chain.passages, retrieval)
    evaluation = Evaluation(coe, support(composition.coverage, ahead))
    if not kept or coe < ANSWER_THRESHOLD:
        return _answer(question, Composition(citations=nearest(retrieval.passages))), evaluation
    answered = _answer(question, Composition(kept, composition.citations))
    conflicts = contradictions(kept, composition.citations, retrieval)
    tentative = not (certain(evaluation) and composition.is_of_kind)
    return replace(answered, tentative=tentative, conflicts=conflicts), evaluation


def nearest(ranked: Sequence[RankedPassage]) -> tuple[Citation, ...]:
    """The nearest documents, best first, each with its first statement."""
    firsts = {found.passage.document_id: found.passage for found in reversed(ranked)}
    documents = dict.fromkeys(found.passage.document_id for found in ranked)
    quoted = [statement for document in documents for statement in statements(firsts[document])[:1]]
    return tuple(citation(number, statement) for number, statement in enumerate(quoted[:NEAREST], start=1))


def _answer(question: Question, composition: Composition) -> Answer:
    return Answer(question.id, question.text, composition.sentences, composition.citations, ENGINE)
