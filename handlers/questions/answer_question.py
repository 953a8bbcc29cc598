"""Answer a question with citations and a badge, or say honestly that the answer is unknown.

The evidence engine answers. If it is not certain, or the question has several parts, a language model writes the answer from
the passages found.

The context of a question are its text files, such as the snippet that Slack makes of a long paste, and its thread.

Only the thread in which the answer is posted is read, so its audience has read it already. Its text is as untrusted as
the question: it is redacted, and limited in number and length.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

import structlog

from core.answering.certainty import VERSION
from core.answering.find import ENGINE, find_answer
from core.answering.model_answer import (
    COMPOSED_VERSION,
    NOT_FOUND,
    composed_answer,
    needs_model,
)
from core.answering.questions import Order, is_follow_up, only_calls, order_in
from core.incidents.incident_questions import CommandName
from core.incidents.thread_notes import service_in
from core.knowledge.redactor import Redact, redacted, redacted_beginning
from core.knowledge.retriever import Retriever
from core.model.answer import RECORDS, Answer
from core.model.audit import Act, AuditEntry, audit_entry
from core.model.badge import Estimator, Evaluation, PredictionKind
from core.model.conversation import Platform, Question, Speaker, Turn, cut_message, turn_key
from core.model.errors import ChatUnavailable, InvalidReply, ModelUnavailable, PromptTooLong, Unavailable, Undeliverable
from core.model.language_model import ModelRequest, Urgency
from core.model.messages import AnswerMessage, Notice
from core.model_calls.choice import Skill, Use
from core.model_calls.metered_model import MeteredModel, QuestionLimits
from core.ports import Clock, LanguageModel, Store, ThreadReader, Transaction
from handlers.common.ports import Ports
from handlers.common.post_message import ANSWERED, QUOTED, Poster, Waiting, answer_intent, show_answer, shown_waiting
from handlers.common.record_prediction import is_likelier, record_prediction
from handlers.common.stored_incident import unless_stopped
from handlers.questions.answer_from_records import VERSION as RECORDS_VERSION
from handlers.questions.answer_from_records import answer_from_records, facts_about, requested_record

QUOTES_AFTER = 0.7  # seconds that a model has before the evidence engine's answer is shown
LOOKS_EVERY = 0.1  # seconds between looks for what a model has written
DRAFTS_EVERY = 1.5  # seconds between edits that show more of what a model is writing
WITHOUT_MODEL = "The language model gave no usable answer."
STOPPED = "The language model was stopped. This is what I had found."
CUT = "The language model stopped here: it gave no more in time."
LACKS_THREAD = (
    "I could not read the earlier messages of this thread, so I took your question by itself. Name what it is about, or ask "
    "again later."
)
READS_ON = "The language model is still reading the other results, so this answer has no confidence yet."
WRITES_ON = "The language model is still writing."

MAX_WAITS = 3  # retries of a rate-limited chat when a model's answer is ready
LONGEST_WAIT = 5.0  # seconds per retry

# Separate from VERSION, because labels of quotes in which a model found no answer do not apply to other quotes.
DOUBTED_VERSION = f"{VERSION}-doubted"
STOPPED_VERSION = f"{COMPOSED_VERSION}-stopped"  # a part of what a model would have written

Judged = tuple[Answer, Evaluation]
Show = Callable[[Answer], Awaitable[object]]
ABSTAINED = "abstained"  # in the audit log

log = structlog.get_logger()


async def show_nothing(_quotes: Answer) -> None:
    """Show no interim answer."""


async def answer_question(question: Question, ports: Ports) -> None:
    """Answer in the place of the question, with the earlier conversation as context.

    While a model chooses, the evidence engine's answer is shown.
    """
    async with shown_waiting(
        question,
        lambda: ports.models.position(requester(question)),
        poster=ports.poster,
        stop_id=question.key if ports.models.examined is not None else "",
    ) as waiting:
        answer = await prepare_answer(
            question,
            ports,
            show=lambda quoted: _show_quotes(
                ports.knowledge.help_desk.completed(quoted, question), question, waiting, ports
            ),
        )
    await _show(AnswerMessage(answer), question, MAX_WAITS if ports.models.examined is not None else 0, ports.poster)
    async with ports.store.transaction() as transaction:
        await _remember(question, answer, ports.clock, transaction)
        await transaction.audit.add(_shown(question, answer, ports.clock))


async def prepare_answer(question: Question, ports: Ports, *, show: Show = show_nothing) -> Answer:
    """Return the answer with its badge, and store its prediction. Posts nothing.

    The records answer first, if they contain the answer; otherwise the documents do. `show` receives the evidence
    engine's answer while a model still chooses.
    """
    names = ports.company.services.union(*({team.id, team.name} for team in ports.company.teams))
    order = order_in(question.text, names)
    if order is not None and not order.is_question:
        answer, evaluation = await find_answer(question, ports.knowledge.retriever, order)
    else:
        wanted = await requested_record(question, ports)
        recorded = await answer_from_records(question, wanted, ports) if wanted else None
        answer, evaluation = recorded or await _answer_from_documents(question, order, ports, show)
        answer = replace(answer, lead=redacted(await _lead(answer, question, ports), ports.redact))
    answer = ports.knowledge.help_desk.completed(answer, question)
    if question.lacks_thread:
        answer = replace(answer, tentative=not answer.abstained, note=f"{answer.note} {LACKS_THREAD}".strip())
    if answer.abstained:
        return answer
    cited = tuple(dict.fromkeys(citation.document_id for citation in answer.citations))
    prediction_id, badge = await record_prediction(
        PredictionKind.ANSWER,
        question.id,
        answer.text,
        evaluation,
        ports,
        engine=answer.engine,
        estimator_version=_version(answer, ports.models.question.analyses),
        group=cited[0].partition("/")[0] if cited else "",
        references=cited,
    )
    return replace(answer, badge=badge, prediction_id=prediction_id)


async def _lead(answer: Answer, question: Question, ports: Ports) -> str:
    """Return what failed in a paste, and the owner and the latest change of the service that it names."""
    if not answer.lead:
        return ""
    service = service_in(answer.lead, ports.company.services) or service_in(question.text, ports.company.services)
    return " ".join([answer.lead, *(await facts_about(service, question, ports) if service else ())])


async def _answer_from_documents(question: Question, order: Order | None, ports: Ports, show: Show) -> Judged:
    """Return the evidence engine's answer, or that of a model if the evidence engine is not certain.

    `show` receives the evidence engine's answer as soon as the model takes longer than QUOTES_AFTER, and then what the
    model has written so far. The model's answer is dropped if it cites documents that were removed meanwhile, or if
    people's verdicts on both engines make the evidence engine's answer likelier. If a person stops the model, what it has
    written so far is the answer, or else that of the evidence engine. Raises IndexUnavailable.
    """
    retriever, examined = ports.knowledge.retriever, ports.models.examined
    by_evidence = await find_answer(question, retriever, order)
    if examined is None or (skill := examined.skill(Use.ANSWERS)) is None or not needs_model(by_evidence[0], skill):
        return by_evidence
    drafts: list[Answer] = []
    work = _asked_in_time(question, by_evidence, retriever, examined.model, skill, drafts, ports.models.question)
    asking = asyncio.create_task(unless_stopped(work, question.key, ports.store))
    try:
        await _show_meanwhile(asking, None if by_evidence[0].abstained else by_evidence[0], drafts, show)
        answered = await asking
    finally:
        asking.cancel()
    is_stopped = answered is None
    answered = answered or (drafts[-1] if drafts else by_evidence[0], by_evidence[1])
    answer, _ = answered = replace(answered[0], lead=by_evidence[0].lead), answered[1]
    cited = frozenset(citation.passage_id for citation in answer.citations)
    if not await retriever.holds(cited, question.audience):
        return await find_answer(question, retriever)
    if is_stopped:
        return replace(answer, note=f"{answer.note} {STOPPED}".strip()), answered[1]
    if answer.engine == ENGINE:
        return answered
    instead = None if by_evidence[0].abstained else _claim(by_evidence, ports.models.question.analyses)
    return (
        answered
        if await is_likelier(_claim(answered, ports.models.question.analyses), instead, ports.store)
        else by_evidence
    )


async def _show_meanwhile(
    asking: asyncio.Task[Judged | None], by_evidence: Answer | None, drafts: Sequence[Answer], show: Show
) -> None:
    """Show the newest text until the model has answered: first `by_evidence`, the first draft at once, then longer ones."""
    shown, due = None, time.monotonic() + QUOTES_AFTER
    while not (await asyncio.wait([asking], timeout=LOOKS_EVERY))[0]:
        latest = drafts[-1] if drafts else by_evidence
        if (
            latest is not None
            and latest is not shown
            and (time.monotonic() >= due or (drafts and not (shown and shown.is_composed)))
        ):
            shown, due = latest, time.monotonic() + DRAFTS_EVERY
            await show(latest)


async def _asked_in_time(
    question: Question,
    by_evidence: Judged,
    retriever: Retriever,
    model: LanguageModel,
    skill: Skill,
    drafts: list[Answer],
    limits: QuestionLimits,
) -> Judged:
    """Return the model's answer; if it fails or is late, what it has written so far, else the evidence engine's, with a note."""
    request = ModelRequest((), urgency=Urgency.PERSON, requester=requester(question), deadline=limits.seconds)
    metered = MeteredModel(model, limits)
    try:
        async with asyncio.timeout(limits.seconds):
            return await composed_answer(
                question,
                by_evidence,
                retriever,
                metered,
                request,
                skill,
                drafts.append,
                limits.analyses,
                metered.left_out,
            )
    except (ModelUnavailable, InvalidReply, PromptTooLong, TimeoutError) as error:
        log.warning("answered without the language model", question=question.id, reason=str(error) or "too slow")
        answer, note = (drafts[-1], CUT) if drafts else (by_evidence[0], WITHOUT_MODEL)
        return replace(answer, note=f"{answer.note} {note}".strip()), by_evidence[1]


def _claim(judged: Judged, analyses: int) -> tuple[Estimator, Evaluation]:
    answer, evaluation = judged
    return Estimator(PredictionKind.ANSWER, answer.engine, _version(answer, analyses)), evaluation


def requester(question: Question) -> str:
    """Return the requester id that the model queue uses for fairness among channels."""
    return f"{question.place.platform}:{question.place.channel}"


def _version(answer: Answer, analyses: int) -> str:
    """Return the version of the estimator of an answer; answers of one version share a calibrator."""
    if answer.engine == RECORDS:
        return RECORDS_VERSION
    if answer.engine != ENGINE and (STOPPED in answer.note or CUT in answer.note):
        return STOPPED_VERSION
    if answer.engine != ENGINE:
        return f"{COMPOSED_VERSION}:{analyses}" if analyses else COMPOSED_VERSION
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


async def _show_quotes(quoted: Answer, question: Question, waiting: Waiting, ports: Ports) -> None:
    """Show an answer that the final one may replace. If the chat refuses it, it becomes no dead letter."""
    with suppress(Unavailable):
        async with ports.store.transaction() as transaction:
            await transaction.audit.add(_shown(question, quoted, ports.clock, f"quoted{len(quoted.sentences) or ''}"))
        await waiting.end()
        note, part = (WRITES_ON, f"{len(quoted.sentences)}") if quoted.is_composed else (READS_ON, "")
        try:
            await show_answer(
                AnswerMessage(replace(quoted, note=note, stop_id=question.key)), question, QUOTED, ports.poster, part
            )
        except Undeliverable:
            async with ports.store.transaction() as transaction:
                await transaction.dead_letters.remove(answer_intent(question.id))
            return
        async with ports.store.transaction() as transaction:
            await _remember(question, quoted, ports.clock, transaction)  # for follow-up questions below the quotes


async def _remember(question: Question, answer: Answer, clock: Clock, transaction: Transaction) -> None:
    """Store the question and its latest answer, unless the question has been edited since."""
    stored = await transaction.conversations.get(turn_key(question.id, Speaker.PERSON), question.place)
    if stored is None or stored.text == question.text:
        await remember(question, answer.text, clock.now(), transaction)


def _shown(question: Question, answer: Answer, clock: Clock, how: str = "answered") -> AuditEntry:
    """Return the audit entry that says which documents were shown, including those named without an answer."""
    return audit_entry(
        f"{how}:{question.key}",
        clock.now(),
        Act.ANSWERED,
        question.asker,
        question.id,
        place=question.place,
        documents=tuple(dict.fromkeys(citation.document_id for citation in answer.citations)),
        detail=ABSTAINED if answer.abstained else answer.engine,
    )


MAX_TURNS = 20  # the first message of a thread and the latest ones
MAX_CHARACTERS = 1_000  # per message
FOLLOWED_WITHIN = timedelta(minutes=10)  # of an answer in the channel, beside its thread


async def remember(question: Question, reply: str, at: datetime, transaction: Transaction) -> None:
    """Store the question and the bot's reply in the conversation, in place of an earlier version of both."""
    for speaker, text, when in ((Speaker.PERSON, question.text, question.asked_at), (Speaker.PLUMBLINE, reply, at)):
        await transaction.conversations.put(turn_key(question.id, speaker), question.place, Turn(speaker, text), when)


