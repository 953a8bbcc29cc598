"""What is done about an incident, with every port in hand."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from bot.wiring import Core
from core.audience import incident_audience
from core.conversation import Audience
from core.errors import Unavailable
from core.incident import Incident
from core.ports import LanguageModel
from core.triage.model_documents import TeamDocuments
from handlers.explain_incident import explain_incident
from handlers.investigate_incident import investigate_incident, report_progress
from handlers.investigate_with_model import Progress
from handlers.negotiate_owner import Negotiator, Observe
from handlers.observe_incident import Readers, observe_incident
from handlers.post_message import Poster
from handlers.present_incident import ping_owner, present_incident
from handlers.triage_incident import triage_incident
from handlers.write_postmortem import write_postmortem

Negotiators = Callable[[Observe], Negotiator]
Investigate = Callable[[Incident, Audience], Awaitable[Incident]]


class Investigations:
    """Each takes an incident and who will read what is found, and returns the incident with what was found."""

    def __init__(self, core: Core, poster: Poster) -> None:
        self._core = core
        self._poster = poster
        self._judge = core.model if core.workspace.two_step else None
        self._negotiators = _negotiators(core.model)
        tools = core.tools
        self._readers = Readers(
            tools.logs,
            tools.metrics,
            tools.changes,
            core.workspace.dependencies,
            code=tools.code,
            toolboxes=tools.toolboxes,
            embedder=core.knowledge.embedder,
        )

    async def triage(self, incident: Incident, audience: Audience) -> Incident:
        """Who should own it; with a language model the teams negotiate."""
        return await self._triaged(incident, audience, self._negotiators)

    async def triage_at_once(self, incident: Incident, audience: Audience) -> Incident:
        """The same without asking the language model, whose managers take their time."""
        return await self._triaged(incident, audience, None)

    async def explain(self, incident: Incident, audience: Audience, progress: Progress | None = None) -> Incident:
        """Why it broke, and who should own it in the light of that."""
        core = self._core
        explained = await explain_incident(
            incident,
            self._readers,
            history=await asyncio.to_thread(core.history.readable_by, audience),
            store=core.store,
            clock=core.clock,
            model=core.model,
            progress=progress,
            teams=core.workspace.teams,
        )
        return await self.triage(explained, audience)

    async def explain_in_sight(self, incident: Incident, audience: Audience) -> Incident:
        """The same for an incident that is posted: its message says at every step what is being done."""

        async def progress(doing: str) -> None:
            await report_progress(incident.id, doing, store=self._core.store)
            with suppress(Unavailable):  # the next step says more; the work does not wait for a chat
                policy = self._core.workspace.policy
                await present_incident(incident.id, store=self._core.store, poster=self._poster, policy=policy)

        return await self.explain(incident, audience, progress)

    async def step(self, incident_id: str, investigate: Investigate) -> None:
        """One step of an incident's own investigation, whose findings stand where the incident is posted."""
        channels = self._core.workspace.channels
        await investigate_incident(
            incident_id,
            lambda incident: investigate(incident, incident_audience(incident, channels)),
            store=self._core.store,
        )

    async def present(self, incident_id: str) -> None:
        """Bring the chats up to date: the message, a ping if policy wants one, a postmortem once it is over."""
        core, poster = self._core, self._poster
        store, policy = core.store, core.workspace.policy
        await present_incident(incident_id, store=store, poster=poster, policy=policy)
        await ping_owner(incident_id, policy=policy, teams=core.workspace.teams, store=store, poster=poster)
        await write_postmortem(incident_id, store=store, poster=poster, public_url=core.settings.public_url)

    async def _triaged(self, incident: Incident, audience: Audience, negotiators: Negotiators | None) -> Incident:
        core = self._core
        history = await asyncio.to_thread(core.history.readable_by, audience)
        observe = partial(observe_incident, readers=self._readers, history=history, clock=core.clock)
        return await triage_incident(
            incident,
            teams=core.workspace.teams,
            history=history,
            store=core.store,
            clock=core.clock,
            owners=await core.owner_models.load(),
            negotiator=negotiators(observe) if negotiators else None,
            judge=self._judge,
        )


def _negotiators(model: LanguageModel | None) -> Negotiators | None:
    """Managers for one triage each; what they remember of the team documents they share. None without a model."""
    if model is None:
        return None
    documents = TeamDocuments(model)
    return lambda observe: Negotiator(model, documents, observe)
