"""A question → an answer that a language model composed and every check let pass: the second engine, end to end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from core.answering.answer import Answer, Citation, Sentence
from core.answering.certainty import answerable, is_certain
from core.answering.contradictions import contradictions
from core.answering.find import nearest
from core.answering.model_check import CheckedSentence, checked
from core.answering.model_evidence import Evidence, fitting, gathered
from core.answering.model_rewrite import UnderstoodQuestion, understood
from core.answering.model_translate import translated
from core.confidence.calibrator import STRONG_SCORE, raw_score
from core.knowledge.retriever import Retriever
from core.model.conversation import Question
from core.model.errors import InvalidReply
from core.model.language_model import ModelRequest
from core.model.prediction import Evaluation
from core.model_calls.prompts import answering as prompts
from core.model_calls.structured_reply import structured
from core.ports import LanguageModel

VERSION = "answer-verdict-1"  # of the prompts and of the two measures below: stored with every prediction
TRANSLATED = "Translated from the language of the documents. The original wording applies."

READ_PASSAGES = 5  # best passages whose statements a model is shown
KEPT = 0.5  # share of the composed sentences that must pass: where most of what it says is unfounded, a model guesses
COMPRESS_TOKENS = 200  # room for the numbers of the chosen statements
COMPOSE_TOKENS = 900  # room for all sentences


ShowDraft = Callable[[Answer], Awaitable[None]]
_Passed = Callable[[tuple[Sentence, ...], tuple[Citation, ...]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class _Composition:
    """An answer in the language of its documents; no sentences where they do not answer or too little may stay.

    `quotes` are the cited statements as they stand there, with the same citations. `verdict` is the mean probability
    that the model gives to a composed sentence's following from its citations, 0 for one that was withheld.
    """

    sentences: tuple[Sentence, ...] = ()
    citations: tuple[Citation, ...] = ()
    quotes: tuple[Sentence, ...] = ()
    verdict: float = 0.0


async def no_draft(_draft: Answer) -> None:
    """For those who wait for the whole answer."""


async def model_answer(
    question: Question,
    retriever: Retriever,
    model: LanguageModel,
    request: ModelRequest,
    draft: ShowDraft = no_draft,
) -> tuple[Answer, Evaluation]:
    """Answer from what the question's audience may read, or abstain by the rules of the evidence engine.

    `draft` is shown the sentences that have passed their checks, each time that there is one more and others are left to
    check, from the one on with which enough have passed for the answer to stand: nothing of it is taken back. An answer
    that is still to be translated has no drafts.

    `request` says for whom and by when the model is asked; its messages are replaced. The evaluation is that of the
    evidence engine; its `rce`, how far the references support the answer, counts as far as the model's verdicts agree.

    Raises IndexUnavailable, ModelUnavailable, InvalidReply and PromptTooLong.
    """
    found = await understood(question, retriever, model, request)
    measured = found.evaluation
    abstention = Answer(question.id, question.text, (), nearest(found.retrieval.passages), model.name)

    async def passed(sentences: tuple[Sentence, ...], citations: tuple[Citation, ...]) -> None:
        if not found.language:
            await draft(replace(abstention, sentences=sentences, citations=citations))

    composition = await _composed(model, request, found, passed) if answerable(measured) else _Composition()
    if not composition.sentences:
        return abstention, Evaluation(measured.coe, 0.0)
    evaluation = Evaluation(measured.coe, measured.rce * composition.verdict)
    answer = replace(
        abstention,
        sentences=composition.sentences,
        citations=composition.citations,
        tentative=not is_certain(evaluation) or composition.verdict < STRONG_SCORE,
        certainty=raw_score(evaluation),
        conflicts=contradictions(composition.quotes, composition.citations, found.retrieval),
    )
    if found.language:
        shown = await translated(model, request, composition.sentences, question.text, found.language)
        answer = replace(answer, sentences=shown, note=TRANSLATED if shown != composition.sentences else "")
    return answer, evaluation


async def _composed(
    model: LanguageModel, request: ModelRequest, found: UnderstoodQuestion, passed: _Passed
) -> _Composition:
    evidence = await _compressed(model, request, gathered(found.evidence[:READ_PASSAGES]), found.query)
    if not evidence.statements:
        return _Composition()
    evidence = await fitting(model, evidence, prompts.compose((), found.query), COMPOSE_TOKENS)
    asked = prompts.compose(evidence.sections, found.query)
    reply = await structured(model, replace(request, messages=asked, max_tokens=COMPOSE_TOKENS), prompts.Composed)

    def stands(kept: list[CheckedSentence]) -> bool:
        return bool(kept) and len(kept) >= KEPT * len(reply.sentences)

    async def one_more(kept: list[CheckedSentence]) -> None:
        if stands(kept):
            await passed(*evidence.cited([item.sentence for item in kept]))

    kept = await checked(model, request, reply, evidence, one_more)
    if not stands(kept):
        return _Composition()
    sentences, citations = evidence.cited([item.sentence for item in kept])
    cited = {n: evidence.statements[n] for item in kept for n in item.sentence.citations}
    quotes, _ = evidence.cited([Sentence(statement.text, (n,)) for n, statement in cited.items()])
    return _Composition(
        sentences,
        citations,
        quotes,
        sum(item.probability for item in kept) / len(reply.sentences),
    )


async def _compressed(model: LanguageModel, request: ModelRequest, evidence: Evidence, query: str) -> Evidence:
    """The statements that the model holds for helpful (Ericsson chatbot, section V-B: contextual compression).

    It names their numbers, so that nothing can stand in an extract that does not stand in the passage.
    """
    evidence = await fitting(model, evidence, prompts.compress((), query), COMPRESS_TOKENS)
    asked = prompts.compress(evidence.sections, query)
    reply = await structured(model, replace(request, messages=asked, max_tokens=COMPRESS_TOKENS), prompts.Chosen)
    chosen = evidence.only(reply.statements)
    if reply.statements and not chosen.statements:
        raise InvalidReply(f"{model.name} chose only statements that it was not shown.")
    return chosen
