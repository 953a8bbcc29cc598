"""Turn 👍 and 👎 reactions on a message into labels of the one claim that the message makes.

Reactions are ordered by the chat's clock, because events arrive late, twice and out of order.
"""

from __future__ import annotations

from datetime import datetime

from core.model.feedback import Feedback, Reaction
from core.model.messages import JUDGEMENTS
from core.model.prediction import Prediction
from core.ports import Post, Store
from handlers.common.ports import Ports
from handlers.feedback.record_feedback import take_feedback
from handlers.knowledge.learn_failing_lines import unconfirm_failing_lines


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
