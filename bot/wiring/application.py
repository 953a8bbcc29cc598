"""Wiring of settings, adapters and the core of the application by plain constructor calls."""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import aiohttp
from pydantic import SecretStr
from sqlalchemy.ext.asyncio import AsyncEngine
from threadpoolctl import threadpool_limits

from adapters.clock import SystemClock
from adapters.embeddings.server import SentenceTransformerEmbedder, ServerEmbedder
from adapters.fitting import apart, can_learn, fit_owners_apart
from adapters.model_formats import ENCODER, OWNER_MODEL, PAGE_MODEL, ArrayFile
from adapters.model_queue import ModelQueue
from adapters.outgoing import client_session
from adapters.section import Host
from adapters.store.database import migrate, open_database, run_when_available
from adapters.store.knowledge import CuratedSource, RemovedSource, SqlLearnedModel
from adapters.store.store import SqlStore
from adapters.tools.section import Tools, open_tools
from bot.config.settings import EMBEDDED, Settings, keep_private
from bot.config.workspace import Workspace, current_teams
from bot.wiring.catalogues import GrowingHistory, open_on_call, with_catalogues
from bot.wiring.models import open_exam, open_model
from core.knowledge.redactor import VERSION as REDACTION
from core.knowledge.redactor import Redactor
from core.knowledge.retriever import Retriever
from core.knowledge.terms import Encoder
from core.model.alert import AlertDelivery
from core.model.conversation import Place, Platform
from core.model.errors import ConfigurationError
from core.model.silences import incident_place, incident_places, routing_facts
from core.ports import (
    ChangingSource,
    Clock,
    Embedder,
    Ingestion,
    KnowledgeSource,
    LearnedStore,
    OnCall,
    OpenToAll,
    PassageIndex,
    Publisher,
)
from core.triage.owner_model import OwnerModel
from core.triage.paging import PageModel, fit_paging
from handlers.common.examine_model import ExaminedModel
from handlers.common.ports import OpenChannels, current_channels
from handlers.feedback.recalibrate import fit_triage
from handlers.incidents.suggestions import learn_pages
from handlers.knowledge.ingest_knowledge import IngestProgress, IngestReport, embed_passages, ingest_knowledge

MAX_LEFT_OUT = 200  # documents listed in the stored record of a source's ingestion


@dataclass(frozen=True, slots=True)
class Knowledge:
    """The corpus and the access to it."""

    sources: tuple[KnowledgeSource | ChangingSource, ...]
    index: PassageIndex
    encoders: LearnedStore[Encoder]
    embedder: Embedder | None
    retriever: Retriever
    chosen: Embedder | None  # the embedding model that somebody set: incidents are also compared by it


@dataclass(frozen=True, slots=True)
class Core:
    """State, knowledge and tools: what every command needs, without chats."""

    settings: Settings
    workspace: Workspace
    clock: Clock
    engine: AsyncEngine
    session: aiohttp.ClientSession
    store: SqlStore
    knowledge: Knowledge
    tools: Tools
    schedules: tuple[OnCall, ...]
    publishers: Mapping[str, Publisher]  # by the names of their targets
    history: GrowingHistory
    owner_models: LearnedStore[OwnerModel]
    page_models: LearnedStore[PageModel]
    model: ModelQueue | None  # None: the evidence engine works alone
    examined: ExaminedModel | None  # the same, for answers, causes and owners
    openness: Mapping[Platform, OpenToAll]  # of the channels of the chats that are on
    awaiting_index: asyncio.Lock = field(default_factory=asyncio.Lock)  # held by the ingestion that is next


