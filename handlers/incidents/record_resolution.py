"""Record “root cause: …; fix: …; owner: …” from an incident's thread, and label the incident's claims by it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.confidence.resolution import completed, read_resolution
from core.incidents.readable import NOTED as TEXTS
from core.knowledge.redactor import Redact, redacted
from core.model.conversation import Question
from core.model.incident import Resolution
from core.model.messages import Notice, NoticeKind
from core.model.team import Team, team_named
from handlers.common.ports import Ports
from handlers.common.stored_incident import incident_of_thread, update_incident
from handlers.incidents.label_incident import label_incident

NOTED = "Noted {fields}. I’ll use it to judge similar incidents."


async def record_resolution(question: Question, ports: Ports) -> bool:
    """Store the redacted note, label the incident's claims by it, and `learn` from the closed incident.

    A later note adds to the earlier one. Returns False, and does nothing, outside an incident's thread.
    """
    async with ports.store.transaction() as transaction:
        incident = await incident_of_thread(question.place, transaction)
    if incident is None:
        return False
    note = redacted_note(read_resolution(question.text), ports.redact, ports.company.teams)
    readers = tuple(sorted(question.audience.disclosed_to))
    note = replace(note, readers={name: readers for name in TEXTS if getattr(note, name)})
    incident = await update_incident(
        incident.id, lambda latest: replace(latest, resolution=completed(latest.resolution, note)), ports.store
    )
    await label_incident(incident, question.asked_at, ports)
    await ports.past.learn()
    texts = {"the root cause": note.root_cause, "the fix": note.fix, "the owner": note.owner}
    fields = ", ".join(name for name, text in texts.items() if text)
    await ports.poster.post_once(
        f"resolution:{question.id}", question.place, Notice(NOTED.format(fields=fields), NoticeKind.THANKS)
    )
    return True


def redacted_note(note: Resolution, redact: Redact, teams: Sequence[Team]) -> Resolution:
    """Return the note without names, addresses and secrets. A known team's name is kept."""
    owner = note.owner if team_named(note.owner, teams) else redacted(note.owner, redact)
    return Resolution(redacted(note.root_cause, redact), redacted(note.fix, redact), owner)
