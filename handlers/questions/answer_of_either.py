"""A question is answered by the evidence engine, and where that is not certain, a language model chooses the excerpt."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import structlog

from core.answering.certainty import VERSION
from core.answering.find import ENGINE, find_answer
from core.answering.model_answer import VERSION as MODEL_VERSION
from core.answering.model_answer import Skill, chosen_answer, needs_choice
from core.knowledge.retriever import Retriever
from core.model.answer import Answer
from core.model.conversation import Question
from core.model.errors import InvalidReply, ModelUnavailable, PromptTooLong
from core.model.language_model import ModelRequest, Urgency
from core.model.prediction import Estimator, Evaluation, PredictionKind
from core.ports import LanguageModel, Store
from handlers.feedback.record_prediction import calibrated_probability
from handlers.questions.examine_model import ExaminedModel

PATIENCE = 0.7  # seconds that a model has before what the evidence engine found is shown
DEADLINE = 60.0  # seconds that it has in all
WITHOUT_MODEL = "The language model did not answer in time."

Judged = tuple[Answer, Evaluation]
Show = Callable[[Answer], Awaitable[object]]

log = structlog.get_logger()


async def show_nothing(_quotes: Answer) -> None:
    """For those who wait for the whole answer."""


async def answer_of_either(
    question: Question, retriever: Retriever, examined: ExaminedModel | None, store: Store, show: Show = show_nothing
) -> Judged:
    """Return the evidence engine's answer, or the excerpt that a model chooses where that is not certain.

    `show` is given the evidence engine's answer as soon as a model takes longer than a moment. The model's choice is not
    taken where it cites what was taken away meanwhile, or where people's verdicts on both engines say that the other
    answer is likelier right. Raises IndexUnavailable.
    """
    found = await find_answer(question, retriever)
    if examined is None or not needs_choice(found[0]) or (skill := examined.skill) is None:
        return found
    choosing = asyncio.create_task(_in_time(question, found, retriever, examined.model, skill))
    try:
        done, _ = await asyncio.wait([choosing], timeout=PATIENCE)
        if not done and not found[0].abstained:
            await show(found[0])
        chosen = await choosing
    finally:
        choosing.cancel()
    answer, _ = chosen
    cited = frozenset(citation.passage_id for citation in answer.citations)
    if not await retriever.holds(cited, question.audience):
        return await find_answer(question, retriever)
    return chosen if answer.engine == ENGINE or await _is_likelier(chosen, found, store) else found


async def _in_time(
    question: Question, found: Judged, retriever: Retriever, model: LanguageModel, skill: Skill
) -> Judged:
    """Return the model's choice; the evidence engine's answer with a note where there is none before the deadline."""
    request = ModelRequest((), urgency=Urgency.PERSON, requester=requester(question), deadline=DEADLINE)
    try:
        async with asyncio.timeout(DEADLINE):
            return await chosen_answer(question, found, retriever, model, request, skill)
    except (ModelUnavailable, InvalidReply, PromptTooLong, TimeoutError) as error:
        reason = str(error) or f"It took longer than {DEADLINE:.0f} seconds."
        log.warning("answered without the language model", question=question.id, reason=reason)
        answer, evaluation = found
        return replace(answer, note=f"{answer.note} {WITHOUT_MODEL}".strip()), evaluation


async def _is_likelier(chosen: Judged, found: Judged, store: Store) -> bool:
    """Tell whether a choice is as likely right as what was found, by the verdicts on both engines; True without them."""
    if found[0].abstained:
        return True
    told = [
        await calibrated_probability(
            Estimator(PredictionKind.ANSWER, answer.engine, VERSION if answer.engine == ENGINE else MODEL_VERSION),
            evaluation,
            store,
        )
        for answer, evaluation in (chosen, found)
    ]
    model, evidence = told
    return model is None or evidence is None or model >= evidence


def requester(question: Question) -> str:
    """Return the requester id that the model queue uses for fairness among channels."""
    return f"{question.place.platform}:{question.place.channel}"
