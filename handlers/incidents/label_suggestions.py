"""Label judgements, suggested severities and duplicates from closed incidents that no person judged (nightly)."""

from __future__ import annotations

from core.confidence.resolution import DEFAULT_THRESHOLD, agreement
from core.model.incident import Incident, IncidentState
from core.model.prediction import Outcome
from core.ports import Store, Transaction
from core.triage.paging import needed_person

CLOSING = "closing"  # the labeller if no person judged
MAX_CLOSED = 500  # latest incidents checked


async def label_suggestions(*, store: Store) -> None:
    """Label the suggestions of resolved incidents.

    That it needed a person is right if somebody did something about it. A severity is right if it equals the final severity. A duplicate is right if the notes on both causes agree, or if
    the incident's own note names the other incident's id; without both notes it stays unlabelled.
    """
    async with store.transaction() as transaction:
        recent = await transaction.incidents.recent(MAX_CLOSED)
    for incident in recent:
        if incident.state is IncidentState.RESOLVED:
            async with store.transaction() as transaction:
                await _label(incident, transaction)


async def _label(incident: Incident, transaction: Transaction) -> None:
    severity, duplicate = incident.suggested_severity, incident.suggested_duplicate
    if incident.page is not None:
        right = needed_person(incident)
        await _unless_labelled(incident.page.prediction_id, incident, transaction, right=right)
    if severity is not None:
        is_right = severity.severity is incident.severity
        await _unless_labelled(severity.prediction_id, incident, transaction, right=is_right)
    if duplicate is not None:
        known = await transaction.incidents.get(duplicate.incident_id)
        right = _is_duplicate(incident, known) if known is not None else None
        await _unless_labelled(duplicate.prediction_id, incident, transaction, right=right)


def _is_duplicate(incident: Incident, known: Incident) -> bool | None:
    own = incident.resolution.root_cause if incident.resolution else ""
    other = known.resolution.root_cause if known.resolution else ""
    if own and known.id in own:
        return True
    if not own or not other:
        return None
    return max(agreement(own, other), agreement(other, own)) >= DEFAULT_THRESHOLD


async def _unless_labelled(
    prediction_id: str, incident: Incident, transaction: Transaction, *, right: bool | None
) -> None:
    predictions = transaction.predictions
    if right is None or await predictions.get(prediction_id) is None or await predictions.labels_of(prediction_id):
        return
    await predictions.label(Outcome(prediction_id, right, CLOSING, incident.resolved_at or incident.updated_at))
