"""Answer “Why?” in the thread of the answer or incident that carries the badge."""

from __future__ import annotations

import hashlib
from collections import Counter

from core.confidence.badge_explanation import explained
from core.confidence.calibrator import badge_for
from core.incidents.readable import readable
from core.knowledge.redactor import Redact, redacted
from core.knowledge.retriever import Retriever
from core.model.badge import BadgeReference
from core.model.conversation import Audience
from core.model.explanation import Hypothesis
from core.model.feedback import Feedback
from core.model.incident import Incident
from core.model.messages import BadgeMessage
from core.model.prediction import Prediction, PredictionKind
from core.triage.history import IncidentHistory
from handlers.common.ports import Ports
from handlers.common.record_prediction import scale_of

MAX_REFERENCES = 10  # looked up and shown
MAX_EVIDENCE = 3  # reasons shown for an owner


async def explain_badge(feedback: Feedback, ports: Ports) -> None:
    """Post the explanation, or edit the existing one. Does nothing if the prediction no longer exists.

    The badge is recomputed from the stored prediction, so the explanation matches what was shown. References that the
    audience may not read are counted but not named; `redact` removes names, addresses and secrets from the named ones.
    """
    async with ports.store.transaction() as transaction:
        prediction = await transaction.predictions.get(feedback.subject)
        if prediction is None:
            return
        version = prediction.calibrator_version
        calibrator = await transaction.predictions.calibrator_version(version) if version else None
        labelled = await transaction.predictions.labelled(prediction.estimator)
        incident = await transaction.incidents.get(prediction.subject)
    if incident is not None:
        incident = readable(incident, feedback.audience, await ports.chats.channels_of([incident]))
    scale = scale_of(prediction.estimator)
    badge = badge_for(prediction.evaluation, calibrator, len(labelled), prediction.group, scale)
    if prediction.kind is PredictionKind.ANSWER:
        references = await _documents(prediction, feedback.audience, ports.knowledge.retriever)
    else:
        references = _incidents(prediction, await ports.history_for(feedback.audience), ports.redact)
    evidence, changes = _evidence(prediction, incident), _changes(prediction, incident)
    explanation = explained(prediction, badge, labelled, references, evidence, changes)
    digest = hashlib.blake2b(repr(explanation).encode(), digest_size=16).hexdigest()
    intent = f"why:{prediction.id}:{feedback.place.channel}:{feedback.place.thread}"
    await ports.poster.post_or_edit(intent, feedback.place, BadgeMessage(explanation), digest)


def _evidence(prediction: Prediction, incident: Incident | None) -> tuple[str, ...]:
    """Return the evidence for a claim that the incident still shows; empty otherwise."""
    owner = incident.findings.owner if incident is not None else None
    if owner is not None and owner.prediction_id == prediction.id:
        return (
            tuple(f"Evidence for {owner.owner.team_name}: {each}." for each in owner.owner.reasons[:MAX_EVIDENCE])
            if owner.owner
            else ()
        )
    cause = _cause(prediction, incident)
    if cause is None:
        return ()
    counted = Counter(evidence.kind for evidence in cause.evidence)
    counts = ", ".join(f"{count} × {kind}" for kind, count in counted.items())
    against = f"; {len(cause.contradicting)} against it" if cause.contradicting else ""
    return (f"Evidence for it: {counts}{against}.",) if counts else ()


def _changes(prediction: Prediction, incident: Incident | None) -> str:
    cause = _cause(prediction, incident)
    return cause.disproof if cause is not None else ""


def _cause(prediction: Prediction, incident: Incident | None) -> Hypothesis | None:
    explanation = incident.findings.explanation if incident is not None else None
    return dict(explanation.claims).get(prediction.id) if explanation is not None else None


async def _documents(prediction: Prediction, audience: Audience, retriever: Retriever) -> tuple[BadgeReference, ...]:
    pages = [await retriever.page(document_id, audience) for document_id in prediction.references[:MAX_REFERENCES]]
    return tuple(BadgeReference(passages[0].title, passages[0].url) for passages in pages if passages)


def _incidents(prediction: Prediction, history: IncidentHistory, redact: Redact) -> tuple[BadgeReference, ...]:
    """Return the readable past incidents, redacted. Unlike indexed documents, the history is stored unredacted."""
    by_id = {incident.id: incident for incident in history.incidents}
    referenced = [by_id[each] for each in prediction.references[:MAX_REFERENCES] if each in by_id]
    return tuple(BadgeReference(f"{each.id}: {redacted(each.title, redact)}", each.url) for each in referenced)