async def forget_conversation(question_id: str, store: Store) -> None:
    """Delete a question and its answer from the stored conversation."""
    async with store.transaction() as transaction:
        for speaker in Speaker:
            await transaction.conversations.forget(turn_key(question_id, speaker))


async def in_context(question: Question, ports: Ports) -> Question:
    """Return the question with its thread as history, or with what it quotes if the thread cannot be read.

    Once the bot was asked in the thread, its own conversation is used, preceded only by the first message of the thread
    that is more than a greeting. What the question itself quotes comes last. A thread that cannot be read now is left
    out, and the question is still answered; a follow-up (“and in staging?”) is then marked as lacking its thread. A
    follow-up that begins a thread follows what was said last in the channel.
    """
    earlier = await _earlier(question, ports.chats.threads)
    thread = [turn for turn in earlier or () if turn not in question.history]
    async with ports.store.transaction() as transaction:
        # An earlier run may have stored the question itself.
        itself = [turn_key(question.id, each) for each in Speaker]
        own = await transaction.conversations.history(question.place, MAX_TURNS, itself)
        if not (thread or own or question.history) and is_follow_up(question.text):
            if earlier is None:
                return replace(question, lacks_thread=True)
            return replace(
                question,
                history=await transaction.conversations.latest(
                    question.place, (question.asked_at - FOLLOWED_WITHIN), MAX_TURNS
                ),
            )
    if not thread and not question.history:
        return replace(question, history=own)
    if own:
        began = next((turn for turn in thread if not only_calls(turn.text)), own[0])
        thread = [began] if began.text != own[0].text else []
    quoted = [turn for turn in question.history if turn not in own]
    clean = await asyncio.to_thread(_clean, [*thread, *quoted], ports.redact)
    return replace(question, history=(*clean[: len(thread)], *own, *clean[len(thread) :]))


