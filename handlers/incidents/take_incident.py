"""Assign an incident to the person who takes it. Taking over from somebody else must be explicit."""

from __future__ import annotations

from dataclasses import replace

from core.model.feedback import Feedback
from core.model.incident import Incident
from core.model.messages import ButtonAction, Notice
from core.ports import Store, Transaction
from handlers.incidents.open_incident import present_task
from handlers.incidents.update_incident import change_incident, save_next
from handlers.questions.post_message import Poster

TAKEN = "Nothing was changed, because {person} already has it. Press “Take over” above to take it."
TAKEN_OVER = "{person} took it over from {before}."


async def take_incident(feedback: Feedback, *, store: Store, poster: Poster) -> None:
    """Set the person as the assignee, unless another person has the incident and this is not `take over`.

    Does nothing for an incident that is not stored, such as pasted text.
    """
    async with store.transaction() as transaction:
        if await transaction.incidents.get(feedback.subject) is None:
            return
    person = feedback.person.name or feedback.person.id
    before = ""

    async def taken(latest: Incident, transaction: Transaction) -> Incident:
        nonlocal before
        before = latest.taken_by
        if before == person or (before and feedback.verdict is ButtonAction.TAKE_IT):
            return latest
        saved = await save_next(replace(latest, taken_by=person), latest, transaction)
        await transaction.tasks.add(present_task(saved))
        return saved

    await change_incident(feedback.subject, taken, store)
    if before not in ("", person):
        text = TAKEN if feedback.verdict is ButtonAction.TAKE_IT else TAKEN_OVER
        notice = Notice(text.format(person=before if text is TAKEN else person, before=before))
        await poster.post_once(f"taken:{feedback.id}", feedback.place, notice)
