"""A question → an answer with its evaluation: the evidence engine from end to end."""

from __future__ import annotations

from dataclasses import replace

from core.answering.answer import Answer
from core.answering.compose import Composition, citation, compose
from core.answering.rewrite import standalone
from core.answering.statements import Statement, statements
from core.answering.verify import supported
from core.confidence.calibrator import raw_score
from core.confidence.evidence import evaluate_answer
from core.confidence.prediction import Evaluation
from core.conversation import Question
from core.knowledge.chain import evidence_chain
from core.knowledge.ranking import RankedPassage
from core.knowledge.retriever import Retrieval, Retriever

ENGINE = "evidence"
RETRIEVED = 20  # passages that the evidence chain is chosen from
NEAREST = 3  # documents that are named instead of an answer
ANSWER_THRESHOLD = 0.4  # raw score below which the evidence is too weak to answer from


async def find_answer(question: Question, retriever: Retriever) -> tuple[Answer, Evaluation]:
    """Answer from what the question's audience may read, or abstain and name the nearest documents.

    Raises IndexUnavailable.
    """
    retrieval = await retriever.search(standalone(question.text, question.history), question.audience, RETRIEVED)
    return answer(question, retrieval)


def answer(question: Question, retrieval: Retrieval) -> tuple[Answer, Evaluation]:
    """The answer that the retrieved passages give, without a badge, and the evaluation that its badge is made from."""
    chain = evidence_chain(retrieval.passages)
    if chain is None:
        return _answer(question, Composition((), (), 0.0)), Evaluation(0.0, 0.0)
    composition = compose(question.text, retrieval.weights, chain.passages)
    passages = {found.passage.id: found.passage for found in chain.passages}
    kept = supported(composition.sentences, composition.citations, passages)
    evaluation = evaluate_answer(retrieval.passages, chain, composition.coverage)
    if not kept or raw_score(evaluation) < ANSWER_THRESHOLD:
        return _answer(question, nearest(retrieval.passages)), evaluation
    return _answer(question, replace(composition, sentences=kept)), evaluation


def nearest(ranked: list[RankedPassage]) -> Composition:
    """No sentence, but the nearest documents as citations."""
    documents: dict[str, Statement] = {}
    for found in ranked:
        first = next(iter(statements(found.passage)), None)
        if first and len(documents) < NEAREST:
            documents.setdefault(found.passage.document_id, first)
    cited = tuple(citation(number, [first]) for number, first in enumerate(documents.values(), start=1))
    return Composition((), cited, 0.0)


def _answer(question: Question, composition: Composition) -> Answer:
    return Answer(question.id, question.text, composition.sentences, composition.citations, ENGINE)
