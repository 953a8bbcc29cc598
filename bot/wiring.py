"""Settings → adapters → handlers → application: plain constructor calls, top to bottom."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

import aiohttp
from pydantic import SecretStr
from sqlalchemy.ext.asyncio import AsyncEngine

from adapters.clock import SystemClock
from adapters.encoder_file import EncoderFile
from adapters.fitting import fit_apart
from adapters.sources.past_incidents import load_past_incidents
from adapters.store.database import migrate, open_database
from adapters.store.store import SqlStore
from adapters.tools.change_files import ChangeFiles
from adapters.tools.log_files import LogFiles
from adapters.tools.metric_files import MetricFiles
from bot import workspace as sections
from bot.settings import Settings
from bot.source_sections import PastIncidentsSection, SourceSection
from bot.source_wiring import open_source
from bot.workflows import Behaviours
from bot.workspace import Workspace
from core.command import CommandName
from core.conversation import Place, Platform, Question
from core.incident import Incident, PastIncident
from core.knowledge.privacy.redactor import Redactor
from core.knowledge.retriever import Retriever
from core.messages import Notice, NoticeKind
from core.ports import (
    ChangeReader,
    ChangingSource,
    Clock,
    Embedder,
    EncoderStore,
    Ingestion,
    KnowledgeSource,
    LogReader,
    MetricReader,
    PassageIndex,
)
from core.routing import incident_place
from core.triage.history import IncidentHistory
from handlers.answer_question import answer_question
from handlers.explain_incident import explain_incident
from handlers.ingest_knowledge import IngestProgress, IngestReport, ingest_knowledge
from handlers.investigate_incident import conclude_investigation, investigate_incident
from handlers.investigate_on_demand import investigate_on_demand
from handlers.post_message import Poster
from handlers.present_incident import present_details, present_incident
from handlers.recalibrate import recalibrate
from handlers.record_feedback import record_feedback
from handlers.run_command import run_command
from handlers.show_help import show_help
from handlers.show_status import show_status
from handlers.triage_incident import triage_incident


@dataclass(frozen=True, slots=True)
class Knowledge:
    """The corpus, and the way into it."""

    sources: tuple[KnowledgeSource | ChangingSource, ...]
    index: PassageIndex
    encoders: EncoderStore
    embedder: Embedder | None
    retriever: Retriever


@dataclass(frozen=True, slots=True)
class Tools:
    """What the investigator may read."""

    logs: tuple[LogReader, ...]
    metrics: tuple[MetricReader, ...]
    changes: tuple[ChangeReader, ...]


@dataclass(frozen=True, slots=True)
class Core:
    """State, knowledge and tools: what every command needs, and no chat."""

    settings: Settings
    workspace: Workspace
    clock: Clock
    engine: AsyncEngine
    session: aiohttp.ClientSession
    store: SqlStore
    knowledge: Knowledge
    tools: Tools
    history: IncidentHistory


@asynccontextmanager
async def open_core(settings: Settings, workspace: Workspace) -> AsyncGenerator[Core]:
    """Open the database, the index and the tools. Raises IndexUnavailable if another process holds the index."""
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    async with AsyncExitStack() as stack:
        engine = open_database(settings.database)
        stack.push_async_callback(engine.dispose)
        await migrate(engine)
        session = await stack.enter_async_context(aiohttp.ClientSession())
        clock = SystemClock()
        knowledge = _knowledge(settings, workspace, session, clock)
        stack.push_async_callback(knowledge.index.close)
        yield Core(
            settings=settings,
            workspace=workspace,
            clock=clock,
            engine=engine,
            session=session,
            store=SqlStore(engine),
            knowledge=knowledge,
            tools=_tools(workspace.tools, session),
            history=IncidentHistory(_past_incidents(workspace.sources)),
        )


def _knowledge(settings: Settings, workspace: Workspace, session: aiohttp.ClientSession, clock: Clock) -> Knowledge:
    sources = tuple(open_source(section, settings, session, clock) for section in workspace.sources)
    index = _index(settings)
    encoders = EncoderFile(settings.data_dir / "encoder.npz")
    embedder = _embedder(settings)
    return Knowledge(sources, index, encoders, embedder, Retriever(index, encoders, embedder))


def _index(settings: Settings) -> PassageIndex:
    if settings.qdrant_url:
        from adapters.qdrant import QdrantIndex

        return QdrantIndex.at(settings.qdrant_url, secret(settings.qdrant_api_key))
    from adapters.qdrant_edge import EdgeIndex

    return EdgeIndex(settings.data_dir / "index")


def _embedder(settings: Settings) -> Embedder | None:
    if settings.embeddings == "latent":
        return None
    from adapters.embeddings import SentenceTransformerEmbedder

    return SentenceTransformerEmbedder(settings.embeddings)


def _past_incidents(source_sections: Sequence[SourceSection]) -> list[PastIncident]:
    return [
        incident
        for section in source_sections
        if isinstance(section, PastIncidentsSection)
        for incident in load_past_incidents(section.path)
    ]


def _tools(tool_sections: Sequence[sections.ToolSection], session: aiohttp.ClientSession) -> Tools:
    from adapters.tools.prometheus import Prometheus

    logs: list[LogReader] = []
    metrics: list[MetricReader] = []
    changes: list[ChangeReader] = []
    for section in tool_sections:
        match section:
            case sections.LogFilesTool():
                logs.append(LogFiles(section.name, section.path))
            case sections.MetricFilesTool():
                metrics.append(MetricFiles(section.name, section.path))
            case sections.ChangeFilesTool():
                changes.append(ChangeFiles(section.name, section.path))
            case sections.PrometheusTool():
                metrics.append(Prometheus(section.name, section.url, session))
    return Tools(tuple(logs), tuple(metrics), tuple(changes))


def secret(value: SecretStr | None) -> str | None:
    return value.get_secret_value() if value is not None else None


async def ingest(core: Core, on_progress: Callable[[IngestProgress], None] = lambda _: None) -> IngestReport:
    """Bring the corpus up to date and remember how fresh each source is."""
    from adapters.secret_detector import DetectSecrets

    knowledge = core.knowledge
    report = await ingest_knowledge(
        knowledge.sources,
        knowledge.index,
        knowledge.encoders,
        knowledge.embedder,
        on_progress,
        fit_apart,
        store=core.store,
        redact=Redactor(DetectSecrets(), core.workspace.private_names),
    )
    async with core.store.transaction() as transaction:
        before = {ingestion.source: ingestion.finished_at for ingestion in await transaction.ingestions.all()}
    for source in knowledge.sources:
        documents = len(await knowledge.index.content_hashes(source.name))
        failure, now = report.failed.get(source.name, ""), core.clock.now()
        # What could not be read is as old as it was.
        finished_at = before.get(source.name, now) if failure else now
        async with core.store.transaction() as transaction:
            await transaction.ingestions.record(Ingestion(source.name, finished_at, documents, failure))
    return report


def behaviours(core: Core, poster: Poster) -> Behaviours:
    """Every handler with its ports in hand."""
    store, clock, knowledge = core.store, core.clock, core.knowledge
    triage = partial(triage_incident, teams=core.workspace.teams, history=core.history, store=store, clock=clock)
    explain = partial(
        explain_incident,
        log_readers=core.tools.logs,
        metric_readers=core.tools.metrics,
        change_readers=core.tools.changes,
        dependencies=core.workspace.dependencies,
        history=core.history,
        store=store,
        clock=clock,
    )
    ask = partial(answer_question, retriever=knowledge.retriever, store=store, poster=poster, clock=clock)

    async def explain_and_revise(incident: Incident) -> Incident:
        return await triage(await explain(incident))

    services = {
        service for team in core.workspace.teams for service in team.services
    } | core.workspace.dependencies.keys()
    on_demand = partial(investigate_on_demand, services=services, store=store, poster=poster)
    commands: dict[CommandName, Callable[[Question], Awaitable[None]]] = {
        CommandName.ASK: ask,
        CommandName.TRIAGE: partial(on_demand, investigate=triage),
        CommandName.RCA: partial(on_demand, investigate=explain_and_revise),
        CommandName.STATUS: partial(show_status, store=store, index=knowledge.index, poster=poster),
        CommandName.HELP: partial(show_help, poster=poster),
    }

    async def apologise(question: Question, reference: str) -> None:
        notice = Notice("Something went wrong while I worked on this.", NoticeKind.ERROR, reference)
        await poster.post_once(f"apology:{question.id}", question.place, notice)

    async def ingest_all() -> None:
        await ingest(core)

    return Behaviours(
        answer=partial(run_command, commands=commands),
        apologise=apologise,
        feedback=partial(record_feedback, store=store, poster=poster),
        present=partial(present_incident, store=store, poster=poster),
        triage=partial(investigate_incident, investigate=triage, store=store),
        explain=partial(investigate_incident, investigate=explain_and_revise, store=store),
        conclude=partial(conclude_investigation, store=store),
        details=partial(present_details, store=store, poster=poster),
        ingest=ingest_all,
        recalibrate=partial(recalibrate, store=store, clock=clock),
    )


def incident_platforms(settings: Settings) -> tuple[Platform, ...]:
    """Where an incident is posted: the first platform that has the channel."""
    platforms = [Platform.SLACK] if settings.slack_enabled else []
    if settings.teams_app_id:
        platforms.append(Platform.TEAMS)
    platforms.append(Platform.CONSOLE)
    if settings.teams_anonymous:
        platforms.append(Platform.TEAMS)
    return tuple(platforms)


def place_for(core: Core) -> Callable[[dict[str, str]], Place]:
    """Labels of an alert → the channel its incident is posted in."""
    routes, channels = core.workspace.routes, core.workspace.channels
    return lambda labels: incident_place(labels, routes, channels, incident_platforms(core.settings))


def new_incident_id() -> str:
    """Short enough to be read aloud on a call."""
    return uuid.uuid4().hex[:10]
