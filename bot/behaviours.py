"""Every behaviour with its ports in hand: which handler answers what."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial

from bot.wiring import Core, ingest, redactor
from bot.workflows import Behaviours
from core.audience import channel_audience
from core.command import CommandName
from core.conversation import Audience, Platform, Question
from core.curated import SOURCE as CURATED
from core.errors import Unavailable
from core.feedback import Feedback
from core.incident import Incident
from core.messages import Notice, NoticeKind, Verdict
from core.ports import ThreadReader
from handlers.accept_thanks import accept_thanks
from handlers.answer_question import answer_question
from handlers.correct_answer import confirm_correction, correct_in_words, propose_correction
from handlers.explain_incident import explain_incident
from handlers.investigate_incident import conclude_investigation, investigate_incident, report_progress
from handlers.investigate_on_demand import investigate_on_demand
from handlers.investigate_with_model import Progress
from handlers.observe_incident import Readers
from handlers.post_message import Poster
from handlers.present_incident import present_details, present_incident
from handlers.read_thread import in_context
from handlers.recalibrate import recalibrate
from handlers.record_feedback import record_feedback
from handlers.run_command import run_command
from handlers.show_help import show_help
from handlers.show_status import show_status
from handlers.triage_incident import triage_incident


def behaviours(core: Core, poster: Poster, threads: Mapping[Platform, ThreadReader]) -> Behaviours:
    """Every handler with its ports in hand. `threads` reads what people said to each other, where a platform can."""
    store, clock, knowledge = core.store, core.clock, core.knowledge
    channels, redact = core.workspace.channels, redactor(core)

    async def triage(incident: Incident, audience: Audience) -> Incident:
        history = await asyncio.to_thread(core.history.readable_by, audience)
        return await triage_incident(incident, teams=core.workspace.teams, history=history, store=store, clock=clock)

    readers = Readers(core.tools.logs, core.tools.metrics, core.tools.changes, core.workspace.dependencies)

    async def explain_and_revise(incident: Incident, audience: Audience, progress: Progress | None = None) -> Incident:
        explained = await explain_incident(
            incident,
            readers,
            history=await asyncio.to_thread(core.history.readable_by, audience),
            store=store,
            clock=clock,
            model=core.model,
            progress=progress,
        )
        return await triage(explained, audience)

    async def explain_in_sight(incident: Incident, audience: Audience) -> Incident:
        """The same for an incident that is posted: its message says at every step what is being done."""

        async def progress(doing: str) -> None:
            await report_progress(incident.id, doing, store=store)
            with suppress(Unavailable):  # the next step says more; the work does not wait for a chat
                await present_incident(incident.id, store=store, poster=poster)

        return await explain_and_revise(incident, audience, progress)

    async def step(incident_id: str, investigate: Callable[[Incident, Audience], Awaitable[Incident]]) -> None:
        """One step of an incident's own investigation, whose findings stand where the incident is posted."""
        await investigate_incident(
            incident_id,
            lambda incident: investigate(incident, channel_audience(incident.place, channels)),
            store=store,
        )

    answer = partial(
        answer_question,
        retriever=knowledge.retriever,
        store=store,
        poster=poster,
        clock=clock,
        model=core.model,
        help_desk=core.workspace.help_desk,
    )

    async def ask(question: Question) -> None:
        await answer(await in_context(question, threads=threads, store=store, redact=redact))

    services = {
        service for team in core.workspace.teams for service in team.services
    } | core.workspace.dependencies.keys()
    on_demand = partial(investigate_on_demand, services=services, store=store, poster=poster)
    commands: dict[CommandName, Callable[[Question], Awaitable[None]]] = {
        CommandName.ASK: ask,
        CommandName.TRIAGE: partial(on_demand, investigate=triage),
        CommandName.RCA: partial(on_demand, investigate=explain_and_revise),
        CommandName.STATUS: partial(show_status, channels=channels, store=store, index=knowledge.index, poster=poster),
        CommandName.CORRECT: partial(correct_in_words, store=store, poster=poster, redact=redact),
        CommandName.THANKS: partial(accept_thanks, poster=poster),
        CommandName.HELP: partial(show_help, poster=poster),
    }

    async def publish() -> None:
        await ingest(core, only=CURATED)

    label = partial(record_feedback, store=store, poster=poster)
    corrections: dict[Verdict, Callable[[Feedback], Awaitable[None]]] = {
        Verdict.CORRECTION: partial(propose_correction, store=store, poster=poster, redact=redact),
        Verdict.CONFIRM: partial(
            confirm_correction, store=store, poster=poster, lifetime=core.workspace.curated_for, publish=publish
        ),
    }

    async def take_feedback(feedback: Feedback) -> None:
        await corrections.get(feedback.verdict, label)(feedback)

    async def apologise(question: Question, reference: str) -> None:
        notice = Notice("Something went wrong while I worked on this.", NoticeKind.ERROR, reference)
        await poster.post_once(f"apology:{question.id}", question.place, notice)

    async def ingest_all() -> None:
        await ingest(core)

    return Behaviours(
        answer=partial(run_command, commands=commands),
        apologise=apologise,
        feedback=take_feedback,
        present=partial(present_incident, store=store, poster=poster),
        triage=partial(step, investigate=triage),
        explain=partial(step, investigate=explain_in_sight),
        conclude=partial(conclude_investigation, store=store),
        details=partial(present_details, store=store, poster=poster),
        ingest=ingest_all,
        recalibrate=partial(recalibrate, store=store, clock=clock),
    )
