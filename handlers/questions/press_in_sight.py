"""A button about an incident does something only where the incident may be spoken of."""

from __future__ import annotations

from collections.abc import Sequence

from core.model.audience import may_see_incident
from core.model.conversation import Channel
from core.model.feedback import Feedback
from core.model.incident import Incident
from core.model.messages import Verdict
from core.model.prediction import Prediction, PredictionKind
from core.ports import Store, Transaction

# Their subject is an incident, or the claim whose it is.
ABOUT_INCIDENTS = frozenset(
    {
        Verdict.TAKE_IT,
        Verdict.TAKE_OVER,
        Verdict.HAND_OVER,
        Verdict.REASSIGN,
        Verdict.NOT_OURS,
        Verdict.SEPARATE,
        Verdict.BELONGS,
        Verdict.JOIN,
        Verdict.JOIN_SUGGESTED,
        Verdict.DETAILS,
    }
)


async def is_in_sight(feedback: Feedback, *, channels: Sequence[Channel], store: Store) -> bool:
    """Return whether the press is about no incident, or about one that is stored and that those who read
    along may know of.

    A pasted text that was looked into is not stored: there is nothing to take, to hand over or to put together.
    """
    if feedback.verdict not in ABOUT_INCIDENTS:
        return True
    async with store.transaction() as transaction:
        claim = await claim_meant(feedback.subject, transaction)
        incident = await transaction.incidents.get(claim.subject if claim is not None else feedback.subject)
    if incident is None:
        return False
    return _stands_there(incident, feedback) or may_see_incident(feedback.audience, incident, channels)


async def claim_meant(subject: str, transaction: Transaction) -> Prediction | None:
    """The claim about an incident's owner that a press speaks of; None where it speaks of the incident itself."""
    prediction = await transaction.predictions.get(subject)
    return prediction if prediction is not None and prediction.kind is PredictionKind.OWNER else None


def _stands_there(incident: Incident, feedback: Feedback) -> bool:
    """Also in somebody's direct messages, whose audience is the person and no channel."""
    posted = [incident.message.place] if incident.message is not None else []
    places = {(place.platform, place.channel) for place in (incident.place, *incident.also_in, *posted)}
    return (feedback.place.platform, feedback.place.channel) in places
