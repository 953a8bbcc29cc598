"""Choose between the language model's answer and the evidence engine's."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import structlog

from core.answering.answer import Answer
from core.answering.find import find_answer
from core.answering.model_answer import ShowDraft, model_answer, no_draft
from core.knowledge.retriever import Retriever
from core.model.conversation import Question
from core.model.errors import InvalidReply, ModelUnavailable, PromptTooLong
from core.model.language_model import ModelRequest, Urgency
from core.model.prediction import Evaluation
from core.ports import LanguageModel

MODEL_DEADLINE = 60.0  # seconds for the model's whole answer
QUOTED_DEADLINE = 180.0  # seconds if quotes are already shown meanwhile
WITHOUT_MODEL = "The language model gave no usable answer in time; the documents are quoted instead."
NO_REPLY = "The language model gave no usable answer in time."
NOT_FOUND_BY_MODEL = "The language model found no answer in these documents."

Judged = tuple[Answer, Evaluation]

log = structlog.get_logger()


def nothing_quoted() -> bool:
    """Return False: no quotes are shown."""
    return False


async def answer_of_either(
    question: Question,
    retriever: Retriever,
    model: LanguageModel | None,
    draft: ShowDraft = no_draft,
    is_quoted: Callable[[], bool] = nothing_quoted,
) -> Judged:
    """Return the model's answer if it is ready in time and useful; otherwise the evidence engine's.

    The evidence engine's is also used if the model finds nothing, is uncertain about what the documents state plainly,
    or cites a document that was deleted meanwhile. The answer's note says why. Raises IndexUnavailable.
    """
    if model is None:
        return await find_answer(question, retriever)
    request = ModelRequest((), urgency=Urgency.PERSON, requester=requester(question), deadline=QUOTED_DEADLINE)
    try:
        composed = await _in_time(model_answer(question, retriever, model, request, draft), is_quoted)
    except (ModelUnavailable, InvalidReply, PromptTooLong, TimeoutError) as error:
        reason = str(error) or f"It took longer than {QUOTED_DEADLINE if is_quoted() else MODEL_DEADLINE:.0f} seconds."
        log.warning("answered without the language model", question=question.id, reason=reason)
        answer, evaluation = await find_answer(question, retriever)
        return replace(answer, note=NO_REPLY if answer.abstained else WITHOUT_MODEL), evaluation
    answer, _ = composed
    cited = frozenset(citation.passage_id for citation in answer.citations)
    if not await retriever.holds(cited, question.audience):  # documents may have been deleted in the meantime
        return await find_answer(question, retriever)
    if answer.sentences and not answer.tentative:
        return composed
    return _better(composed, await find_answer(question, retriever))


async def _in_time(composing: Awaitable[Judged], is_quoted: Callable[[], bool]) -> Judged:
    """Return the result of `composing`. Raises TimeoutError after the deadline, and cancels the work."""
    task = asyncio.ensure_future(composing)
    try:
        await asyncio.wait([task], timeout=MODEL_DEADLINE)
        if is_quoted():
            await asyncio.wait([task], timeout=QUOTED_DEADLINE - MODEL_DEADLINE)
        if not task.done():
            raise TimeoutError
        return task.result()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _better(composed: Judged, quoted: Judged) -> Judged:
    """Return the better of two answers. Plain quotes win over a model that finds nothing.

    Quotes that win because the model found nothing are tentative.
    """
    (answer, _), (quotes, evaluation) = composed, quoted
    if quotes.abstained or (answer.sentences and quotes.tentative):
        return composed
    if answer.sentences:
        return quoted
    return replace(quotes, tentative=True, note=NOT_FOUND_BY_MODEL), evaluation


def requester(question: Question) -> str:
    """Return the requester id that the model queue uses for fairness among channels."""
    return f"{question.place.platform}:{question.place.channel}"
