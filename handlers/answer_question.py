"""A question becomes a cited answer with a badge, or an honest "I don't know"."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from core.answering.answer import Answer
from core.answering.find import ENGINE, find_answer
from core.answering.help_desk import HelpDesk
from core.answering.model_answer import VERSION as MODEL_VERSION
from core.answering.model_answer import ShowDraft, no_draft
from core.audit import Act, AuditEntry, audit_entry
from core.confidence.evidence import VERSION
from core.confidence.prediction import Evaluation, PredictionKind
from core.confidence.reference import Claim, Reference
from core.conversation import Question, Speaker, Turn, turn_key
from core.errors import Unavailable
from core.knowledge.retriever import Retriever
from core.language_model import Urgency
from core.messages import AnswerMessage
from core.ports import Clock, LanguageModel, Store
from handlers.answer_of_either import MODEL_DEADLINE, answer_of_either, requester
from handlers.estimate_confidence import estimate_confidence
from handlers.post_message import Poster
from handlers.quote_meanwhile import READS_ON, Meanwhile, quoted_meanwhile
from handlers.record_prediction import record_prediction
from handlers.show_waiting import Waiting, answer_intent, shown_waiting

HISTORY_TURNS = 8  # of the thread, the latest ones
QUOTED_DEADLINE = 180.0  # seconds that the model has where the documents are quoted meanwhile, so that nobody waits
JUDGED_BY = 8  # retrieved passages that a composed answer is judged by

MAX_WAITS = 3  # times that a chat which asks to wait is waited for with a composed answer in hand
LONGEST_WAIT = 5.0  # seconds each time

ANSWERED = "answer"  # what the message shows, once it is no sign of waiting any more; the revision follows
UNFINISHED = "Still checking what else I may say: no confidence yet."

NO_HELP_DESK = HelpDesk()


def no_queue(_requester: str) -> int:
    """The place in the queue where nobody has to wait."""
    return 0


async def answer_question(
    question: Question,
    *,
    retriever: Retriever,
    store: Store,
    poster: Poster,
    clock: Clock,
    model: LanguageModel | None = None,
    judge: LanguageModel | None = None,
    help_desk: HelpDesk = NO_HELP_DESK,
    position: Callable[[str], int] = no_queue,
) -> None:
    """Answer in the place of the question, in the context of what was said there before.

    While a model composes, the documents are quoted. `position` is the place of a requester in the queue for the model,
    from 1; 0 if it does not wait.
    """

    async def quote() -> bool:
        return model is not None and await _show_quotes(
            question, waiting, help_desk, retriever=retriever, store=store, poster=poster, clock=clock
        )

    async with (
        shown_waiting(question, lambda: position(requester(question)), poster=poster) as waiting,
        quoted_meanwhile(quote) as meanwhile,
    ):
        answer = await prepare_answer(
            question,
            retriever=retriever,
            store=store,
            clock=clock,
            model=model,
            judge=judge,
            help_desk=help_desk,
            draft=lambda draft: _show_draft(draft, question, waiting, meanwhile, poster),
            deadline=QUOTED_DEADLINE,
        )
    version = f"{ANSWERED}:{question.revision}" if question.revision else ANSWERED
    await _show(AnswerMessage(answer), question, version, poster)
    async with store.transaction() as transaction:
        for speaker, said, at in (
            (Speaker.PERSON, question.text, question.asked_at),
            (Speaker.PLUMBLINE, _said(answer), clock.now()),
        ):
            key = turn_key(question.id, speaker)
            await transaction.conversations.add(key, question.place, Turn(speaker, said), at)
        await transaction.audit.add(_shown(question, answer, clock))


async def prepare_answer(
    question: Question,
    *,
    retriever: Retriever,
    store: Store,
    clock: Clock,
    model: LanguageModel | None = None,
    judge: LanguageModel | None = None,
    help_desk: HelpDesk = NO_HELP_DESK,
    draft: ShowDraft = no_draft,
    deadline: float = MODEL_DEADLINE,
) -> Answer:
    """The answer with its badge, not posted anywhere; its prediction is stored.

    `draft` is shown what a model composed as far as it has been checked (see `model_answer`).

    Which engine gives it, `answer_of_either` says; `deadline` in seconds is the model's. With a `judge`, an answer that a
    model composed waits for its two-step estimate; without, the checks that it passed anyway are its measure.
    """
    asked = await _in_context(question, store)
    answer, evaluation = await answer_of_either(asked, retriever, model, draft, deadline)
    answer = help_desk.completed(answer, question)
    if answer.abstained:
        return answer
    cited = tuple(dict.fromkeys(citation.document_id for citation in answer.citations))
    evaluation, version = await _judged(question, answer, evaluation, retriever, judge)
    prediction_id, badge = await record_prediction(
        PredictionKind.ANSWER,
        question.id,
        _said(answer),
        evaluation,
        engine=answer.engine,
        estimator_version=version,
        group=cited[0].partition("/")[0] if cited else "",
        references=cited,
        store=store,
        clock=clock,
    )
    return replace(answer, badge=badge, prediction_id=prediction_id)


async def _judged(
    question: Question, answer: Answer, measured: Evaluation, retriever: Retriever, judge: LanguageModel | None
) -> tuple[Evaluation, str]:
    if answer.engine == ENGINE:
        return measured, VERSION
    if judge is None:
        return measured, MODEL_VERSION
    found = await retriever.search(question.text, question.audience, JUDGED_BY)
    return await estimate_confidence(
        Claim(question.id, question.text, _said(answer), question.asked_at),
        [Reference(each.passage.document_id, each.passage.text) for each in found.passages],
        (measured, MODEL_VERSION),
        model=judge,
        urgency=Urgency.PERSON,
        requester=requester(question),
    )


async def _show(message: AnswerMessage, question: Question, version: str, poster: Poster) -> None:
    """Show the whole answer. What a model took long to compose is not thrown away because the chat asks to wait a bit."""
    waits = 0 if message.answer.engine == ENGINE else MAX_WAITS
    while True:
        try:
            await poster.post_or_edit(answer_intent(question.id), question.place, message, version)
        except Unavailable as error:
            if not waits or error.retry_after is None or error.retry_after > LONGEST_WAIT:
                raise
            waits -= 1
            await asyncio.sleep(error.retry_after)
        else:
            return


async def _show_quotes(
    question: Question,
    waiting: Waiting,
    help_desk: HelpDesk,
    *,
    retriever: Retriever,
    store: Store,
    poster: Poster,
    clock: Clock,
) -> bool:
    """Show what the evidence engine says; whether it says anything, and the chat took it."""
    with suppress(Unavailable):
        answer, _ = await find_answer(await _in_context(question, store), retriever)
        if answer.abstained:
            return False
        message = AnswerMessage(replace(help_desk.completed(answer, question), note=READS_ON))
        async with store.transaction() as transaction:
            await transaction.audit.add(_shown(question, answer, clock, "quoted"))
        await waiting.end()
        await poster.post_or_edit(answer_intent(question.id), question.place, message, f"quoted:{question.revision}")
        return True
    return False


async def _show_draft(
    draft: Answer, question: Question, waiting: Waiting, meanwhile: Meanwhile, poster: Poster
) -> None:
    """Show the sentences that have passed; a chat that does not take them gets the whole answer later.

    Where the documents are quoted already, half an answer does not take their place.
    """
    if await meanwhile.end():
        return
    message = AnswerMessage(replace(draft, note=UNFINISHED), draft_for=question.asker)
    version = f"draft:{len(draft.sentences)}:{question.revision}"
    await waiting.end()
    with suppress(Unavailable):
        await poster.post_or_edit(answer_intent(question.id), question.place, message, version)


async def _in_context(question: Question, store: Store) -> Question:
    """With what was said before, unless it came with it."""
    async with store.transaction() as transaction:
        history = await transaction.conversations.history(question.place, HISTORY_TURNS)
    return replace(question, history=question.history or history)


def _said(answer: Answer) -> str:
    return " ".join(sentence.text for sentence in answer.sentences)


def _shown(question: Question, answer: Answer, clock: Clock, how: str = "answered") -> AuditEntry:
    """Who was shown which documents, also of those that are named as the nearest to no answer."""
    return audit_entry(
        f"{how}:{question.key}",
        clock.now(),
        Act.ANSWERED,
        question.asker,
        question.id,
        place=question.place,
        documents=tuple(dict.fromkeys(citation.document_id for citation in answer.citations)),
        detail="abstained" if answer.abstained else answer.engine,
    )
