"""Wiring of settings, adapters and the core of the application by plain constructor calls.

With it are the language model, and `sign_in`: the accounts of a company, with which people use the local page and their
agents `/mcp`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
from sqlalchemy.ext.asyncio import AsyncEngine
from threadpoolctl import threadpool_limits

from adapters.chat import CheckResult, secret
from adapters.clock import SystemClock
from adapters.embeddings.server import SentenceTransformerEmbedder, ServerEmbedder
from adapters.fitting import apart, can_learn, fit_owners_apart
from adapters.http import client_session
from adapters.llama.server import LlamaServer, OnReply
from adapters.model_formats import ENCODER, OWNER_MODEL, PAGE_MODEL, ArrayFile
from adapters.model_queue import ModelQueue
from adapters.section import Host, is_loopback
from adapters.signing_in.accounts import SIGNED_IN, Accounts
from adapters.signing_in.guard import SignInSection
from adapters.slack.settings import SlackSettings
from adapters.store.database import migrate, open_database, run_when_available
from adapters.store.knowledge import CuratedSource, RemovedSource, SqlLearnedModel
from adapters.store.store import SqlStore
from adapters.teams.settings import TeamsSettings
from adapters.tool_calls.server import ToolCallingServer
from adapters.tools.section import Tools, open_tools
from bot.config.settings import EMBEDDED, Settings, keep_private
from bot.config.workspace import Workspace, current_teams
from bot.tracing import ModelCollector, TokenTally, agent_operation, model_calls, registered
from bot.wiring.catalogues import GrowingHistory, open_on_call, with_catalogues
from core.answering.model_exam import EXAM_VERSION, Marks
from core.knowledge.redactor import VERSION as REDACTION
from core.knowledge.redactor import Redactor
from core.knowledge.retriever import Retriever
from core.knowledge.terms import Encoder
from core.model.alert import AlertDelivery
from core.model.conversation import Person, Place, Platform
from core.model.errors import ChatUnavailable, ConfigurationError, PlumblineError
from core.model.silences import incident_place, incident_places, routing_facts
from core.model_calls.choice import Trust, Use
from core.model_calls.metered_model import untraced
from core.ports import (
    ChangingSource,
    Clock,
    Embedder,
    Ingestion,
    KnowledgeSource,
    LanguageModel,
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

if TYPE_CHECKING:
    from adapters.signing_in.provider import Provider


def open_accounts(core: Core) -> Accounts | None:
    """Return the accounts; None if plumbline.yaml names no provider. Raises ConfigurationError."""
    section, settings = core.workspace.sign_in, core.settings
    if section is None:
        return None
    host = Host(settings, core.session, core.clock)
    return Accounts(
        section,
        _provider(section, host, settings),
        core.engine,
        public_url=settings.public_url,
        channels=core.workspace.channels,
        find_people=partial(people_of, host=host, id_claim=section.id_claim),
        clock=core.clock,
    )


def _provider(section: SignInSection, host: Host, settings: Settings) -> Provider:
    from adapters.openid import Issuer
    from adapters.signing_in.provider import Provider

    for address in (section.issuer, settings.public_url):
        if not (address.startswith("https://") or is_loopback(address)):
            raise ConfigurationError(
                f"sign_in: the `issuer` and PLUMBLINE_PUBLIC_URL must begin with https://, unlike {address!r}."
            )
    if section.agents_audience == section.client_id:
        raise ConfigurationError(
            "sign_in: `agents_audience` must not be the `client_id`, or what signs a person in would also be a token of /mcp."
        )
    described = f"{section.issuer.rstrip('/')}/.well-known/openid-configuration"
    issuer = Issuer("The provider of sign_in", section.issuer, described, host.clock, host.session)
    password = "" if section.client_certificate else settings.secret(section.client_secret_env, "sign_in")
    return Provider(section, password, issuer)


async def people_of(claims: dict[str, Any], address: str, host: Host, id_claim: str) -> list[Person]:
    """Return a person's identities in the chats that are on and tell them.

    Slack knows an address, if it allows us to ask (`users:read.email`); Teams has the ids of Entra ID.
    """
    from adapters.slack.client import ask, slack_client

    people, name = list[Person](), str(claims.get("name") or "")
    slack = host.settings.chat(SlackSettings)
    if slack.is_on and address:
        client = slack_client(secret(slack.bot_token), slack.api_url, host.session)
        with suppress(ChatUnavailable):  # nobody waits for Slack to sign in
            user: dict[str, Any] = (await ask(client, "users.lookupByEmail", email=address))[0].get("user") or {}
            people += [Person(Platform.SLACK, user["id"], name)] if user and not user.get("deleted") else []
    if host.settings.chat(TeamsSettings).is_on and id_claim == "oid" and "oid" in claims:
        people.append(Person(Platform.TEAMS, claims["oid"], name))
    return people


async def check_sign_in(section: SignInSection, settings: Settings, session: aiohttp.ClientSession) -> CheckResult:
    """Check that the provider answers, calls itself as plumbline.yaml does, and has keys."""
    what = f"sign-in with {section.issuer}"
    try:
        metadata = await _provider(section, Host(settings, session, SystemClock()), settings).issuer.metadata()
    except ConfigurationError as error:
        return CheckResult(what, "is not configured, and the bot does not start", str(error))
    except PlumblineError as error:
        return CheckResult(what, "does not work", str(error), fatal=False)
    ends = "" if "end_session_endpoint" in metadata else "; it does not say where to sign out"
    redirect = f"{settings.public_url.rstrip('/')}{SIGNED_IN}"
    return CheckResult(what, f"answers; its redirect address must be {redirect}{ends}")


EXAM_FILE = "language-model.json"  # in the data directory: the outcome of the exam


@asynccontextmanager
async def open_model(
    settings: Settings, session: aiohttp.ClientSession, draws: int = 1, *, calls_tools: bool = False
) -> AsyncGenerator[ModelQueue | None]:
    """Open the server in PLUMBLINE_LLM_URL behind its queue until the block ends; None if none is configured.

    Does not wait for the server: health checks find it when it comes up.
    """
    if not settings.llm_url:
        yield None
        return
    tally = TokenTally()
    server = llama_server(settings.llm_url, settings, session, tally.add, draws, calls_tools=calls_tools)
    queue = ModelQueue(server, server.check_health, server.address)
    with registered(ModelCollector(lambda: queue.status, tally)):
        async with queue.watched():
            yield queue


def llama_server(
    url: str,
    settings: Settings,
    session: aiohttp.ClientSession,
    on_reply: OnReply = lambda _: None,
    draws: int = 1,
    *,
    calls_tools: bool = False,
) -> LlamaServer:
    """Return one server, with what the settings say of the model."""
    return (ToolCallingServer if calls_tools else LlamaServer)(
        url,
        session,
        model=settings.llm_model,
        api_key=settings.llm_api_key.get_secret_value() if settings.llm_api_key else "",
        context=settings.llm_context,
        parallel=settings.llm_parallel,
        draws=draws,
        on_reply=on_reply,
        watch=model_calls(url) if settings.traces_model_calls else None,
    )


@asynccontextmanager
async def open_exam(
    model: LanguageModel | None, settings: Settings, trust: Mapping[Use, Trust]
) -> AsyncGenerator[ExaminedModel | None]:
    """Open the model for answers, causes and owners, trusted as the operator says; None without one.

    `trust` is that of plumbline.yaml; PLUMBLINE_LLM_USE holds for the uses that it does not name. A model that is to be
    measured takes an exam, whose outcome is stored in the data directory.
    """
    trusted = {use: trust.get(use, settings.llm_use) for use in Use}
    if model is None or set(trusted.values()) == {Trust.NEVER}:
        yield None
        return
    kept = KeptExam(settings.data_dir / EXAM_FILE, model)
    examined = ExaminedModel(
        model, kept.load, kept.save, trusted, agent_operation if settings.traces_model_calls else untraced
    )
    try:
        yield examined
    finally:
        await examined.close()


class KeptExam:
    """The outcome of a model's exam in a file."""

    def __init__(self, file: Path, model: LanguageModel) -> None:
        self._file = file
        self._model = model

    def load(self) -> Marks | None:
        """Return the marks; None if the file is missing, or is about another model or exam."""
        with suppress(OSError, ValueError, TypeError, KeyError):
            kept = json.loads(self._file.read_text("utf-8"))
            if (kept["model"], kept["version"]) == (self._model.name, EXAM_VERSION):
                return Marks(**kept["marks"])
        return None

    def save(self, marks: Marks) -> None:
        outcome = {"model": self._model.name, "version": EXAM_VERSION, "marks": asdict(marks)}
        with suppress(OSError):  # then it is examined again after the next start
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._file.write_text(json.dumps(outcome), "utf-8")


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
        model = await stack.enter_async_context(
            open_model(settings, session, workspace.models.draws, calls_tools=workspace.models.tool_calls)
        )
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

        return QdrantIndex.at(settings.qdrant_url, secret(settings.qdrant_api_key) or None)
    from adapters.qdrant_edge import EdgeIndex

    return EdgeIndex(settings.data_dir / "index")


def embedder(model: str, api_key: str | None = None) -> Embedder | None:
    """Return the model with this name, in this folder or at this address; None for `none`."""
    if model == "none":
        return None
    if model == EMBEDDED:
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
        core.history.whole.incidents,
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
