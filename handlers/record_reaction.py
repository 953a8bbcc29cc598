"""A reaction to a message of ours judges the one claim that it makes, as a button would."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from core.confidence.prediction import Prediction
from core.feedback import Feedback, Reaction
from core.messages import JUDGEMENTS
from core.ports import Post, Store


async def record_reaction(reaction: Reaction, *, store: Store, judge: Callable[[Feedback], Awaitable[None]]) -> None:
    """Hand the judgement on to `judge`; a reaction that is taken back takes its label along.

    A message that makes no claim, or several as an incident's does, is not judged: who knows which one is meant?
    """
    async with store.transaction() as transaction:
        post = await transaction.posts.at(reaction.message)
        prediction = await transaction.predictions.get(post.claim) if post is not None and post.claim else None
    if post is None or prediction is None:
        return
    if reaction.taken_back:
        await _take_back(reaction, prediction, store)
    else:
        await judge(_feedback(reaction, prediction, post))


def _feedback(reaction: Reaction, prediction: Prediction, post: Post) -> Feedback:
    approval, disapproval = JUDGEMENTS[prediction.kind]
    verdict = approval if reaction.approves else disapproval
    return Feedback(reaction.id, verdict, prediction.id, reaction.person, post.place, reaction.at)


async def _take_back(reaction: Reaction, prediction: Prediction, store: Store) -> None:
    """Unless the person has said otherwise since, by another reaction or a button."""
    person = f"{reaction.person.platform}:{reaction.person.id}"
    async with store.transaction() as transaction:
        labels = await transaction.predictions.labels_of(prediction.id)
        if any((label.labelled_by, label.correct) == (person, reaction.approves) for label in labels):
            await transaction.predictions.unlabel(prediction.id, person)
