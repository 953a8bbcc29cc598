"""The ports that handlers are called with, and the doors that call them: the chats, and the MCP server for agents.

Their SDKs are loaded only if needed.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Collection, Generator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from adapters.chat import Chat, ChatHost, LocalRateLimiter, RateLimitedMessenger
from adapters.posted.changes import PostedChanges
from adapters.posted.recognise import recognise
from adapters.protected_resource import resource_at
from adapters.signing_in.accounts import Accounts
from adapters.store.work import SqlRateLimiter
from bot.config.settings import Settings, named_secret
from bot.config.workspace import current_teams, load_workspace
from bot.telemetry import POSTS, timed
from bot.tracing import span
from bot.wiring.application import Core, ingest, is_shared, open_core, redactor
from core.model.alert import AlertDelivery
from core.model.conversation import PUBLIC, Audience, Channel, MessageReference, Place, Platform, named_readers
from core.model.document import SOURCE as CURATED
from core.model.errors import ConfigurationError
from core.model.incident import Incident
from core.model.messages import Home, Message
from core.ports import (
    AgentCaller,
    AudienceAt,
    CardRefresher,
    FileReader,
    Inbox,
    Messenger,
    ThreadReader,
)
from handlers.common.ports import (
    AdoptionPorts,
    Chats,
    Company,
    FilingPorts,
    KnowledgePorts,
    Models,
    Ownership,
    PagingPorts,
    Past,
    Ports,
    Readers,
    no_queue,
)
from handlers.common.post_message import QueuedQuestions
from handlers.questions.doors import AnswerAgents, AskInForm, ShownAgain
from handlers.questions.show_home import home_of

if TYPE_CHECKING:
    from adapters.agents import AgentEndpoint


def all_ports(
    core: Core,
    messengers: Mapping[Platform, Messenger] | None = None,
    *,
    audiences: Mapping[Platform, AudienceAt] | None = None,
    threads: Mapping[Platform, ThreadReader] | None = None,
    files: Mapping[Platform, FileReader] | None = None,
    queued: QueuedQuestions | None = None,
) -> Ports:
    """Return the ports of the handlers. `queued` are the questions that wait for their work."""
    workspace = core.workspace
    return Ports(
        store=core.store,
        clock=core.clock,
        redact=redactor(core),
        chats=Chats(
            channels=workspace.channels,
            messengers=messengers or {},
            audiences=audiences or {},
            openness=core.openness,
            threads=threads or {},
            files=files or {},
            public_url=core.settings.public_url,
        ),
        company=Company(
            teams=workspace.teams,
            dependencies=workspace.dependencies,
            code=workspace.code,
            schedules=core.schedules,
            maintenance=workspace.maintenance,
            origins=workspace.origins,
        ),
        readers=Readers(
            core.tools.logs,
            core.tools.metrics,
            core.tools.changes,
            workspace.dependencies,
            code=core.tools.code,
            toolboxes=core.tools.toolboxes,
            embedder=core.knowledge.chosen,
            graphs=core.tools.graphs,
            owners=workspace.code,
            teams=workspace.teams,
            monitors=core.tools.monitors,
        ),
        knowledge=_knowledge(core),
        adoption=adoption_ports(core),
        past=Past(
            history_for=core.history.readable_by,
            reader_names=core.history.reader_names,
            learn=partial(core.history.catch_up, core.store),
        ),
        ownership=Ownership(
            owner_models=core.owner_models,
            embedder=core.knowledge.chosen,
            current_teams=partial(current_teams, workspace),
        ),
        models=Models(
            examined=core.examined,
            judge=core.model if workspace.confidence.estimator == "two-step" else None,
            limits=workspace.models.investigation,
            question=workspace.models.question,
            position=core.model.position if core.model else no_queue,
        ),
        paging=PagingPorts(
            policy=workspace.policy,
            holding=workspace.holding,
            page_models=core.page_models,
            pages=core.history.pages,
            messages_per_minute=workspace.messages_per_minute,
            joins_within=workspace.joins_within,
        ),
        filing=FilingPorts(targets=tuple(section.target for section in workspace.filing), publishers=core.publishers),
        queued=queued or QueuedQuestions(),
        settings=workspace_settings(core),
    )


def _knowledge(core: Core) -> KnowledgePorts:
    async def publish() -> None:
        await ingest(core, only=CURATED)

    return KnowledgePorts(
        retriever=core.knowledge.retriever,
        index=core.knowledge.index,
        help_desk=core.workspace.help_desk,
        lifetime=core.workspace.curated_for,
        publish=publish,
    )


def home_pages(core: Core) -> Callable[[Sequence[str], Audience], Awaitable[Home]]:
    """Return a function that builds the home page of a person with these names, for this audience."""
    return partial(home_of, ports=all_ports(core))


def workspace_settings(core: Core) -> tuple[tuple[str, str], ...]:
    """Return the settings that members of the workspace may see, as names and values."""
    workspace = core.workspace
    policy = workspace.policy
    public = [f"#{channel.name}" for channel in workspace.channels if not channel.private]
    return (
        (
            "Answers",
            f"quoted from the documents; where unsure, {core.model.name} chooses"
            if core.examined and core.model
            else "quoted from the documents",
        ),
        ("Phrase an owner or a cause as a question", _threshold("below", policy.ask_below)),
        ("Ping an owner", _threshold("above", policy.ping_owner_above)),
        ("Ping two teams if no owner is clear", "yes" if policy.ping_two_when_unsure else "no"),
        ("Lifetime of a confirmed correction", f"{workspace.curated_for.days} days"),
        ("Known channels", ", ".join(public) or "none"),
        ("Settings of one channel", "say “settings” in that channel"),
        *((("Local page", core.settings.public_url),) if core.settings.public_url else ()),
    )


def _threshold(side: str, share: float | None) -> str:
    return "never" if share is None else f"{side} a badge of {100 * share:.0f} %"


async def open_chats(core: Core, inbox: Inbox, stack: AsyncExitStack) -> dict[Platform, Chat]:
    """Open the configured chats, and the playgrounds of others, until the stack is closed."""
    ports, workspace = all_ports(core), core.workspace

    def refresher_of(link: Callable[[MessageReference], Awaitable[str]], audience_at: AudienceAt) -> CardRefresher:
        targets = ports.filing.targets
        return ShownAgain(core.store, workspace.policy, workspace.channels, link, targets, audience_at, core.openness)

    async def adopting() -> Collection[Place]:
        async with core.store.transaction() as transaction:
            return {*workspace.adopting, *await transaction.channel_settings.adopting()}

    host = ChatHost(
        settings=core.settings,
        session=core.session,
        clock=core.clock,
        channels=workspace.channels,
        examples=workspace.examples,
        adopting=adopting,
        inbox=inbox,
        forms=AskInForm(ports),
        home_of=home_pages(core),
        refresher_of=refresher_of,
        engine=core.engine,
        stack=stack,
    )
    return {chat.platform: await chat.open(host) for chat in (*core.settings.chats, *core.settings.playgrounds)}


def messengers_of(core: Core, chats: Mapping[Platform, Chat], page: Messenger) -> dict[Platform, Messenger]:
    """Return the messengers of the chats, each at its own rate, and of the local page."""
    limiter = SqlRateLimiter(core.engine) if is_shared(core.engine) else LocalRateLimiter()
    messengers: dict[Platform, Messenger] = {Platform.CONSOLE: MeasuredMessenger(Platform.CONSOLE, page)}
    return messengers | {
        platform: RateLimitedMessenger(MeasuredMessenger(platform, chat.messenger), chat.budget, limiter)
        for platform, chat in chats.items()
    }


def adoption_ports(core: Core) -> AdoptionPorts:
    return AdoptionPorts(recognise=recognise, configured=core.workspace.adopting)


def ports_with(
    chats: Mapping[Platform, Chat],
    messengers: Mapping[Platform, Messenger],
    core: Core,
    queued: QueuedQuestions,
    accept: Callable[[AlertDelivery], Awaitable[Incident | None]],
) -> Ports:
    """Return the ports of the handlers, with all that the chats can do. `accept` stores what a bot posted."""
    channels = {platform: chat.channels for platform, chat in chats.items() if chat.channels}
    services = core.workspace.spelling.values()
    names = {place: channel.name for channel in core.workspace.channels for place in channel.places}
    changes = [
        PostedChanges(names[place], place, channels[place.platform], services)
        for place in core.workspace.adopting
        if place.platform in channels
    ]
    ports = all_ports(
        core,
        messengers,
        audiences={platform: chat.audience_at for platform, chat in chats.items() if chat.audience_at},
        threads={platform: chat.threads for platform, chat in chats.items() if chat.threads},
        files={platform: chat.files for platform, chat in chats.items() if chat.files},
        queued=queued,
    )
    return replace(
        ports,
        adoption=replace(ports.adoption, channels=channels, accept=accept),
        readers=replace(ports.readers, changes=(*ports.readers.changes, *changes)),
    )


class MeasuredMessenger:
    """Implements `core.ports.Messenger` by delegation."""

    def __init__(self, platform: Platform, messenger: Messenger) -> None:
        self._platform = platform
        self._messenger = messenger

    async def post(self, place: Place, message: Message, intent: str) -> MessageReference:
        with self._measured("post"):
            return await self._messenger.post(place, message, intent)

    async def edit(self, reference: MessageReference, message: Message) -> None:
        with self._measured("edit"):
            await self._messenger.edit(reference, message)

    async def find(self, place: Place, intent: str) -> MessageReference | None:
        with self._measured("find"):
            return await self._messenger.find(place, intent)

    async def delete(self, reference: MessageReference) -> None:
        with self._measured("delete"):
            await self._messenger.delete(reference)

    async def link(self, reference: MessageReference) -> str:
        return await self._messenger.link(reference)

    @contextmanager
    def _measured(self, call: str) -> Generator[None]:
        with span(f"{self._platform} {call}"), timed(POSTS, self._platform, call):
            yield


async def open_agents(core: Core, accounts: Accounts | None, stack: AsyncExitStack) -> AgentEndpoint | None:
    """Serve MCP until the stack is closed, and return its endpoint; None if no agent is configured, and no account."""
    sections = core.workspace.agents
    if not sections and accounts is None:
        return None
    from adapters.agents import AgentEndpoint

    callers = {
        named_secret(section.token_env, section.name): agent_caller(
            section.name, section.channels, core.workspace.channels
        )
        for section in sections
    }
    if len(callers) < len(sections):
        raise ConfigurationError("Two agents have the same token. Give each agent its own.")
    endpoint = AgentEndpoint(
        agent_tools(core),
        callers,
        core.clock,
        resource_at(core.settings.public_url, accounts.section.issuer if accounts is not None else ""),
        accounts and accounts.caller,
    )
    await endpoint.start(stack)
    return endpoint


def agent_caller(name: str, channels: Sequence[str], known_channels: Sequence[Channel]) -> AgentCaller:
    """Return a caller that is shown what everybody in the workspace may read, and what these channels may read."""
    readers = named_readers(channels, known_channels) | {PUBLIC}
    return AgentCaller(name, Audience(readers, readers))


def agent_tools(core: Core) -> AnswerAgents:
    """Return the tools. They use no language model: the agent has its own, and need not wait for a second one."""
    return AnswerAgents(all_ports(replace(core, model=None, examined=None)))


async def run_mcp(settings: Settings, channel: str) -> None:
    """Serve MCP on standard input and output until the input ends. `channel` as for `plumbline ask`."""
    from adapters.agents import CALLER, agent_server

    workspace = load_workspace(settings.config)
    if channel and channel not in {each.name for each in workspace.channels}:
        raise ConfigurationError(f"There is no channel {channel} in plumbline.yaml.")
    async with open_core(settings, workspace) as core:
        if not await core.knowledge.index.count():
            sys.stderr.write("plumbline: Nothing is indexed yet. Run `plumbline ingest`.\n")
        caller = agent_caller("terminal", [channel] if channel else [], workspace.channels)
        CALLER.set(caller)
        await agent_server(agent_tools(core)).run_stdio_async()