@asynccontextmanager
async def open_core(settings: Settings, workspace: Workspace) -> AsyncGenerator[Core]:
    """Open the database, the index and the tools. Raises IndexUnavailable if another process holds the index."""
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    keep_private(settings.data_dir)
    async with AsyncExitStack() as stack:
        # Triage multiplies small matrices, for which BLAS threads cost more than they gain.
        stack.enter_context(threadpool_limits(1, user_api="blas"))
        engine = open_database(settings.database)
        stack.push_async_callback(engine.dispose)
        await run_when_available(engine, partial(migrate, engine))
        session = await stack.enter_async_context(client_session())
        clock = SystemClock()
        host = Host(settings, session, clock)
        workspace = await with_catalogues(workspace, host)
        store = SqlStore(engine)
        stack.push_async_callback(store.locks.close)
        openness = {
            chat.platform: OpenChannels(look_up, clock).is_open
            for chat in settings.chats
            if (look_up := chat.openness(host, engine)) is not None
        }
        knowledge = _knowledge(settings, workspace, host, engine, store, openness)
        stack.push_async_callback(knowledge.index.close)
        model = await stack.enter_async_context(open_model(settings, session, workspace.models.draws))
        examined = await stack.enter_async_context(open_exam(model, settings, workspace.models.trust()))
        past = [incident for section in workspace.sources for incident in section.past_incidents()]
        history = GrowingHistory(past, workspace.channels, workspace.teams, clock)
        await run_when_available(engine, partial(history.grow, store))
        yield Core(
            settings=settings,
            workspace=workspace,
            clock=clock,
            engine=engine,
            session=session,
            store=store,
            knowledge=knowledge,
            tools=open_tools(workspace.tools, host),
            schedules=open_on_call(workspace.on_call, workspace.teams, host),
            publishers={section.name: section.open(host) for section in workspace.filing},
            history=history,
            owner_models=SqlLearnedModel(engine, "owner model", OWNER_MODEL, clock)
            if is_shared(engine)
            else ArrayFile(settings.data_dir / "owners.npz", OWNER_MODEL),
            page_models=SqlLearnedModel(engine, "page model", PAGE_MODEL, clock)
            if is_shared(engine)
            else ArrayFile(settings.data_dir / "pages.npz", PAGE_MODEL),
            model=model,
            examined=examined,
            openness=openness,
        )


def _knowledge(
    settings: Settings,
    workspace: Workspace,
    host: Host,
    engine: AsyncEngine,
    store: SqlStore,
    openness: Mapping[Platform, OpenToAll],
) -> Knowledge:
    clock = host.clock
    sources = (*(section.open(host) for section in workspace.sources), CuratedSource(store, clock))
    index = _index(settings)
    encoders = (
        SqlLearnedModel(engine, "encoder", ENCODER, clock)
        if settings.qdrant_url and is_shared(engine)  # several replicas share the index
        else ArrayFile(settings.data_dir / "encoder.npz", ENCODER)
    )
    model = embedder(settings.embeddings, secret(settings.embeddings_api_key))
    chosen = None if settings.embeddings == EMBEDDED else model
    channels_now = partial(current_channels, channels=workspace.channels, openness=openness)
    retriever = Retriever(
        index,
        encoders,
        model,
        workspace.lexicon,
        channels_now,
        workspace.models.reranker and workspace.models.reranker.open(host),
    )
    return Knowledge(sources, index, encoders, model, retriever, chosen)


def is_shared(engine: AsyncEngine) -> bool:
    """Return whether several processes may use this database. A SQLite file has one."""
    return engine.dialect.name == "postgresql"


def _index(settings: Settings) -> PassageIndex:
    if settings.qdrant_url:
        try:
            from adapters.qdrant import QdrantIndex
        except ModuleNotFoundError:
            raise ConfigurationError(
                "PLUMBLINE_QDRANT_URL needs the Qdrant client: install plumbline-bot[qdrant]."
            ) from None

        return QdrantIndex.at(settings.qdrant_url, secret(settings.qdrant_api_key))
    from adapters.qdrant_edge import EdgeIndex

    return EdgeIndex(settings.data_dir / "index")


def embedder(model: str, api_key: str | None = None) -> Embedder | None:
    """Return the model with this name, in this folder or at this address; None for `none`.

    Old settings say `latent` and `words`.
    """
    if model in ("none", "latent"):
        return None
    if model in (EMBEDDED, "words"):
        from adapters.embeddings.embedded import EmbeddedEmbedder

        return EmbeddedEmbedder()
    if "://" in model:
        return ServerEmbedder(model, api_key or "")

    return SentenceTransformerEmbedder(model)


def _source_setting(workspace: Workspace, name: str) -> str:
    """Return a digest that changes exactly when the configuration of a source or of the redaction changes."""
    sections = [section.model_dump_json() for section in workspace.sources if section.name == name]
    parts = (REDACTION, *sections, *sorted(workspace.private_names))
    return hashlib.blake2b("\x00".join(parts).encode(), digest_size=8).hexdigest()


def secret(value: SecretStr | None) -> str | None:
    return value.get_secret_value() if value is not None else None


async def ingest(
    core: Core, on_progress: Callable[[IngestProgress], None] = lambda _: None, only: str = ""
) -> IngestReport:
    """Refresh the corpus, or only one source, and record the freshness of each source.

    Passages are found by their words at once, and by their meaning when the embedding model has read them. While it reads,
    others may write to the index.
    """
    knowledge, index_lock = core.knowledge, partial(core.store.lock, "write the index")
    async with AsyncExitStack() as stack:
        async with core.awaiting_index:
            await stack.enter_async_context(index_lock())
        report = await _ingest(core, on_progress, only)
    if knowledge.embedder is not None and not only:
        async with core.store.lock("embed passages"):
            await embed_passages(knowledge.index, knowledge.encoders, knowledge.embedder, on_progress, lock=index_lock)
    return report


