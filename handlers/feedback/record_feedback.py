"""Take a pressed button: call its handler, which by default stores the label of a claim; “Why?” is answered in the thread.

👍 and 👎 reactions on a message label the one claim that it makes. They are ordered by the chat's clock, because events
arrive late, twice and out of order.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import datetime

from core.confidence.calibrator import badge_for
from core.confidence.measures import LATEST, explained
from core.incidents.readable import readable
from core.knowledge.redactor import Redact, redacted
from core.knowledge.retriever import Retriever
from core.model.badge import BadgeReference, Outcome, Prediction, PredictionKind
from core.model.conversation import Audience
from core.model.findings import Hypothesis
from core.model.incident import Incident, may_see_incident
from core.model.message_view import Feedback, Reaction
from core.model.messages import (
    ADOPTING,
    CHOOSING,
    CORRECT,
    FILING_ACTIONS,
    JUDGEMENTS,
    TAKING,
    WHY_ACTIONS,
    BadgeMessage,
    ButtonAction,
    Notice,
    NoticeKind,
)
from core.ports import Post, Store
from core.triage.owner_model import IncidentHistory
from handlers.common.ports import Ports
from handlers.common.record_prediction import scale_of
from handlers.incidents.file_incident import ask_to_file, file_report, send_update
from handlers.incidents.offer_adoption import choose_adoption
from handlers.incidents.present_incident import show_details
from handlers.incidents.reassign_incident import (
    ask_for_owner,
    ask_for_parent,
    join_incident,
    pressed_incident,
    reassign_incident,
    separate_incident,
    take_incident,
)
from handlers.knowledge.learn_failing_lines import judge_failing_lines, unconfirm_failing_lines
from handlers.questions.choose_answer import choose_answer
from handlers.questions.correct_answer import ask_for_correction, confirm_correction, propose_correction

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
        judged = await transaction.predictions.verdicts(prediction.estimator, LATEST)
        incident = await transaction.incidents.get(prediction.subject)
    if incident is not None:
        incident = readable(incident, feedback.audience, await ports.chats.channels_of([incident]))
    badge = badge_for(prediction.evaluation, calibrator, len(judged), prediction.group, scale_of(prediction.estimator))
    if prediction.kind is PredictionKind.ANSWER:
        references = await _documents(prediction, feedback.audience, ports.knowledge.retriever)
    else:
        references = _incidents(prediction, await ports.history_for(feedback.audience), ports.redact)
    evidence, changes = _evidence(prediction, incident), _changes(prediction, incident)
    explanation = explained(prediction, badge, judged, references, evidence, changes)
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
    return (
        dict(incident.findings.explanation.claims).get(prediction.id)
        if incident is not None and incident.findings.explanation is not None
        else None
    )


async def _documents(prediction: Prediction, audience: Audience, retriever: Retriever) -> tuple[BadgeReference, ...]:
    pages = [await retriever.page(document_id, audience) for document_id in prediction.references[:MAX_REFERENCES]]
    return tuple(BadgeReference(passages[0].title, passages[0].url) for passages in pages if passages)


def _incidents(prediction: Prediction, history: IncidentHistory, redact: Redact) -> tuple[BadgeReference, ...]:
    """Return the readable past incidents, redacted. Unlike indexed documents, the history is stored unredacted."""
    by_id = {incident.id: incident for incident in history.incidents}
    referenced = [by_id[each] for each in prediction.references[:MAX_REFERENCES] if each in by_id]
    return tuple(BadgeReference(f"{each.id}: {redacted(each.title, redact)}", each.url) for each in referenced)


MAX_COMMENT = 300  # characters that are kept

ASK_A_PERSON = "{person} would like a person to answer this. If you know the answer, please reply in this thread."

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
        *FILING_ACTIONS,
        ButtonAction.FILE,
        ButtonAction.SEND_UPDATE,
    }
)


async def take_feedback(feedback: Feedback, ports: Ports) -> None:
    """Call the handler of a button, unless it was pressed where its incident is not visible."""
    if await is_visible_here(feedback, ports):
        await BUTTONS.get(feedback.verdict, record_feedback)(feedback, ports)


async def is_visible_here(feedback: Feedback, ports: Ports) -> bool:
    """Return whether the button is about no incident, or about a stored one that everybody present may see.

    Pasted text is not stored, so it cannot be taken, reassigned or merged.
    """
    if feedback.verdict not in ABOUT_INCIDENTS:
        return True
    incident, _ = await pressed_incident(feedback, ports.store)
    if incident is None:
        return False
    channels = await ports.chats.channels_of([incident])
    return _is_posted_there(incident, feedback) or may_see_incident(feedback.audience, incident, channels)


async def record_feedback(feedback: Feedback, ports: Ports) -> None:
    """Store the label; for `ASK_A_PERSON`, post a request in the thread instead.

    Ask a person who marked an answer wrong for the right answer, unless the platform opens a form.

    A button of a prediction that no longer exists is ignored.
    """
    if feedback.verdict is ButtonAction.ASK_A_PERSON:
        text = ASK_A_PERSON.format(person=feedback.person.name or "Somebody")
        intent = f"ask-a-person:{await _question_id(feedback.subject, ports.store)}"
        await ports.poster.post_once(intent, feedback.place, Notice(text, NoticeKind.INFORMATION))
    else:
        async with ports.store.transaction() as transaction:
            if await transaction.predictions.get(feedback.subject) is not None:
                comment = " ".join(feedback.text.split())[:MAX_COMMENT]
                await transaction.predictions.label(
                    Outcome(feedback.subject, CORRECT[feedback.verdict], feedback.person.key, feedback.at, comment)
                )
        if feedback.verdict is ButtonAction.WRONG and not feedback.in_form:
            await ask_for_correction(feedback, ports)


async def _question_id(subject: str, store: Store) -> str:
    """Return the id of the question. The button names the question itself until a whole answer exists."""
    async with store.transaction() as transaction:
        prediction = await transaction.predictions.get(subject)
    return prediction.subject if prediction is not None else subject


async def note_stop(_feedback: Feedback, _ports: Ports) -> None:
    """Do nothing: whoever works for the model finds the press itself (see `handlers.common.stored_incident`)."""


async def judge_cause(feedback: Feedback, ports: Ports) -> None:
    """Store the label of a cause, and learn the failing lines of a build from it."""
    await record_feedback(feedback, ports)
    await judge_failing_lines(feedback, ports)


def _is_posted_there(incident: Incident, feedback: Feedback) -> bool:
    """Return whether the incident is posted in the channel, which may be a direct message."""
    posted = [incident.placement.message.place] if incident.placement.message is not None else []
    places = {
        (place.platform, place.channel) for place in (incident.placement.place, *incident.placement.also_in, *posted)
    }
    return (feedback.place.platform, feedback.place.channel) in places


BUTTONS: dict[ButtonAction, Callable[[Feedback, Ports], Awaitable[None]]] = {
    ButtonAction.STOP: note_stop,
    ButtonAction.CORRECTION: propose_correction,
    ButtonAction.CONFIRM: confirm_correction,
    **dict.fromkeys(CHOOSING, choose_answer),
    **dict.fromkeys(WHY_ACTIONS, explain_badge),
    ButtonAction.CAUSE_RIGHT: judge_cause,
    ButtonAction.CAUSE_WRONG: judge_cause,
    ButtonAction.REASSIGN: reassign_incident,
    ButtonAction.NOT_OURS: reassign_incident,
    ButtonAction.HAND_OVER: ask_for_owner,
    **dict.fromkeys(TAKING, take_incident),
    ButtonAction.SEPARATE: separate_incident,
    ButtonAction.BELONGS: ask_for_parent,
    ButtonAction.JOIN: join_incident,
    ButtonAction.JOIN_SUGGESTED: join_incident,
    ButtonAction.DETAILS: show_details,
    **dict.fromkeys(FILING_ACTIONS, ask_to_file),
    ButtonAction.FILE: file_report,
    ButtonAction.SEND_UPDATE: send_update,
    **dict.fromkeys(ADOPTING, choose_adoption),
}
"""The handlers of buttons. Every other button stores a label."""


async def record_reaction(reaction: Reaction, ports: Ports) -> None:
    """Take the person's current reaction like a pressed button, or remove the label when the reaction is removed.

    Messages with no claim or with several, such as incident messages, are ignored: a reaction does not say which claim
    it means.
    """
    person = reaction.person.key
    async with ports.store.transaction() as transaction:
        post = await transaction.posts.at(reaction.message)
        prediction = await transaction.predictions.get(post.claim) if post is not None and post.claim else None
    if post is None or prediction is None:
        return
    # The person's stored reactions must not change between reading them and judging by them.
    async with ports.store.lock(f"reactions to {prediction.id} by {person}"):
        async with ports.store.transaction() as transaction:
            is_news = await transaction.predictions.react(
                prediction.id, person, approves=reaction.approves, at=reaction.at, taken_back=reaction.taken_back
            )
        if not is_news:
            return
        if reaction.taken_back:
            await _take_back(reaction, prediction, person, ports.store)
        counted = await _counted_reaction(prediction, person, ports.store)
        if counted is not None:
            approves, at = counted
            await take_feedback(_feedback(reaction, prediction, post, approves=approves, at=at), ports)


def _feedback(reaction: Reaction, prediction: Prediction, post: Post, *, approves: bool, at: datetime) -> Feedback:
    approval, disapproval = JUDGEMENTS[prediction.kind]
    verdict = approval if approves else disapproval
    comment = reaction.comment if approves is reaction.approves else ""
    return Feedback(reaction.id, verdict, prediction.id, reaction.person, post.place, at, comment)


async def _counted_reaction(prediction: Prediction, person: str, store: Store) -> tuple[bool, datetime] | None:
    """Return the person's latest remaining reaction; None if the person gave a later label, for example with a button."""
    async with store.transaction() as transaction:
        reactions = await transaction.predictions.reactions(prediction.id, person)
        labels = await transaction.predictions.labels_of(prediction.id)
    labelled_at = next((label.labelled_at for label in labels if label.labelled_by == person), None)
    last = max(reactions.items(), key=lambda reaction: reaction[1], default=None)
    return None if last is None or (labelled_at is not None and labelled_at > last[1]) else last


async def _take_back(reaction: Reaction, prediction: Prediction, person: str, store: Store) -> None:
    """Remove the label, unless the person has labelled the claim differently since."""
    async with store.transaction() as transaction:
        labels = await transaction.predictions.labels_of(prediction.id)
        theirs = next((label for label in labels if label.labelled_by == person), None)
        if theirs is None or theirs.correct is not reaction.approves or theirs.labelled_at > reaction.at:
            return
        await transaction.predictions.unlabel(prediction.id, person)
        if reaction.approves:
            await unconfirm_failing_lines(prediction.id, person, transaction)
