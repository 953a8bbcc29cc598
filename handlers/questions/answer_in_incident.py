"""Answer questions in an incident's thread about that incident, and pass on remarks about its cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter

from core.incidents.incident_questions import answer_text, needs_reading, subject_of
from core.incidents.postmortem import postmortem_address, worth_a_postmortem
from core.incidents.readable import readable
from core.incidents.thread_notes import MAX_NOTE, bears_on_cause
from core.knowledge.redactor import Redact, redacted, redacted_beginning
from core.model.conversation import Question, Speaker, Turn
from core.model.incident import Incident, IncidentState
from core.model.messages import Notice
from core.ports import Task
from handlers.common.ports import Ports
from handlers.common.show_waiting import ANSWERED, show_answer
from handlers.common.stored_incident import incident_of_thread
from handlers.incidents.investigate_incident import observe
from handlers.questions.read_context import remember

RECHECK = "recheck_incident"
_REMARK = TypeAdapter(Question)


async def answer_in_incident(question: Question, ports: Ports) -> Question | None:
    """Answer a question about the incident whose thread it is asked in.

    A remark that names or rules out a cause or a change starts a new investigation, which updates the incident's
    message; there is no reply. Returns None if nothing is left to do, otherwise the question that is still to be
    answered, with the incident as context.
    """
    async with ports.store.transaction() as transaction:
        incident = await incident_of_thread(question.place, transaction)
    if incident is None:
        return question
    incident = readable(incident, question.audience, ports.chats.channels)
    subject = subject_of(question.text, incident)
    if subject is None and bears_on_cause(question.text) and incident.state is IncidentState.OPEN:
        async with ports.store.transaction() as transaction:
            await transaction.tasks.add(recheck_task(incident.id, question, ports.redact))
        return None
    if subject is None:
        return replace(question, history=(*_said_of(incident), *question.history))
    observations = await observe(incident, question.audience, ports) if needs_reading(subject) else None
    page = postmortem_address(incident, ports.chats.public_url) if worth_a_postmortem(incident) else ""
    text = answer_text(subject, incident, observations, page)
    text = text if observations is None else redacted(text, ports.redact)  # stored facts are redacted already
    await show_answer(Notice(text), question, ANSWERED, ports.poster)
    async with ports.store.transaction() as transaction:
        await remember(question, text, ports.clock.now(), transaction)
    return None


def _said_of(incident: Incident) -> Sequence[Turn]:
    """Return the incident's service, alerts and cause as the first turn of the thread."""
    cause = incident.explanation.cause if incident.explanation is not None else None
    names = dict.fromkeys([incident.service, *(alert.name for alert in incident.alerts), incident.title])
    return [Turn(Speaker.PERSON, " ".join([*filter(None, names), cause.cause if cause is not None else ""]).strip())]


def recheck_task(incident_id: str, remark: Question, redact: Redact) -> Task:
    """Return the task that investigates the incident again with a person's remark, unique for each message.

    The task names the person and the place, so that the remark can be deleted on request.
    """
    redacted_remark = replace(remark, text=redacted_beginning(remark.text, MAX_NOTE, redact), history=())
    return Task(f"recheck:{remark.key}", RECHECK, incident_id, _REMARK.dump_python(redacted_remark, mode="json"))


def remark_of(payload: Mapping[str, Any]) -> Question:
    """Return the remark stored in a recheck task."""
    return _REMARK.validate_python(payload)