async def learn_owners(core: Core) -> bool:
    """Fit the models that learn from closed incidents. Returns whether there were enough for that of owners."""
    await core.history.grow(core.store)
    if not can_learn():
        return False
    await learn_pages(
        core.history.episodes,
        models=core.page_models,
        fit_model=partial(apart, fit_paging),
        store=core.store,
        clock=core.clock,
    )
    return await fit_triage(
        core.history.incidents,
        teams=await current_teams(core.workspace),
        models=core.owner_models,
        fit=fit_owners_apart,
        store=core.store,
        clock=core.clock,
        embedder=core.knowledge.chosen,
    )


async def _ingest(core: Core, on_progress: Callable[[IngestProgress], None], only: str) -> IngestReport:
    knowledge = core.knowledge
    sources = [source for source in knowledge.sources if only in ("", source.name)]
    async with core.store.transaction() as transaction:
        before = {ingestion.source: ingestion.finished_at for ingestion in await transaction.ingestions.all()}
    # A configuration without any source is probably wrong, so it removes nothing.
    removed = before.keys() - {source.name for source in sources} if core.workspace.sources and not only else set[str]()
    report = await ingest_knowledge(
        [*sources, *map(RemovedSource, sorted(removed))],
        knowledge.index,
        knowledge.encoders,
        knowledge.embedder,
        on_progress,
        store=core.store,
        redact=redactor(core),
        setting=partial(_source_setting, core.workspace),
    )
    async with core.store.transaction() as transaction:
        for name in removed:
            await transaction.ingestions.forget(name)
    for source in sources:
        documents = len(await knowledge.index.content_hashes(source.name))
        failure, now = report.failed.get(source.name, ""), core.clock.now()
        # A source that could not be read keeps its age.
        finished_at = before.get(source.name) or now if failure else now
        left_out = tuple(f"{each.path}: {each.reason}" for each in report.left_out.get(source.name, ())[:MAX_LEFT_OUT])
        async with core.store.transaction() as transaction:
            await transaction.ingestions.record(Ingestion(source.name, finished_at, documents, failure, left_out))
    return report


def redactor(core: Core) -> Redactor:
    """Return the redactor, which removes names, addresses and secrets from everything that is kept."""
    from adapters.secret_detector import SecretPatterns

    return Redactor(SecretPatterns(), core.workspace.private_names)


def incident_platforms(settings: Settings) -> tuple[Platform, ...]:
    """Return the platforms on which incidents are posted, in order of preference."""
    chats, playgrounds = ([chat.platform for chat in each] for each in (settings.chats, settings.playgrounds))
    return (*chats, Platform.CONSOLE, *playgrounds)


def places_for(settings: Settings, workspace: Workspace) -> Callable[[AlertDelivery], tuple[Place, ...]]:
    """Return a function from a delivery to the places of its incident. Raises ConfigurationError if there is none."""
    platforms = incident_platforms(settings)
    incident_place(
        {}, workspace.routes, workspace.channels, platforms
    )  # a missing route is reported at start, not by the first alert
    return lambda delivery: (
        (delivery.at,)
        if delivery.at is not None
        else incident_places(routing_facts(delivery, workspace.teams), workspace.routes, workspace.channels, platforms)
    )


def operators_place(core: Core) -> Place | None:
    """Return the place for alerts about Plumbline itself; None if plumbline.yaml names no channel."""
    return channel_place(core.workspace.operators, core) if core.workspace.operators else None


def channel_place(name: str, core: Core) -> Place:
    """Return a channel of plumbline.yaml on the preferred of its platforms. Raises ConfigurationError if it has none."""
    ids = next(channel.ids for channel in core.workspace.channels if channel.name == name)
    platforms = incident_platforms(core.settings)
    if (platform := next((each for each in platforms if each in ids), None)) is None:
        raise ConfigurationError(f"The channel {name} in plumbline.yaml has no id on {' or '.join(platforms)}.")
    return Place(platform, ids[platform])


def channel_places(name: str, core: Core) -> tuple[Place, ...]:
    """Return a channel of plumbline.yaml on all chats that it is in, first on the preferred one.

    The local page counts only if the channel is in no chat. Raises ConfigurationError if it is nowhere.
    """
    first = channel_place(name, core)
    ids = next(channel.ids for channel in core.workspace.channels if channel.name == name)
    others = [each for each in incident_platforms(core.settings) if each != first.platform and each in ids]
    return (first, *(Place(each, ids[each]) for each in others if each != Platform.CONSOLE))


def new_incident_id() -> str:
    """Return an id that is short enough to be read aloud on a call."""
    return uuid.uuid4().hex[:10]
