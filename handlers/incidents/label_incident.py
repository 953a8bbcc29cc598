"""Label claims about incidents by their resolution notes (LM-PACE, section 5.1.1) and by how they were closed.

A note comes with the alert, or as “root cause: …; fix: …; owner: …” from the incident's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from core.incidents.readable import NOTED as TEXTS
from core.incidents.thread_notes import agreement, completed, fit_threshold, read_resolution
from core.knowledge.redactor import Redact, redacted
from core.model.badge import Outcome
from core.model.conversation import Question
from core.model.incident import Incident, Resolution
from core.model.messages import Notice, NoticeKind
from core.model.team import Team, means_nobody, team_named
from core.ports import Store, Transaction
from core.triage.paging import needed_person
from handlers.common.ports import Ports
from handlers.common.stored_incident import find_in_thread, update_incident

NOTE = "note"  # the labeller if no person pressed a button
MAX_NOTED = 500  # latest incidents with a note, used to fit the threshold

CLOSING = "closing"  # the labeller if no person judged
MAX_CLOSED = 500  # latest incidents checked


async def label_incident(incident: Incident, at: datetime, ports: Ports) -> None:
    """Label the cause by its agreement with the note, and the owner by the team that the note names.

    Predictions that a person judged are left alone: a person is more reliable than a comparison of words.
    """
    async with ports.store.transaction() as transaction:
        await _label_claims(incident, at, await _threshold(transaction), ports.company.teams, transaction)


async def label_noted_incidents(ports: Ports) -> None:
    """Label incidents whose notes were not written in a thread, such as those from a webhook (nightly)."""
    async with ports.store.transaction() as transaction:
        incidents = [
            incident
            for incident in await transaction.incidents.noted(MAX_NOTED)
            if not any(
                [
                    NOTE in {label.labelled_by for label in await transaction.predictions.labels_of(claim)}
                    for claim in _claims(incident)
                ]
            )
        ]
        threshold = await _threshold(transaction)
    for incident in incidents:
        async with ports.store.transaction() as transaction:
            await _label_claims(incident, incident.updated_at, threshold, ports.company.teams, transaction)


async def _label_claims(
    incident: Incident, at: datetime, threshold: float, teams: Sequence[Team], transaction: Transaction
) -> None:
    note = incident.resolution
    if note is None:
        return
    for cause in _causes(incident) if note.root_cause else ():
        await _label(cause, lambda claimed: agreement(claimed, note.root_cause) >= threshold, at, transaction)
    named = team_named(note.owner, teams)
    if incident.findings.owner and (named or means_nobody(note.owner)):
        owners = {named.id, *named.aliases} if named else {""}
        await _label(incident.findings.owner.prediction_id, lambda claimed: claimed in owners, at, transaction)


async def _label(prediction_id: str, is_right: Callable[[str], bool], at: datetime, transaction: Transaction) -> None:
    prediction = await transaction.predictions.get(prediction_id)
    if prediction is not None and await _by_person(prediction_id, transaction) is None:
        await transaction.predictions.label(Outcome(prediction_id, is_right(prediction.value), NOTE, at))


async def _threshold(transaction: Transaction) -> float:
    """Return the agreement at which a cause counts as right, fitted on claims with both a note and a person's label."""
    agreements: list[float] = []
    correct: list[bool] = []
    for incident in await transaction.incidents.noted(MAX_NOTED):
        note = incident.resolution.root_cause if incident.resolution else ""
        for claim in _causes(incident) if note else ():
            prediction = await transaction.predictions.get(claim)
            label = await _by_person(claim, transaction)
            if prediction is not None and label is not None:
                agreements.append(agreement(prediction.value, note))
                correct.append(label.correct)
    return fit_threshold(agreements, correct)


async def _by_person(prediction_id: str, transaction: Transaction) -> Outcome | None:
    """Return the latest label given by a person."""
    labels = [label for label in await transaction.predictions.labels_of(prediction_id) if label.labelled_by != NOTE]
    return labels[-1] if labels else None


def _claims(incident: Incident) -> list[str]:
    owner = incident.findings.owner.prediction_id if incident.findings.owner else None
    return [*_causes(incident), *filter(None, [owner])]


def _causes(incident: Incident) -> list[str]:
    """Return the ids of the predictions of the causes that were shown."""
    return [claim for claim, _ in incident.findings.explanation.claims] if incident.findings.explanation else []


async def label_suggestions(*, store: Store) -> None:
    """Label the claim that a cured incident needs a person, if it has no label: right if somebody acted on it."""
    async with store.transaction() as transaction:
        recent = await transaction.incidents.recent(MAX_CLOSED)
    for incident in recent:
        page, right = incident.findings.page, needed_person(incident)
        if page is None or right is None or not incident.is_cured:
            continue
        async with store.transaction() as transaction:
            predictions, claim = transaction.predictions, page.prediction_id
            if await predictions.get(claim) is not None and not await predictions.labels_of(claim):
                at = incident.resolved_at or incident.updated_at
                await predictions.label(Outcome(claim, right, CLOSING, at))


NOTED = "Noted {fields}. I’ll use it to judge similar incidents."


async def record_resolution(question: Question, ports: Ports) -> bool:
    """Store the redacted note, label the incident's claims by it, and `learn` from the closed incident.

    A later note adds to the earlier one. Returns False, and does nothing, outside an incident's thread.
    """
    incident = await find_in_thread(question.place, ports.store)
    if incident is None:
        return False
    note = redacted_note(read_resolution(question.text), ports.redact, ports.company.teams)
    readers, person = tuple(sorted(question.audience.disclosed_to)), question.asker.name_or_id
    noted = [name for name in TEXTS if getattr(note, name)]
    note = replace(note, readers=dict.fromkeys(noted, readers), **{f"{name}_by": person for name in noted})
    incident = await update_incident(
        incident.id, lambda latest: replace(latest, resolution=completed(latest.resolution, note)), ports.store
    )
    await label_incident(incident, question.asked_at, ports)
    await ports.past.learn()
    texts = {"the root cause": note.root_cause, "the fix": note.fix, "the owner": note.owner}
    fields = ", ".join(name for name, text in texts.items() if text)
    await ports.poster.post_once(
        f"resolution:{question.id}", question.place, Notice(NOTED.format(fields=fields), NoticeKind.THANKS)
    )
    return True


def redacted_note(note: Resolution, redact: Redact, teams: Sequence[Team]) -> Resolution:
    """Return the note without names, addresses and secrets. A known team's name is kept."""
    owner = note.owner if team_named(note.owner, teams) else redacted(note.owner, redact)
    return Resolution(redacted(note.root_cause, redact), redacted(note.fix, redact), owner)
