"""Answer a question with citations and a badge, or say honestly that the answer is unknown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from core.answering.certainty import VERSION
from core.answering.find import ENGINE
from core.answering.help_desk import HelpDesk
from core.answering.model_answer import NOT_FOUND
from core.answering.model_answer import VERSION as MODEL_VERSION
from core.knowledge.retriever import Retriever
from core.model.answer import Answer
from core.model.audit import Act, AuditEntry, audit_entry
from core.model.conversation import Question, Speaker, Turn, turn_key
from core.model.errors import Unavailable, Undeliverable
from core.model.messages import AnswerMessage
from core.model.prediction import PredictionKind
from core.ports import Clock, Store, Transaction
from handlers.feedback.record_prediction import record_prediction
from handlers.questions import answer_from_records as recorded
from handlers.questions.answer_from_records import Records, answer_from_records, requested_record
from handlers.questions.answer_of_either import Show, answer_of_either, requester, show_nothing
from handlers.questions.examine_model import ExaminedModel
from handlers.questions.post_message import Poster
from handlers.questions.read_thread import earlier_turns
from handlers.questions.show_waiting import ANSWERED, QUOTED, Waiting, answer_intent, show_answer, shown_waiting

HISTORY_TURNS = 8  # of the thread, the latest ones

MAX_WAITS = 3  # retries of a rate-limited chat when a model's answer is ready
LONGEST_WAIT = 5.0  # seconds per retry

# Separate from VERSION, because labels of quotes in which a model found no answer do not apply to other quotes.
DOUBTED_VERSION = f"{VERSION}-doubted"

READS_ON = "The language model is still reading what else was found. No confidence yet."

NO_HELP_DESK = HelpDesk()
NO_RECORDS = Records()


def no_queue(_requester: str) -> int:
    """Return 0: there is no queue."""
    return 0


async def answer_question(
    question: Question,
    *,
    retriever: Retriever,
    store: Store,
    poster: Poster,
    clock: Clock,
    examined: ExaminedModel | None = None,
    help_desk: HelpDesk = NO_HELP_DESK,
    records: Records = NO_RECORDS,
    position: Callable[[str], int] = no_queue,
) -> None:
    """Answer in the place of the question, with the earlier conversation as context.

    While a model chooses, what the evidence engine found is shown. `position` is the place of a requester in the queue for
    the model, from 1; 0 if it does not wait.
    """
    async with shown_waiting(question, lambda: position(requester(question)), poster=poster) as waiting:
        answer = await prepare_answer(
            question,
            retriever=retriever,
            store=store,
            clock=clock,
            examined=examined,
            help_desk=help_desk,
            records=records,
            show=lambda found: _show_quotes(
                help_desk.completed(found, question), question, waiting, store=store, poster=poster, clock=clock
            ),
        )
    await _show(AnswerMessage(answer), question, MAX_WAITS if examined is not None else 0, poster)
    async with store.transaction() as transaction:
        await _remember(question, answer, clock, transaction)
        await transaction.audit.add(_shown(question, answer, clock))


async def prepare_answer(
    question: Question,
    *,
    retriever: Retriever,
    store: Store,
    clock: Clock,
    examined: ExaminedModel | None = None,
    help_desk: HelpDesk = NO_HELP_DESK,
    records: Records = NO_RECORDS,
    show: Show = show_nothing,
) -> Answer:
    """Return the answer with its badge, and store its prediction. Posts nothing.

    The records answer first, where they know what is asked; otherwise the documents. Which engine gives the answer,
    `answer_of_either` says; `show` is given what there is while a model still chooses.
    """
    asked = await _in_context(question, store)
    wanted = await requested_record(asked, records, store)
    known = await answer_from_records(asked, wanted, records, store=store, retriever=retriever) if wanted else None
    answer, evaluation = known or await answer_of_either(asked, retriever, examined, store, show)
    answer = help_desk.completed(answer, question)
    if answer.abstained:
        return answer
    cited = tuple(dict.fromkeys(citation.document_id for citation in answer.citations))
    prediction_id, badge = await record_prediction(
        PredictionKind.ANSWER,
        question.id,
        _said(answer),
        evaluation,
        engine=answer.engine,
        estimator_version=_version(answer),
        group=cited[0].partition("/")[0] if cited else "",
        references=cited,
        store=store,
        clock=clock,
    )
    return replace(answer, badge=badge, prediction_id=prediction_id)


def _version(answer: Answer) -> str:
    """Return the version of what measured an answer, which says which answers can share a calibrator."""
    if answer.engine == recorded.ENGINE:
        return recorded.VERSION
    if answer.engine != ENGINE:
        return MODEL_VERSION
    return DOUBTED_VERSION if NOT_FOUND in answer.note else VERSION


async def _show(message: AnswerMessage, question: Question, waits: int, poster: Poster) -> None:
    """Show the whole answer. A model's answer waits for a rate-limited chat instead of being discarded."""
    while True:
        try:
            await show_answer(message, question, ANSWERED, poster)
        except Unavailable as error:
            if not waits or error.retry_after is None or error.retry_after > LONGEST_WAIT:
                raise
            waits -= 1
            await asyncio.sleep(error.retry_after)
        else:
            return


async def _show_quotes(
    found: Answer, question: Question, waiting: Waiting, *, store: Store, poster: Poster, clock: Clock
) -> None:
    """Show what the whole answer may take the place of. Where the chat does not take it, it makes no dead letter."""
    with suppress(Unavailable):
        async with store.transaction() as transaction:
            await transaction.audit.add(_shown(question, found, clock, "quoted"))
        await waiting.end()
        try:
            await show_answer(AnswerMessage(replace(found, note=READS_ON)), question, QUOTED, poster)
        except Undeliverable:
            async with store.transaction() as transaction:
                await transaction.dead_letters.remove(answer_intent(question.id))
            return
        async with store.transaction() as transaction:
            await _remember(question, found, clock, transaction)  # for whoever asks on below the quotes


async def _in_context(question: Question, store: Store) -> Question:
    """Return the question with the earlier conversation as its history, unless it has a history."""
    async with store.transaction() as transaction:
        history = await earlier_turns(question, HISTORY_TURNS, transaction)
    return replace(question, history=question.history or history)


async def _remember(question: Question, answer: Answer, clock: Clock, transaction: Transaction) -> None:
    """Store the question and its latest answer, unless the question has been edited since."""
    known = await transaction.conversations.get(turn_key(question.id, Speaker.PERSON), question.place)
    if known is not None and known.text != question.text:
        return
    await transaction.conversations.forget(turn_key(question.id, Speaker.PLUMBLINE))
    for speaker, said, at in (
        (Speaker.PERSON, question.text, question.asked_at),
        (Speaker.PLUMBLINE, _said(answer), clock.now()),
    ):
        key = turn_key(question.id, speaker)
        await transaction.conversations.add(key, question.place, Turn(speaker, said), at)


def _said(answer: Answer) -> str:
    return answer.text


def _shown(question: Question, answer: Answer, clock: Clock, how: str = "answered") -> AuditEntry:
    """Return the audit entry of which documents were shown to whom, including those named without an answer."""
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
