"""Check that a button about an incident was pressed where the incident is visible."""

from __future__ import annotations

from collections.abc import Sequence

from core.model.audience import may_see_incident
from core.model.conversation import Channel
from core.model.feedback import Feedback
from core.model.incident import Incident
from core.model.messages import ButtonAction
from core.model.prediction import Prediction, PredictionKind
from core.ports import Store, Transaction

# Buttons whose subject is an incident, or a claim about its owner.
ABOUT_INCIDENTS = frozenset(
    {
        ButtonAction.TAKE_IT,
        ButtonAction.TAKE_OVER,
        ButtonAction.HAND_OVER,
        ButtonAction.REASSIGN,
        ButtonAction.NOT_OURS,
        ButtonAction.SEPARATE,
        ButtonAction.BELONGS,
        ButtonAction.JOIN,
        ButtonAction.JOIN_SUGGESTED,
        ButtonAction.DETAILS,
        ButtonAction.CREATE_ISSUE,
        ButtonAction.PUBLISH_POSTMORTEM,
        ButtonAction.FILE,
    }
)


async def is_visible_here(feedback: Feedback, *, channels: Sequence[Channel], store: Store) -> bool:
    """Return whether the button is about no incident, or about a stored one that everybody present may see.

    Pasted text is not stored, so it cannot be taken, reassigned or merged.
    """
    if feedback.verdict not in ABOUT_INCIDENTS:
        return True
    async with store.transaction() as transaction:
        claim = await owner_claim_of(feedback.subject, transaction)
        incident = await transaction.incidents.get(claim.subject if claim is not None else feedback.subject)
    if incident is None:
        return False
    return _is_posted_there(incident, feedback) or may_see_incident(feedback.audience, incident, channels)


async def owner_claim_of(subject: str, transaction: Transaction) -> Prediction | None:
    """Return the owner claim that a press refers to; None if it refers to the incident itself."""
    prediction = await transaction.predictions.get(subject)
    return prediction if prediction is not None and prediction.kind is PredictionKind.OWNER else None


def _is_posted_there(incident: Incident, feedback: Feedback) -> bool:
    """Return whether the incident is posted in the channel, which may be a direct message."""
    posted = [incident.message.place] if incident.message is not None else []
    places = {(place.platform, place.channel) for place in (incident.place, *incident.also_in, *posted)}
    return (feedback.place.platform, feedback.place.channel) in places