async def _earlier(question: Question, threads: Mapping[Platform, ThreadReader]) -> tuple[Turn, ...] | None:
    """Return the messages of the thread before the question; None if they cannot be read now."""
    reader = threads.get(question.place.platform)
    if reader is None or question.place.thread is None:
        return ()
    try:
        return await reader.earlier(question.place, question.asked_at, MAX_TURNS)
    except ChatUnavailable as error:
        log.warning("thread cannot be read", question=question.id, reason=str(error))
        return None


def _clean(turns: Sequence[Turn], redact: Redact) -> list[Turn]:
    """Return the turns redacted. Takes milliseconds per turn."""
    return [replace(turn, text=redacted_beginning(turn.text, MAX_CHARACTERS, redact)) for turn in turns]


UNREAD = "I could not read {name}: {reason}."


async def with_files(question: Question, ports: Ports) -> Question:
    """Return the question with the redacted text of its files below what was typed, as if it had been pasted.

    A file that cannot be read is named in a notice. A file is never a command.
    """
    reader = ports.chats.files.get(question.place.platform)
    if reader is None or not question.files:
        return question
    texts: list[str] = []
    for number, file in enumerate(question.files):
        try:
            texts.append(await reader.text(file))
        except ChatUnavailable as error:
            log.warning("file of a question cannot be read", question=question.id, reason=str(error))
            await ports.poster.post_once(
                f"unread:{question.id}:{number}", question.place, Notice(UNREAD.format(name=file.name, reason=error))
            )
    if not texts:
        return question
    read = await asyncio.to_thread(redacted, "\n".join(texts), ports.redact)
    return replace(question, text=cut_message(f"{question.text or CommandName.ASK}\n{read}"))
