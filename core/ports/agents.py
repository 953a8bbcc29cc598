"""Read-only tools for agents outside of the chats, such as an assistant in an editor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from core.model.conversation import Audience
from core.model.incident import Incident, SimilarIncident
from core.model.messages import AnswerMessage, IncidentMessage


@dataclass(frozen=True, slots=True)
class AgentCaller:
    """An agent that calls: its name in the audit log, and the audience that limits what it is shown."""

    name: str
    audience: Audience


class AgentTools(Protocol):
    """Answers for agents. Every call is recorded in the audit log; nothing is posted in a chat.

    `subject` is the id of an incident, or the text of an alert, which is investigated now. Each method raises
    PlumblineError with a sentence for the caller, for example if the audience may not see an incident.
    """

    async def ask(self, question: str, caller: AgentCaller) -> AnswerMessage: ...

    async def triage(self, subject: str, caller: AgentCaller) -> IncidentMessage:
        """Find the team that should own an incident."""
        ...

    async def explain(self, subject: str, caller: AgentCaller) -> IncidentMessage:
        """Find the probable cause of an incident, and its owner."""
        ...

    async def get(self, incident_id: str, caller: AgentCaller) -> IncidentMessage: ...

    async def find(self, words: str, caller: AgentCaller, *, only_open: bool) -> tuple[Incident, ...]:
        """Return the latest incidents whose title, service or id contains every word, newest first."""
        ...

    async def similar(self, text: str, caller: AgentCaller) -> tuple[SimilarIncident, ...]:
        """Return past incidents that resemble an alert's text, most similar first."""
        ...
