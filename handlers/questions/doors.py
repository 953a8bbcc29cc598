"""Ways to ask other than by a message: agents outside of the chats, and the form that a button opens.

Agents get evidence only, for one audience, and are recorded in the audit log.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from core.incidents.incident_questions import CommandName, parse_command
from core.incidents.readable import readable, visible
from core.knowledge.redactor import redacted
from core.model.answer import RECORDS, Answer, Sentence
from core.model.audit import Act, audit_entry
from core.model.badge import NO_POLICY, Policy, Prediction, PredictionKind
from core.model.conversation import Audience, Channel, MessageReference, Person, Place, Platform, Question, cut_message
from core.model.errors import MalformedInput, PlumblineError
from core.model.findings import SimilarIncident
from core.model.incident import FilingTarget, Incident, IncidentState, Stage, may_see_incident
from core.model.messages import (
    FILING_ACTIONS,
    AnswerMessage,
    ButtonAction,
    CauseRequest,
    CorrectionRequest,
    FilingRequest,
    Form,
    HandoverRequest,
    IncidentDetails,
    IncidentMessage,
    Message,
    ProposalMessage,
)
from core.ports import AgentCaller, AudienceAt, OpenToAll, Store
from handlers.common.ports import Chats, Ports
from handlers.common.stored_incident import find_incident
from handlers.incidents.file_incident import draft_of
from handlers.incidents.investigate_incident import explain, incident_from, triage
from handlers.incidents.present_incident import Link, message_now
from handlers.incidents.reassign_incident import handover_request
from handlers.questions.answer_question import prepare_answer
from handlers.questions.show_home import open_incidents

ABOUT_TOOLS = (
    "I am Plumbline. I answer questions about CI/CD and operations from the documents of the team, with their source, and "
    "investigate incidents: who should own them, and why they probably happened. I change nothing."
)
MAX_FOUND = 20  # incidents in one reply
MAX_SIMILAR = 5
MAX_ID = 50  # characters of an id that are repeated
MAX_SEARCHED = 1_000  # latest incidents that a search looks through

_INCIDENT_ID = re.compile(r"[0-9a-f]{10}")

Investigate = Callable[[Incident, Audience, Ports], Awaitable[Incident]]


@dataclass(frozen=True, slots=True)
class AnswerAgents:
    """Implements `core.ports.AgentTools`. The ports have no language model: an agent brings its own."""

    ports: Ports

    async def ask(self, question: str, caller: AgentCaller) -> AnswerMessage:
        request = self._question(question, caller)
        await self._record("ask", request.id, caller)
        if talk := await self._small_talk(request):
            return AnswerMessage(Answer(request.id, request.text, (Sentence(talk, ()),), (), RECORDS))
        answer = await prepare_answer(request, self.ports)
        documents = tuple(dict.fromkeys(citation.document_id for citation in answer.citations))
        await self._record("ask", request.id, caller, Act.ANSWERED, documents)
        return AnswerMessage(answer)

    async def _small_talk(self, request: Question) -> str:
        """Return the reply to a question about Plumbline or the state of things; empty for any other."""
        match parse_command(request.text).name:
            case CommandName.HELLO | CommandName.HELP:
                return ABOUT_TOOLS
            case CommandName.INCIDENTS | CommandName.STATUS:
                return "\n".join(await open_incidents(request.audience, self.ports))
            case _:
                return ""

    async def triage(self, subject: str, caller: AgentCaller) -> IncidentMessage:
        return await self._investigated("triage", subject, caller, triage)

    async def explain(self, subject: str, caller: AgentCaller) -> IncidentMessage:
        return await self._investigated("explain", subject, caller, explain)

    async def get(self, incident_id: str, caller: AgentCaller) -> IncidentMessage:
        return IncidentMessage(await self._stored("get", incident_id.strip(), caller))

    async def find(self, words: str, caller: AgentCaller, *, only_open: bool) -> tuple[Incident, ...]:
        await self._record("find", "incidents", caller)
        wanted = cut_message(words).casefold().split()
        async with self.ports.store.transaction() as transaction:
            latest = transaction.incidents.latest_open if only_open else transaction.incidents.recent
            incidents = await latest(MAX_SEARCHED)
        channels = await self.ports.chats.channels_of(incidents)
        matches = [
            incident
            for incident in visible(incidents, caller.audience, channels)
            if all(word in f"{incident.id} {incident.title} {incident.service}".casefold() for word in wanted)
            and (not only_open or incident.state is IncidentState.OPEN)
        ]
        return tuple(matches[:MAX_FOUND])

    async def similar(self, text: str, caller: AgentCaller) -> tuple[SimilarIncident, ...]:
        await self._record("similar", "past incidents", caller)
        neighbours = (await self.ports.history_for(caller.audience)).similar(_not_empty(text), MAX_SIMILAR)
        return tuple(each.incident.as_similar(each.similarity) for each in neighbours)

    async def _investigated(
        self, tool: str, subject: str, caller: AgentCaller, investigate: Investigate
    ) -> IncidentMessage:
        if _INCIDENT_ID.fullmatch(subject.strip()):
            return IncidentMessage(await self._stored(tool, subject.strip(), caller))
        pasted = incident_from(self._question(subject, caller), self.ports.company.services, self.ports.redact)
        await self._record(tool, pasted.id, caller)
        investigated = await investigate(pasted, caller.audience, self.ports)
        return IncidentMessage(replace(investigated, stage=Stage.DONE))

    def _question(self, text: str, caller: AgentCaller) -> Question:
        return Question(
            id=f"agent:{uuid.uuid4().hex}",
            text=redacted(_not_empty(text), self.ports.redact),
            asker=Person(Platform.TERMINAL, caller.name),
            place=Place(Platform.TERMINAL, f"agent:{caller.name}"),
            audience=caller.audience,
            asked_at=self.ports.clock.now(),
        )

    async def _stored(self, tool: str, incident_id: str, caller: AgentCaller) -> Incident:
        """Return an incident. The call is recorded first, so that refused calls are recorded too."""
        await self._record(tool, incident_id[:MAX_ID], caller)
        incident = await find_incident(incident_id, self.ports.store)
        channels = await self.ports.chats.channels_of([incident] if incident is not None else [])
        if incident is None or not may_see_incident(caller.audience, incident, channels):
            raise PlumblineError(f"There is no incident {incident_id[:MAX_ID]} that this caller may see.")
        return readable(incident, caller.audience, channels)

    async def list_all(self, kind: str, caller: AgentCaller) -> None:
        await self._record("list", kind, caller)

    async def refuse(self, caller: str, reason: str) -> None:
        """Record a call that got an error instead of a result."""
        await self._record(reason, "mcp", AgentCaller(caller, Audience()), Act.REFUSED)

    async def _record(
        self, tool: str, subject: str, caller: AgentCaller, act: Act = Act.CALLED, documents: tuple[str, ...] = ()
    ) -> None:
        key, actor = f"{act}:{uuid.uuid4().hex}", f"agent:{caller.name}"
        async with self.ports.store.transaction() as transaction:
            await transaction.audit.add(
                audit_entry(key, self.ports.clock.now(), act, actor, subject, documents=documents, detail=tool)
            )


def _not_empty(text: str) -> str:
    """Return the text within its bounds. Raises MalformedInput if it is empty."""
    if not text.strip():
        raise MalformedInput("The text is empty.")
    return cut_message(text.strip())


# The kind of claim that each button disputes.
DISPUTED = {
    ButtonAction.WRONG: PredictionKind.ANSWER,
    ButtonAction.OWNER_WRONG: PredictionKind.OWNER,
    ButtonAction.CAUSE_WRONG: PredictionKind.CAUSE,
}


@dataclass(frozen=True, slots=True)
class AskInForm:
    """Implements `core.ports.Forms`."""

    ports: Ports

    async def form(self, verdict: ButtonAction, subject: str, audience: Audience, person: Person) -> Form | None:
        """Return the form; None if its prediction or incident is not stored, or the audience may not see it."""
        if verdict is ButtonAction.HAND_OVER:
            return await self._handover(subject, audience)
        if verdict is ButtonAction.DETAILS:
            incident = await self._visible(subject, audience)
            return IncidentDetails(incident) if incident is not None else None
        if verdict in FILING_ACTIONS:
            if await self._visible(subject, audience) is None:
                return None
            draft = await draft_of(verdict, subject, audience, person, self.ports)
            return draft if isinstance(draft, FilingRequest) else None
        prediction = await self._prediction(subject) if verdict in DISPUTED else None
        if prediction is None or prediction.kind is not DISPUTED[verdict]:
            return None
        match prediction.kind:
            case PredictionKind.ANSWER:
                return CorrectionRequest(prediction.id)
            case PredictionKind.OWNER:
                return await self._handover(prediction.subject, audience)
            case _:
                return CauseRequest(prediction.id)

    async def _handover(self, incident_id: str, audience: Audience) -> HandoverRequest | None:
        incident = await self._visible(incident_id, audience)
        return handover_request(incident, self.ports.company.teams) if incident is not None else None

    async def _visible(self, incident_id: str, audience: Audience) -> Incident | None:
        incident = await find_incident(incident_id, self.ports.store)
        stored = [incident] if incident is not None else []
        return next(iter(visible(stored, audience, await self.ports.chats.channels_of(stored))), None)

    async def _prediction(self, prediction_id: str) -> Prediction | None:
        async with self.ports.store.transaction() as transaction:
            return await transaction.predictions.get(prediction_id)


async def no_link(_reference: MessageReference) -> str:
    """Return an empty address."""
    return ""


@dataclass(frozen=True, slots=True)
class ShownAgain:
    """Implements `core.ports.CardRefresher` for messages that change: incidents and proposed answers.

    `link` returns the address of a message, for people who may read it. `audience_at` and `openness` look up the audience
    of a place on its platform and the channels of an incident; see `Chats`.
    """

    store: Store
    policy: Policy = NO_POLICY
    channels: Sequence[Channel] = ()
    link: Link = no_link
    targets: Sequence[FilingTarget] = ()
    audience_at: AudienceAt | None = None
    openness: Mapping[Platform, OpenToAll] = field(default_factory=dict[Platform, OpenToAll])

    async def message(self, reference: MessageReference) -> Message | None:
        async with self.store.transaction() as transaction:
            post = await transaction.posts.at(reference)
            kind, _, subject = post.intent.partition(":") if post is not None else ("", "", "")
            answer = await transaction.curated.get(subject) if kind == "proposal" else None
        if kind == "incident":
            incident_id = subject.partition("@")[0]  # a suffix names the place of a copy
            audiences = {reference.place.platform: self.audience_at} if self.audience_at is not None else {}
            return await message_now(
                incident_id,
                reference.place,
                policy=self.policy,
                chats=Chats(channels=self.channels, audiences=audiences, openness=self.openness),
                store=self.store,
                link=self.link,
                targets=self.targets,
            )
        return ProposalMessage(answer) if answer is not None else None
