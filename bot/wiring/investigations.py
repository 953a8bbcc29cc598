"""Wiring of the investigation of incidents."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial

import structlog

from bot.config.workspace import current_teams
from bot.wiring.application import Core, redactor
from core.incidents.thread_notes import with_note
from core.model.audience import incident_audience
from core.model.conversation import Audience, Place
from core.model.errors import ChatBusy, MessageNotFound, Unavailable, Undeliverable
from core.model.incident import Incident, ThreadNote
from core.ports import LanguageModel
from core.rca.observations import Observations
from core.triage.model_managers import TeamDocuments
from handlers.incidents.arrange_incident import Surroundings, arrange_incident, watch_incidents
from handlers.incidents.check_firing import reason_to_stop
from handlers.incidents.explain_incident import LOOKS_CLOSER, Show, explain_incident
from handlers.incidents.find_runbook import find_runbook
from handlers.incidents.investigate_incident import investigate_incident, is_under_way, report_progress, save_findings
from handlers.incidents.investigate_with_model import Progress
from handlers.incidents.judge_page import judge_page
from handlers.incidents.keep_quiet import hold_incident, is_held
from handlers.incidents.negotiate_owner import Negotiator, Observe
from handlers.incidents.observe_incident import Readers, observe_incident
from handlers.incidents.ping_owner import ping_owner
from handlers.incidents.present_incident import present_incident, update_details
from handlers.incidents.suggest_duplicate import suggest_duplicate
from handlers.incidents.suggest_severity import suggest_severity
from handlers.incidents.triage_incident import triage_incident
from handlers.incidents.update_incident import update_incident
from handlers.incidents.write_postmortem import write_postmortem
from handlers.questions.post_message import Poster

log = structlog.get_logger()

Negotiators = Callable[[Observe], Negotiator]
Investigate = Callable[[Incident, Audience], Awaitable[Incident]]


class Investigations:
    """Investigation steps.

    Each takes an incident and the audience of its findings, and returns the updated incident.
    """

    def __init__(self, core: Core, poster: Poster) -> None:
        self._core = core
        self._poster = poster
        self._judge = core.model if core.workspace.two_step else None
        self._negotiators = _negotiators(core.model)
        self._around = Surroundings(
            core.workspace.channels,
            core.workspace.teams,
            core.workspace.dependencies,
            core.workspace.maintenance,
            core.tools.monitors,
        )
        tools = core.tools
        self._readers = Readers(
            tools.logs,
            tools.metrics,
            tools.changes,
            core.workspace.dependencies,
            code=tools.code,
            toolboxes=tools.toolboxes,
            embedder=core.knowledge.embedder,
            graphs=tools.graphs,
            owners=core.workspace.code,
            teams=core.workspace.teams,
        )

    async def triage(self, incident: Incident, audience: Audience, show: Show | None = None) -> Incident:
        """Find the owner by negotiation of the teams, played by the language model if there is one.

        `show` receives the evidence-only result before the model is asked.
        """
        if show is not None and self._core.model is not None:
            await show(await self.triage_at_once(incident, audience))
        return await self._triaged(incident, audience)

    async def triage_with_progress(self, incident: Incident, audience: Audience) -> Incident:
        """Triage a posted incident, and show the evidence-only result while the model works."""
        return await self.triage(incident, audience, partial(self._show, read=incident))

    async def triage_at_once(self, incident: Incident, audience: Audience) -> Incident:
        """Triage without the slow parts: the language model and the teams' monitoring."""
        return await self._triaged(incident, audience, asks=False, looks=False)

    async def explain(
        self,
        incident: Incident,
        audience: Audience,
        progress: Progress | None = None,
        show: Show | None = None,
        over: str = "",
    ) -> Incident:
        """Find the cause, and revise the owner accordingly.

        `over` says why a long analysis is not worthwhile; the language model is then not used. `show` receives the
        interim results before the model analyses the cause, and before it proposes the owner.
        """

        async def show_owned(explained: Incident) -> None:
            if show is not None:
                await show(await self.triage_at_once(explained, audience))

        core = self._core
        model = core.model if not over else None
        explained = await explain_incident(
            incident,
            self._readers,
            history=await asyncio.to_thread(core.history.readable_by, audience),
            store=core.store,
            clock=core.clock,
            model=model,
            progress=progress,
            show=show_owned,
            teams=core.workspace.teams,
            redact=redactor(core),
        )
        cut_short = over if core.model is not None else ""
        if model is not None:
            await show_owned(explained)
        return await self._triaged(replace(explained, cut_short=cut_short), audience, asks=not over)

    async def explain_with_progress(self, incident: Incident, audience: Audience) -> Incident:
        """Explain a posted incident, and show the current activity in its message.

        The evidence-only result is shown first, and replaced by the model's result if there is one.
        """

        async def progress(doing: str) -> None:
            await report_progress(incident.id, doing, store=self._core.store)
            await self._present_meanwhile(incident.id)

        over = await reason_to_stop(incident, self._around.monitors)
        return await self.explain(incident, audience, progress, show=partial(self._show, read=incident), over=over)

    async def step(self, incident_id: str, investigate: Investigate, *, requested: bool = False) -> None:
        """Run one step of an incident's own investigation and save its findings.

        Skip silenced and merged incidents unless a person requested the step (`requested=True`). The skipped work is done
        when the incident is shown on its own.
        """
        channels = self._core.workspace.channels

        async def looked_into(incident: Incident) -> Incident:
            is_alone = incident.silenced is None and incident.absorbed is None
            may_go_on = is_alone or requested
            return await investigate(incident, incident_audience(incident, channels)) if may_go_on else incident

        await investigate_incident(incident_id, looked_into, store=self._core.store)

    async def recheck(self, incident_id: str, note: ThreadNote) -> None:
        """Investigate an incident again with a remark from its thread."""
        await update_incident(incident_id, lambda latest: with_note(latest, note), self._core.store)
        await self.step(incident_id, self.explain_with_progress, requested=True)

    async def observe(self, incident: Incident) -> Observations:
        """Read the tools around an incident, with the history that its audience may read."""
        audience = incident_audience(incident, self._core.workspace.channels)
        history = await asyncio.to_thread(self._core.history.readable_by, audience)
        return await observe_incident(incident, self._readers, history=history, clock=self._core.clock)

    async def present(self, incident_id: str) -> None:
        """Update the chats: the message, a ping if the policy wants one, and a postmortem once it is resolved."""
        core, poster = self._core, self._poster
        store, policy = core.store, core.workspace.policy
        try:
            await self._present(incident_id)
        except ChatBusy:
            if await is_under_way(incident_id, store=store):
                return  # the investigation goes on, and its last step shows everything
            raise
        if await is_held(incident_id, store=store, clock=core.clock):
            return
        await ping_owner(
            incident_id,
            policy=policy,
            teams=core.workspace.teams,
            store=store,
            poster=poster,
            clock=core.clock,
            schedules=core.schedules,
        )
        await update_details(incident_id, store=store, poster=poster)
        await write_postmortem(incident_id, store=store, poster=poster, public_url=core.settings.public_url)

    async def watch(self) -> None:
        """Update open incidents whose silence has ended or whose parent was resolved."""
        await watch_incidents(self._around, store=self._core.store, clock=self._core.clock)

    async def _show(self, found: Incident, read: Incident) -> None:
        """Save interim findings and update the message while the language model works."""
        await save_findings(replace(found, stage=read.stage), read, progress=LOOKS_CLOSER, store=self._core.store)
        await self._present_meanwhile(read.id)

    async def _present_meanwhile(self, incident_id: str) -> None:
        """Update the message, ignoring chat errors: the next step shows more, and reports errors."""
        with suppress(Unavailable, Undeliverable, MessageNotFound):
            await self._present(incident_id)

    async def _present(self, incident_id: str) -> None:
        core = self._core
        arranged = await arrange_incident(incident_id, self._around, store=core.store, clock=core.clock)
        await self._judge_page(arranged)
        await present_incident(
            incident_id,
            store=core.store,
            poster=self._poster,
            clock=core.clock,
            policy=core.workspace.policy,
            channels=core.workspace.channels,
            holds=self._holds,
            targets=core.filing.targets,
        )

    async def _holds(self, incident: Incident, place: Place) -> bool:
        now = self._core.clock.now()
        return incident.is_held_back(now) or await hold_incident(
            incident, place, store=self._core.store, clock=self._core.clock
        )

    async def _judge_page(self, incident: Incident) -> None:
        """Judge whether the incident needs a person. Without a judgement, it is posted as ever."""
        core = self._core
        try:
            await judge_page(
                incident,
                models=core.page_models,
                history=core.history.pages,
                readers=core.tools.changes,
                holding=core.workspace.holding,
                channels=core.workspace.channels,
                store=core.store,
                clock=core.clock,
            )
        except Unavailable:
            raise
        except Exception:  # a bug here must not keep an incident from being posted
            log.exception("no judgement whether a person is needed", incident=incident.id)

    async def _triaged(
        self, incident: Incident, audience: Audience, *, asks: bool = True, looks: bool = True
    ) -> Incident:
        """Return the incident after triage. `asks` uses the language model, `looks` the teams' monitoring."""
        core = self._core
        history = await asyncio.to_thread(core.history.readable_by, audience)
        observe = partial(observe_incident, readers=self._readers, history=history, clock=core.clock)
        model = core.model if asks else None
        incident = await suggest_severity(incident, history=history, store=core.store, clock=core.clock, model=model)
        incident = await suggest_duplicate(
            incident,
            audience=audience,
            channels=core.workspace.channels,
            dependencies=core.workspace.dependencies,
            store=core.store,
            clock=core.clock,
            model=model,
        )
        incident = await triage_incident(
            incident,
            teams=await current_teams(core.workspace),
            history=history,
            store=core.store,
            clock=core.clock,
            owners=await core.owner_models.load(),
            negotiator=self._negotiators(observe) if asks and self._negotiators else None,
            judge=self._judge if asks else None,
            schedules=core.schedules,
            observe=observe if looks else None,
            code=core.workspace.code,
            embedder=core.knowledge.embedder,
        )
        return await find_runbook(incident, retriever=core.knowledge.retriever, audience=audience)


def _negotiators(model: LanguageModel | None) -> Negotiators | None:
    """Return a factory of one negotiator per triage; they share the team documents. None without a model."""
    if model is None:
        return None
    documents = TeamDocuments(model)
    return lambda observe: Negotiator(model, documents, observe)
