"""Record “root cause: …; fix: …; owner: …” from an incident's thread, and label the incident's claims by it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from core.confidence.resolution import completed, read_resolution
from core.model.conversation import Question
from core.model.incident import Resolution
from core.model.messages import Notice, NoticeKind
from core.model.team import Team, team_named
from core.ports import Store
from handlers.incidents.find_incident import incident_of_thread
from handlers.incidents.label_incident import label_incident
from handlers.incidents.update_incident import update_incident
from handlers.knowledge.redaction import Redact, redacted
from handlers.questions.post_message import Poster

NOTED = "Noted {fields}. I’ll use it to judge similar incidents."


async def record_resolution(
    question: Question,
    *,
    teams: Sequence[Team],
    store: Store,
    poster: Poster,
    redact: Redact,
    learn: Callable[[], Awaitable[None]],
    otherwise: Callable[[Question], Awaitable[None]],
) -> None:
    """Store the redacted note, label the incident's claims by it, and `learn` from the closed incident.

    A later note adds to the earlier one. Outside an incident's thread, the question is passed to `otherwise`.
    """
    async with store.transaction() as transaction:
        incident = await incident_of_thread(question.place, transaction)
    if incident is None:
        await otherwise(question)
        return
    note = redacted_note(read_resolution(question.text), redact, teams)
    incident = await update_incident(
        incident.id, lambda latest: replace(latest, resolution=completed(latest.resolution, note)), store
    )
    await label_incident(incident, question.asked_at, teams=teams, store=store)
    await learn()
    said = {"the root cause": note.root_cause, "the fix": note.fix, "the owner": note.owner}
    fields = ", ".join(name for name, text in said.items() if text)
    await poster.post_once(
        f"resolution:{question.id}", question.place, Notice(NOTED.format(fields=fields), NoticeKind.THANKS)
    )


def redacted_note(note: Resolution, redact: Redact, teams: Sequence[Team]) -> Resolution:
    """Return the note without names, addresses and secrets. A known team's name is kept."""
    owner = note.owner if team_named(note.owner, teams) else redacted(note.owner, redact)
    return Resolution(redacted(note.root_cause, redact), redacted(note.fix, redact), owner)
