"""Answer a question with citations and a badge, or say honestly that the answer is unknown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from core.answering.answer import Answer
from core.answering.certainty import VERSION
from core.answering.find import ENGINE, find_answer
from core.answering.help_desk import HelpDesk
from core.answering.model_answer import VERSION as MODEL_VERSION
from core.answering.model_answer import ShowDraft, no_draft
from core.confidence.reference import Claim, Reference
from core.knowledge.retriever import Retriever
from core.model.audit import Act, AuditEntry, audit_entry
from core.model.conversation import Question, Speaker, Turn, turn_key
from core.model.errors import Unavailable, Undeliverable
from core.model.language_model import Urgency
from core.model.messages import AnswerMessage
from core.model.prediction import Evaluation, PredictionKind
from core.ports import Clock, LanguageModel, Store, Transaction
from handlers.feedback.estimate_confidence import estimate_confidence
from handlers.feedback.record_prediction import record_prediction
from handlers.questions import answer_from_records as recorded
from handlers.questions.answer_from_records import Records, answer_from_records, wanted_record
from handlers.questions.answer_of_either import NOT_FOUND_BY_MODEL, answer_of_either, nothing_quoted, requester
from handlers.questions.post_message import Poster
from handlers.questions.quote_meanwhile import READS_ON, Meanwhile, quoted_meanwhile
from handlers.questions.read_thread import said_before
from handlers.questions.show_waiting import ANSWERED, DRAFT, QUOTED, Waiting, answer_intent, show_answer, shown_waiting

HISTORY_TURNS = 8  # latest turns of the thread
JUDGED_BY = 8  # retrieved passages used to judge a model's answer

MAX_WAITS = 3  # retries of a rate-limited chat when a model's answer is ready
LONGEST_WAIT = 5.0  # seconds per retry

# Separate from VERSION, because labels of quotes in which a model found no answer do not apply to other quotes.
DOUBTED_VERSION = f"{VERSION}-doubted"

UNFINISHED = "Still checking the rest of the answer. No confidence yet."

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
    model: LanguageModel | None = None,
    judge: LanguageModel | None = None,
    help_desk: HelpDesk = NO_HELP_DESK,
    records: Records = NO_RECORDS,
    position: Callable[[str], int] = no_queue,
) -> None:
    """Answer in the place of the question, with the earlier conversation as context.

    While a model composes the answer, quotes from the documents are shown. `position` returns a requester's place in
    the model queue, from 1; 0 if it is not waiting.
    """

    async def quote() -> bool:
        return model is not None and await _show_quotes(
            question, waiting, help_desk, records, retriever=retriever, store=store, poster=poster, clock=clock
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
            records=records,
            draft=lambda draft: _show_draft(draft, question, waiting, meanwhile, store, poster),
            is_quoted=lambda: meanwhile.is_quoted,
        )
    await _show(AnswerMessage(answer), question, MAX_WAITS if model is not None else 0, poster)
    async with store.transaction() as transaction:
        await _remember(question, answer, clock, transaction)
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
    records: Records = NO_RECORDS,
    draft: ShowDraft = no_draft,
    is_quoted: Callable[[], bool] = nothing_quoted,
) -> Answer:
    """Return the answer with its badge, and store its prediction. Posts nothing.

    Questions that the records cover are answered from them; others go to `answer_of_either`. `draft` receives the
    checked sentences while a model composes (see `model_answer`). The model's deadline is longer while `is_quoted`.
    With a `judge`, the confidence of a model's answer is estimated in two steps; otherwise it is measured by the checks
    that the answer passed.
    """
    asked = await _in_context(question, store)
    wanted = await wanted_record(asked, records, store)
    known = await answer_from_records(asked, wanted, records, store=store, retriever=retriever) if wanted else None
    answer, evaluation = known or await answer_of_either(asked, retriever, model, draft, is_quoted)
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
        return measured, DOUBTED_VERSION if answer.note == NOT_FOUND_BY_MODEL else VERSION
    if answer.engine == recorded.ENGINE:
        return measured, recorded.VERSION
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
    question: Question,
    waiting: Waiting,
    help_desk: HelpDesk,
    records: Records,
    *,
    retriever: Retriever,
    store: Store,
    poster: Poster,
    clock: Clock,
) -> bool:
    """Show the evidence engine's quotes. Returns whether there are any and the chat accepted them.

    Quotes are skipped for questions about records, which are answered at once.
    """
    with suppress(Unavailable):
        asked = await _in_context(question, store)
        if await wanted_record(asked, records, store) is not None:
            return False
        answer, _ = await find_answer(asked, retriever)
        if answer.abstained:
            return False
        message = AnswerMessage(replace(help_desk.completed(answer, question), note=READS_ON))
        async with store.transaction() as transaction:
            await transaction.audit.add(_shown(question, answer, clock, "quoted"))
        await waiting.end()
        if await _show_meanwhile(message, question, QUOTED, store=store, poster=poster):
            async with store.transaction() as transaction:
                await _remember(question, answer, clock, transaction)  # context for follow-up questions to the quotes
            return True
    return False


async def _show_meanwhile(
    message: AnswerMessage, question: Question, stage: str, part: str = "", *, store: Store, poster: Poster
) -> bool:
    """Show an interim message. Returns whether the chat accepted it; a refusal leaves no dead letter."""
    try:
        await show_answer(message, question, stage, poster, part)
    except Undeliverable:
        async with store.transaction() as transaction:
            await transaction.dead_letters.remove(answer_intent(question.id))
        return False
    return True


async def _show_draft(
    draft: Answer, question: Question, waiting: Waiting, meanwhile: Meanwhile, store: Store, poster: Poster
) -> None:
    """Show the sentences checked so far. A draft does not replace quotes that are already shown."""
    if await meanwhile.end():
        return
    message = AnswerMessage(replace(draft, note=UNFINISHED), draft_for=question.asker)
    await waiting.end()
    with suppress(Unavailable):
        await _show_meanwhile(message, question, DRAFT, str(len(draft.shown)), store=store, poster=poster)


async def _in_context(question: Question, store: Store) -> Question:
    """Return the question with the earlier conversation as its history, unless it has a history."""
    async with store.transaction() as transaction:
        history = await said_before(question, HISTORY_TURNS, transaction)
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
