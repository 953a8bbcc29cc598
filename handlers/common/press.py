"""A pressed button, as it is stored: a task of its own and an entry in the audit log."""

from __future__ import annotations

from pydantic import TypeAdapter

from core.model.audit import Act, AuditEntry, audit_entry
from core.model.feedback import Feedback
from core.model.messages import ButtonAction
from core.ports import Task
from handlers.common.stop_model import stop_key

FEEDBACK = "record_feedback"
FEEDBACK_EVENT = TypeAdapter(Feedback)


def pressed(feedback: Feedback) -> tuple[Task, AuditEntry]:
    """Return what is stored of a press. One of “Stop” has the key for which the working replica looks."""
    key = stop_key(feedback.subject) if feedback.verdict is ButtonAction.STOP else feedback.id
    entry = audit_entry(
        f"pressed:{feedback.id}",
        feedback.at,
        Act.PRESSED,
        feedback.person,
        feedback.subject,
        place=feedback.place,
        detail=feedback.verdict,
    )
    return Task(key, FEEDBACK, feedback.subject, FEEDBACK_EVENT.dump_python(feedback, mode="json")), entry
