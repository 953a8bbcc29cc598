"""Handle a person's verdict on a suggested severity or duplicate: store the label and update the incident."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from core.model.feedback import Feedback
from core.model.incident import Incident
from core.model.messages import ButtonAction
from core.ports import Store, Transaction
from handlers.incidents.open_incident import present_task
from handlers.incidents.update_incident import change_incident, save_next

SUGGESTIONS = (
    ButtonAction.SEVERITY_RIGHT,
    ButtonAction.SEVERITY_WRONG,
    ButtonAction.DUPLICATE_RIGHT,
    ButtonAction.DUPLICATE_WRONG,
)


async def accept_suggestion(feedback: Feedback, *, label: Callable[[Feedback], Awaitable[None]], store: Store) -> None:
    """Store the label, and update the incident if it still carries the suggestion."""
    await label(feedback)
    async with store.transaction() as transaction:
        prediction = await transaction.predictions.get(feedback.subject)
        incident = await transaction.incidents.get(prediction.subject) if prediction is not None else None
    if incident is None:
        return  # the incident was deleted, or the claim was about pasted text
    person = feedback.person.name or feedback.person.id

    async def judged(latest: Incident, transaction: Transaction) -> Incident:
        said = _said_of(latest, feedback, person)
        if said == latest:
            return latest
        saved = await save_next(said, latest, transaction)
        await transaction.tasks.add(present_task(saved))
        return saved

    await change_incident(incident.id, judged, store)


async def is_rejected(prediction_id: str, store: Store) -> bool:
    """Return whether the latest label of a claim says that it is wrong; such a claim is not made again."""
    async with store.transaction() as transaction:
        labels = await transaction.predictions.labels_of(prediction_id)
    return bool(labels) and not labels[-1].correct


def _said_of(incident: Incident, feedback: Feedback, person: str) -> Incident:
    severity, duplicate = incident.suggested_severity, incident.suggested_duplicate
    match feedback.verdict:
        case ButtonAction.SEVERITY_RIGHT if severity is not None and severity.prediction_id == feedback.subject:
            return replace(incident, severity=severity.severity, severity_by=person)
        case ButtonAction.SEVERITY_WRONG if severity is not None and severity.prediction_id == feedback.subject:
            return replace(incident, suggested_severity=None)
        case ButtonAction.DUPLICATE_RIGHT if duplicate is not None and duplicate.prediction_id == feedback.subject:
            return replace(incident, duplicate_of=duplicate.incident_id)
        case ButtonAction.DUPLICATE_WRONG if duplicate is not None and duplicate.prediction_id == feedback.subject:
            return replace(incident, duplicate_of="", suggested_duplicate=None)
        case _:
            return incident
