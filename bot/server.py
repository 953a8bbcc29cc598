"""The running bot: chats, webhooks, workflows and schedules around one core."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial

import structlog
from aiohttp import web
from aiohttp.log import server_logger

from adapters.chat import CHATS, secret
from adapters.console.console import Console, SourceStatus
from adapters.console.messages import ConsoleMessenger, Live
from adapters.console.pages import ConsolePages
from adapters.section import LOOPBACK
from adapters.signing_in.accounts import Accounts
from adapters.store.conversations import SqlConsoleMessages
from adapters.store.database import run_when_available
from adapters.store.store import BackgroundStore
from bot.commands.records import record_start
from bot.config.section import FORMATS
from bot.tracing import StoreCollector, registered
from bot.web.routes import HEADERS_TIMEOUT, Refusals, Webhooks, build_app, is_server_fault
from bot.web.webhook_sources import webhook_sources
from bot.wiring.application import Core, channel_place, new_incident_id, open_accounts, places_for, redactor
from bot.wiring.ports import adoption_ports, messengers_of, open_agents, open_chats, ports_with
from bot.work import engine
from bot.work.engine import NOT_CHECKED, Replica, new_replica
from bot.work.inbox import ANSWER, QUESTION, BatchWriter, Dispatcher, TaskInbox
from bot.work.schedules import INGEST, Job, keep_schedules, recurring_jobs
from bot.work.workflows import Workflows
from core.knowledge.redactor import Redactor
from core.knowledge.retriever import Retriever
from core.model.alert import AlertDelivery
from core.model.conversation import Audience
from core.model.document import SOURCE as CURATED
from core.model.errors import PlumblineError, Unavailable
from core.model.incident import Incident
from core.model_calls.choice import Use
from core.ports import Task
from handlers.common.examine_model import ExaminedModel
from handlers.common.ports import Ports
from handlers.common.post_message import QueuedQuestions
from handlers.incidents.adopt_alerts import take_posted
from handlers.incidents.arrange_incident import is_anything_open
from handlers.incidents.hold_incident import is_anything_held
from handlers.incidents.open_incident import open_incidents
from handlers.questions.closed_chats import find_closed_chats
from handlers.questions.redeliver import ask_to_redeliver

NO_ANSWER = "The database or the index does not answer: the log says why."  # to whoever asks whether it is ready
SWITCHING = 0.0005  # seconds between thread switches; short, because acknowledgements wait for several of them during an analysis

log = structlog.get_logger()

Replays = Mapping[str, Callable[[], Awaitable[None]]]


@asynccontextmanager
async def running(core: Core, replays: Replays | None = None) -> AsyncGenerator[str]:
    """Serve until the block ends. Yields the address of the local page."""
    for fault in (*FORMATS.faults().values(), *CHATS.faults().values()):
        log.warning("plugin_left_out", reason=fault)
    async with AsyncExitStack() as stack:
        name = new_replica()
        queued = QueuedQuestions()

        async def start(task: Task) -> Awaitable[object]:
            if task.workflow == ANSWER:  # another process may have accepted the question
                queued.arrived(QUESTION.validate_python(task.payload))
            return await flows.start(task)

        dispatcher = Dispatcher(core.store, name, start)
        accept = _acceptor(core, dispatcher)
        take = partial(take_posted, adoption=adoption_ports(core), accept=accept, store=core.store)
        inbox = TaskInbox(core.store, dispatcher.notify, queued.arrived, redactor(core), take)
        webhooks = _webhooks(core, accept)
        live, messages = Live(), SqlConsoleMessages(core.engine)
        chats = await open_chats(core, inbox, stack)
        messengers = messengers_of(core, chats, ConsoleMessenger(messages, live, core.clock))

        engine.configure(core.settings.workflow_database, name)
        background = replace(core, store=BackgroundStore(core.store))
        ports = ports_with(chats, messengers, background, queued, accept)
        flows = Workflows(background, ports, asyncio.get_running_loop())
        replica = Replica(name, core.store, core.clock, flows.running)
        await run_when_available(core.engine, replica.join)
        await run_when_available(core.engine, partial(engine.launch, core.settings.workflow_database, name))
        stack.push_async_callback(engine.stop)
        stack.push_async_callback(flows.stop)

        accounts = open_accounts(core)
        figures = StoreCollector(core.store, core.clock)
        stack.enter_context(registered(figures))
        refusals = Refusals(core.settings.data_dir, redactor(core))
        stack.callback(refusals.flush)
        app = build_app(
            webhooks=webhooks,
            chats={platform: chat.handle for platform, chat in chats.items()},
            playgrounds=[chat.platform for chat in core.settings.playgrounds],
            agents=await open_agents(core, accounts, stack),
            ready=partial(_missing, core, replica),
            closed=partial(find_closed_chats, core.store),
            add_console=_pages(
                core,
                ports,
                accounts,
                inbox,
                messages,
                live,
                retry=partial(_redeliver, core, dispatcher),
                replays=replays or {},
            ).add_routes,
            refresh_metrics=figures.refresh,
            is_page_guarded=core.settings.console_token is not None or accounts is not None,
            is_scraped=core.settings.host not in LOOPBACK,
            refusals=refusals,
        )
        started = partial(record_start, core.settings, name, store=core.store, clock=core.clock)
        await run_when_available(core.engine, started)
        following = asyncio.create_task(queued.follow(ports.poster))
        stack.callback(following.cancel)
        await _start_background(core, dispatcher, replica, stack)
        yield await _listen(app, core, stack)


def _acceptor(core: Core, dispatcher: Dispatcher) -> Callable[[AlertDelivery], Awaitable[Incident | None]]:
    writer = BatchWriter(
        partial(
            open_incidents,
            store=core.store,
            places_for=places_for(core.settings, core.workspace),
            new_id=new_incident_id,
            redact=redactor(core),
            spelling=core.workspace.spelling,
        )
    )

    async def accept(delivery: AlertDelivery) -> Incident | None:
        incident = await writer.take(delivery)
        dispatcher.notify()
        return incident

    return accept


def _webhooks(core: Core, accept: Callable[[AlertDelivery], Awaitable[Incident | None]]) -> Webhooks:
    async def accepted(delivery: AlertDelivery) -> str | None:
        incident = await accept(delivery)
        return incident.id if incident else None

    sources = webhook_sources(core.workspace.webhooks)
    return Webhooks(sources, accepted, secret(core.settings.webhook_secret) or None, core.clock)


def _pages(
    core: Core,
    ports: Ports,
    accounts: Accounts | None,
    inbox: TaskInbox,
    messages: SqlConsoleMessages,
    live: Live,
    *,
    retry: Callable[[str], Awaitable[bool]],
    replays: Replays,
) -> ConsolePages:
    console = Console(
        messages=messages,
        live=live,
        inbox=inbox,
        store=core.store,
        count_passages=core.knowledge.index.count,
        document=ports.knowledge.retriever.page,
        sources_status=partial(_sources_status, core),
        all_channels=core.workspace.channels,
        channels_now=ports.chats.channels_named,
        workspace_name=core.workspace.name,
        examples=core.workspace.examples,
        clock=core.clock,
        replays=replays or {},
    )
    return ConsolePages(console, retry, secret(core.settings.console_token) or None, accounts)


async def _redeliver(core: Core, dispatcher: Dispatcher, intent: str) -> bool:
    is_asked = await ask_to_redeliver(intent, store=core.store)
    dispatcher.notify()
    return is_asked


async def serve(core: Core, on_ready: Callable[[str], None], replays: Replays | None = None) -> None:
    """Serve until SIGINT or SIGTERM."""
    sys.setswitchinterval(SWITCHING)
    stop = asyncio.Event()
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(signal_number, stop.set)
    async with running(core, replays) as address:
        gc.freeze()  # permanent objects are excluded from garbage collection, which would take half a second each time
        on_ready(address)
        await stop.wait()


async def _start_background(core: Core, dispatcher: Dispatcher, replica: Replica, stack: AsyncExitStack) -> None:
    async def accept(task: Task) -> bool:
        async with core.store.transaction() as transaction:
            is_new = await transaction.tasks.add(task)
        dispatcher.notify()
        return is_new

    jobs = recurring_jobs(core.workspace)
    for job in jobs:
        if job.subject:
            channel_place(job.subject, core)  # a channel that nobody can post in is reported now
    schedules = partial(
        keep_schedules,
        jobs,
        accept,
        core.clock,
        is_anything_held=partial(is_anything_held, store=core.store),
        is_anything_open=partial(is_anything_open, store=core.store, clock=core.clock),
    )
    await run_when_available(core.engine, partial(_read_sources, core, jobs))
    dispatcher.notify()
    serving = [
        asyncio.create_task(work)
        for work in (
            dispatcher.serve(),
            replica.serve(),
            core.history.follow(BackgroundStore(core.store)),
            schedules(),
            _warm_up(core, replica),
        )
    ]

    async def stop() -> None:
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        await dispatcher.drain()

    stack.push_async_callback(stop)


async def _warm_up(core: Core, replica: Replica) -> None:
    await replica.checked()  # readiness is reported before the slow part
    try:
        await warm_up(core.knowledge.retriever, redactor(core), core.examined)
    except Exception:  # the next question only takes a little longer
        log.exception("warming up failed")


async def _read_sources(core: Core, jobs: Sequence[Job]) -> None:
    """Queue the ingestion of all sources at start, once for replicas that start together or repeatedly.

    Marks a missed ingestion as done, because this one replaces it.
    """
    now = core.clock.now()
    missed = [task for job in jobs if job.workflow == INGEST and (task := job.latest(now))]
    async with core.store.transaction() as transaction:
        await transaction.tasks.add(
            Task(
                f"{INGEST}:{now:%Y-%m-%dT%H:%M}:{hashlib.sha256(repr(core.workspace.sources).encode()).hexdigest()[:8]}",
                INGEST,
                INGEST,
                {},
            )
        )
        await transaction.tasks.end([task.key for task in missed if await transaction.tasks.add(task)])


async def _listen(app: web.Application, core: Core, stack: AsyncExitStack) -> str:
    server_logger.addFilter(is_server_fault)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=2.0, keepalive_timeout=HEADERS_TIMEOUT)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    site = web.TCPSite(runner, core.settings.host, core.settings.port)
    try:
        await site.start()
    except OSError as error:
        raise PlumblineError(
            f"Port {core.settings.port} on {core.settings.host} cannot be used: {error.strerror}. Set PLUMBLINE_PORT."
        ) from error
    return "http://{}:{}/".format(*runner.addresses[0][:2])


async def _sources_status(core: Core) -> list[SourceStatus]:
    async with core.store.transaction() as transaction:
        read = {ingestion.source: ingestion for ingestion in await transaction.ingestions.all()}
    places = {section.name: f"{section.label} {section.place}" for section in core.workspace.sources}
    return [
        SourceStatus(
            name=name,
            reads=place,
            documents=read[name].documents if name in read else 0,
            read_at=read[name].finished_at if name in read else None,
            failure=read[name].failure if name in read else "",
            left_out=read[name].left_out if name in read else (),
        )
        for name, place in (places | {CURATED: "answers that people gave and confirmed"}).items()
    ]


async def _missing(core: Core, replica: Replica) -> str:
    """Return what is missing, without the names of servers: everybody may ask."""
    try:
        async with core.store.transaction() as transaction:
            await transaction.ingestions.all()
        indexed = await core.knowledge.index.count()
    except Unavailable as error:
        log.warning("not ready", reason=str(error))
        return NO_ANSWER
    if replica.trouble:
        return NOT_CHECKED if replica.trouble == NOT_CHECKED else NO_ANSWER
    return "" if indexed or not core.workspace.sources else "nothing is indexed yet"


async def warm_up(retriever: Retriever, redact: Redactor, examined: ExaminedModel | None) -> None:
    """Load the secret detector, and the encoder of the corpus, and start the model's exam."""
    if examined is not None:
        examined.skill(Use.ANSWERS)  # starts an exam if it is not known yet
    await asyncio.to_thread(redact.findings, "ready", ())
    with suppress(PlumblineError):  # reported to the first person who asks
        await retriever.retrieve("ready", Audience(), 1)
