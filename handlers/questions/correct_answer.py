"""Corrections of answers: ask for the right answer, propose it, and publish it with an expiry date once confirmed.

A correction must be confirmed by somebody other than its author (see `core.model.document.may_confirm`). Only those who
may read the place where it was written may read the correction.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from core.answering.questions import is_follow_up
from core.knowledge.redactor import BEYOND, Redact
from core.model.audit import Act, AuditEntry, audit_entry
from core.model.badge import Outcome, PredictionKind
from core.model.conversation import Person, Place, Question, Speaker, turn_key
from core.model.document import (
    MAX_QUESTION,
    MAX_TEXT,
    SOURCE,
    CuratedAnswer,
    Document,
    answer_id,
    confirmed,
    may_confirm,
)
from core.model.message_view import Feedback
from core.model.messages import CorrectionRequest, Notice, ProposalMessage
from core.ports import Store
from handlers.common.ports import Ports
from handlers.common.post_message import Poster

LOOKED_BACK = 20  # turns of the thread searched for the corrected question

NO_ANSWER_HERE = "I haven’t answered anything in this thread. To correct an answer, write “correct:” and the right answer in its thread."
SOMEBODY_ELSE = "Thank you. Somebody other than the author must confirm it before I use it."


async def ask_for_correction(feedback: Feedback, ports: Ports) -> None:
    """Ask for the right answer in the thread of a wrong one, once for each answer."""
    async with ports.store.transaction() as transaction:
        prediction = await transaction.predictions.get(feedback.subject)
    if prediction is not None and prediction.kind is PredictionKind.ANSWER:
        await ports.poster.post_once(
            f"correction-request:{prediction.id}", feedback.place, CorrectionRequest(prediction.id)
        )


async def propose_correction(feedback: Feedback, ports: Ports) -> None:
    """Propose the right answer that a person typed, and store it as the comment of the wrong answer's label."""
    async with ports.store.transaction() as transaction:
        prediction = await transaction.predictions.get(feedback.subject)
        turn = (
            await transaction.conversations.get(turn_key(prediction.subject, Speaker.PERSON), feedback.place)
            if prediction
            else None
        )
    if prediction is None or turn is None or not feedback.text.strip():
        return
    draft = CuratedAnswer(
        id=answer_id(feedback.id),
        question=await _question_at(feedback, turn.text, ports.store),
        text=feedback.text,
        author=feedback.person,
        readers=feedback.audience.disclosed_to,
        proposed_at=feedback.at,
    )
    proposal = _redacted(draft, ports.redact)
    async with ports.store.transaction() as transaction:
        await transaction.predictions.label(
            Outcome(prediction.id, False, feedback.person.key, feedback.at, proposal.text)
        )
    await _propose(proposal, feedback, ports.store, ports.poster)


async def correct_in_words(question: Question, ports: Ports) -> None:
    """Handle `correct: …` in the thread of an answer: propose a correction for the thread's last question."""
    async with ports.store.transaction() as transaction:
        history = await transaction.conversations.history(question.place, LOOKED_BACK)
    questions = [turn.text for turn in history if turn.speaker is Speaker.PERSON]
    if not questions or not question.text:
        await ports.poster.post_once(f"correction:{question.id}", question.place, Notice(NO_ANSWER_HERE))
        return
    draft = CuratedAnswer(
        id=answer_id(question.id),
        question=_in_context(questions),
        text=question.text,
        author=question.asker,
        readers=question.audience.disclosed_to,
        proposed_at=question.asked_at,
    )
    await _propose(_redacted(draft, ports.redact), question, ports.store, ports.poster)


async def confirm_correction(feedback: Feedback, ports: Ports) -> None:
    """Confirm the proposal, and index the confirmed answers with `publish`."""
    async with ports.store.transaction() as transaction:
        answer = await transaction.curated.get(feedback.subject)
        if answer is None or not feedback.audience.may_read(answer.readers):
            return
        if may_confirm(answer, feedback.person) and not answer.is_confirmed:
            answer = confirmed(answer, feedback.person, feedback.at, ports.knowledge.lifetime)
            await transaction.curated.save(answer)
            await transaction.audit.add(_entry(Act.CONFIRMED, answer.id, feedback.person, feedback.place, feedback.at))
    if not answer.is_confirmed:
        await ports.poster.post_once(
            f"somebody-else:{answer.id}", feedback.place, Notice(SOMEBODY_ELSE, only_for=feedback.person)
        )
        return
    await ports.knowledge.publish()
    await ports.poster.post_or_edit(f"proposal:{answer.id}", feedback.place, ProposalMessage(answer), "confirmed")


async def _propose(proposal: CuratedAnswer, source: Feedback | Question, store: Store, poster: Poster) -> None:
    async with store.transaction() as transaction:
        if await transaction.curated.get(proposal.id) is None:
            await transaction.curated.save(proposal)
            await transaction.audit.add(
                _entry(Act.PROPOSED, proposal.id, proposal.author, source.place, proposal.proposed_at)
            )
    await poster.post_once(f"proposal:{proposal.id}", source.place, ProposalMessage(proposal), "proposed")


def _entry(act: Act, answer_id: str, person: Person, place: Place, at: datetime) -> AuditEntry:
    return audit_entry(f"{act}:{answer_id}", at, act, person, answer_id, place=place)


async def _question_at(feedback: Feedback, text: str, store: Store) -> str:
    """Return the question as asked in its thread, prefixed with the question that it follows up."""
    async with store.transaction() as transaction:
        history = await transaction.conversations.history(feedback.place, LOOKED_BACK)
    earlier = [turn.text for turn in history if turn.speaker is Speaker.PERSON]
    until = earlier.index(text) if text in earlier else 0
    return _in_context([*earlier[:until], text])


def _in_context(questions: list[str]) -> str:
    """Return the last question, prefixed with the question that it follows up."""
    first = next((index for index in range(len(questions) - 1, 0, -1) if not is_follow_up(questions[index])), 0)
    return " ".join(dict.fromkeys((questions[first], questions[-1])))


def _redacted(draft: CuratedAnswer, redact: Redact) -> CuratedAnswer:
    """Return the draft redacted, then truncated (see `BEYOND`)."""
    question, text = " ".join(draft.question.split())[: MAX_QUESTION + BEYOND], draft.text.strip()[: MAX_TEXT + BEYOND]
    clean = redact(Document(draft.id, SOURCE, SOURCE, question, text))
    return replace(draft, question=clean.title[:MAX_QUESTION], text=clean.text[:MAX_TEXT])
