"""Learn from people's confirmations which log lines explain a failed build, for the project's next failure."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from core.model.badge import Outcome, RecordedFailure
from core.model.conversation import Place, Question
from core.model.findings import Explanation, Hypothesis
from core.model.message_view import Feedback
from core.model.messages import ButtonAction, Notice, NoticeKind
from core.ports import FailedBuild, Store, Transaction
from core.rca.failing_lines import (
    FailureHistory,
    build_cause,
    corrected,
    end_of,
    failing_range,
    history_of,
    is_led_by,
    named_lines,
)
from handlers.common.ports import Ports
from handlers.common.stored_incident import incident_of_thread

HISTORY = 10  # confirmed failures used to read the next one
KEPT = 20  # failures kept per project: this many confirmed, and as many unconfirmed

LEARNED = "Thank you. I’ll use lines {first} to {last} to find the cause of the next failure of {project}."
NO_SUCH_LINES = "Those lines of the log are empty or don’t exist. The log has {count} lines."


async def failure_histories(builds: Sequence[FailedBuild], store: Store) -> dict[str, FailureHistory]:
    """Return the confirmed failures of each build's project, by history key."""
    histories: dict[str, FailureHistory] = {}
    for key in dict.fromkeys(build.history_key for build in builds if build.history_key):
        async with store.transaction() as transaction:
            failures = await transaction.build_failures.confirmed(key, HISTORY)
        histories[key] = await asyncio.to_thread(history_of, failures)
    return histories


async def record_failure(
    explanation: Explanation,
    builds: Sequence[FailedBuild],
    histories: dict[str, FailureHistory],
    *,
    place: Place | None,
    at: datetime,
    store: Store,
) -> None:
    """Store the build that the first hypothesis is about, so that feedback on it can be learned from.

    `place` is where the question was asked; None for a posted incident.
    """
    cause, prediction_id = explanation.cause, explanation.prediction_id
    if cause is None or prediction_id is None:
        return
    for build in builds:
        history = histories.get(build.history_key, FailureHistory())
        expected = None if end_of(build, history) else build_cause(build, history)
        if expected is None or _sources(expected) != _sources(cause)[: len(expected.evidence)] or not build.history_key:
            continue
        lines = failing_range(build.log, history)
        failure = RecordedFailure(prediction_id, build.history_key, build.log, lines.start, lines.stop - 1, at, place)
        async with store.transaction() as transaction:
            if await transaction.build_failures.get(prediction_id) is None:
                await transaction.build_failures.save(failure)
                await transaction.build_failures.forget_older(build.history_key, KEPT)
        return


def _sources(hypothesis: Hypothesis) -> list[str]:
    """Return the log lines that the evidence quotes. Redaction does not change them."""
    return [evidence.source for evidence in hypothesis.evidence]


async def judge_failing_lines(feedback: Feedback, ports: Ports) -> None:
    """Confirm the shown lines for “right cause”; for “wrong cause”, remove the same person's confirmation."""
    person = feedback.person.key
    async with ports.store.transaction() as transaction:
        failure = await transaction.build_failures.get(feedback.subject)
        if failure is None:
            return
        if feedback.verdict is ButtonAction.CAUSE_RIGHT and not failure.confirmed_by:
            await transaction.build_failures.save(replace(failure, confirmed_by=person))
        elif feedback.verdict is ButtonAction.CAUSE_WRONG:
            await unconfirm_failing_lines(feedback.subject, person, transaction)


async def unconfirm_failing_lines(failure_id: str, person: str, transaction: Transaction) -> None:
    """Remove this person's confirmation of the failure, if there is one."""
    failure = await transaction.build_failures.get(failure_id)
    if failure is not None and failure.confirmed_by == person:
        await transaction.build_failures.save(replace(failure, confirmed_by=""))


async def correct_failing_lines(question: Question, ports: Ports) -> bool:
    """Handle `correct: lines 12 to 14` in the thread of a failed build. Returns False for every other correction.

    The shown cause counts as right if it lies within the named lines, wherever they begin and end.
    """
    lines = named_lines(question.text)
    failure = await _explained_in(question.place, ports.store) if lines is not None else None
    if lines is None or failure is None:
        return False
    person = question.asker.key
    better = corrected(failure, lines, person)
    if better is None:
        reply = Notice(NO_SUCH_LINES.format(count=failure.log.count("\n") + 1))
    else:
        async with ports.store.transaction() as transaction:
            await transaction.build_failures.save(better)
            claim = await transaction.predictions.get(failure.id)
            # None if retention deleted it. A repeated step has judged what was shown before, not what it saved.
            if claim is not None and better != failure:
                is_right = better.lines == failure.lines or is_led_by(claim.value, _text(better))
                outcome = Outcome(claim.id, is_right, person, question.asked_at, question.text)
                await transaction.predictions.label(outcome)
        text = LEARNED.format(project=failure.project, first=lines.start + 1, last=lines.stop)
        reply = Notice(text, NoticeKind.THANKS)
    await ports.poster.post_once(f"failing-lines:{question.id}", question.place, reply)
    return True


def _text(failure: RecordedFailure) -> list[str]:
    return failure.log.split("\n")[failure.lines.start : failure.lines.stop]


async def _explained_in(place: Place, store: Store) -> RecordedFailure | None:
    """Return the build that was explained in a thread, for an incident or for a question."""
    async with store.transaction() as transaction:
        incident = await incident_of_thread(place, transaction)
        if incident is None:
            return await transaction.build_failures.in_thread(place)
        prediction_id = incident.findings.explanation.prediction_id if incident.findings.explanation else None
        return await transaction.build_failures.get(prediction_id) if prediction_id else None
