"""Wiring of the configured chat platforms. Their SDKs are imported only if needed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass

from aiohttp import web

from adapters.store.conversations import SqlTeamsConversations
from bot.observability.telemetry import POSTS, timed
from bot.observability.tracing import span
from bot.wiring.application import Core, secret
from bot.wiring.ports import all_ports, home_pages
from core.model.conversation import MessageReference, Place, Platform
from core.model.messages import Message
from core.ports import FileReader, Inbox, Messenger, SignallingMessenger, ThreadReader
from handlers.common.ports import AudienceAt
from handlers.questions.ask_in_form import AskInForm, ShownAgain


@dataclass(frozen=True, slots=True)
class Chat:
    """A chat platform: its messenger, its request handler, and its readers of threads and files.

    `audience_at` returns the current audience of a place, None if plumbline.yaml tells it. `warm_up` loads everything
    that would delay the first post.
    """

    messenger: Messenger
    handle: Callable[[web.Request], Awaitable[web.StreamResponse]]
    threads: ThreadReader | None = None
    warm_up: Callable[[], Awaitable[object]] | None = None
    audience_at: AudienceAt | None = None
    files: FileReader | None = None


async def open_slack(core: Core, inbox: Inbox, stack: AsyncExitStack) -> Chat | None:
    """Open Slack until the stack is closed; None if it is not configured."""
    settings = core.settings
    if settings.slack_bot_token is None:
        return None
    from adapters.slack.client import slack_client
    from adapters.slack.inbound import SlackInbound
    from adapters.slack.messenger import SlackMessenger
    from adapters.slack.threads import SlackFiles, SlackThreads

    token = settings.slack_bot_token.get_secret_value()
    inbound = SlackInbound(
        bot_token=token,
        signing_secret=secret(settings.slack_signing_secret),
        api_url=settings.slack_api_url,
        app_token=secret(settings.slack_app_token),
        channels=core.workspace.channels,
        inbox=inbox,
        forms=AskInForm(all_ports(core)),
        home_of=home_pages(core),
        examples=core.workspace.examples,
        clock=core.clock,
    )
    stack.push_async_callback(inbound.close)
    await inbound.start()
    client = slack_client(token, settings.slack_api_url, core.session)
    return Chat(
        SlackMessenger(client),
        inbound.handle,
        SlackThreads(client),
        audience_at=inbound.audience_at,
        files=SlackFiles(core.session, token, settings.slack_api_url),
    )


async def open_teams(core: Core, inbox: Inbox, stack: AsyncExitStack) -> Chat | None:
    """Open Microsoft Teams until the stack is closed; None if it is not configured."""
    settings = core.settings
    if not settings.teams_enabled:
        return None
    from adapters.teams.cloud import PUBLIC_CLOUD, THIS_MACHINE
    from adapters.teams.connector import AccessToken, Connector, TeamsGuests
    from adapters.teams.events import TeamsAudiences
    from adapters.teams.history import PostedMessages, TeamsHistory
    from adapters.teams.inbound import TeamsInbound
    from adapters.teams.messenger import TeamsMessenger
    from adapters.teams.threads import TeamsFiles, TeamsThreads
    from adapters.teams.transport import open_transport

    references = SqlTeamsConversations(core.engine)
    cloud = THIS_MACHINE if settings.teams_anonymous else PUBLIC_CLOUD
    app_id, password = settings.teams_app_id, secret(settings.teams_app_password) or ""
    tenant_ids = settings.teams_tenant_ids
    token = AccessToken(app_id, password, tenant_ids, cloud, core.session) if app_id else None
    transport = open_transport(settings.teams_sdk, token)
    history = token and TeamsHistory(
        app_id=app_id,
        app_password=password,
        tenant_ids=tenant_ids,
        references=references,
        token=token,
        cloud=cloud,
        clock=core.clock,
        session=core.session,
    )
    messenger = TeamsMessenger(
        transport=transport,
        references=references,
        tenant_ids=tenant_ids,
        cloud=cloud,
        posted=PostedMessages(history, core.clock) if history else None,
    )
    guests = TeamsGuests(Connector(token, core.session), core.clock) if token else None

    audiences = TeamsAudiences(core.workspace.channels, guests, references)

    async def link_in_teams(reference: MessageReference) -> str:
        return await messenger.link(reference) if reference.place.platform is Platform.TEAMS else ""

    ports = all_ports(core)
    inbound = TeamsInbound(
        app_id=app_id,
        tenant_ids=tenant_ids,
        anonymous=settings.teams_anonymous,
        audiences=audiences,
        inbox=inbox,
        forms=AskInForm(ports),
        refresher=ShownAgain(
            core.store,
            core.workspace.policy,
            core.workspace.channels,
            link_in_teams,
            ports.filing.targets,
            audiences.at,
        ),
        references=references,
        clock=core.clock,
        session=core.session,
        cloud=cloud,
    )
    stack.push_async_callback(messenger.close)
    threads = TeamsThreads(history, core.clock) if history else None
    # Without an app id, Teams may never be used, so the SDK is loaded on first use.
    return Chat(
        messenger, inbound.handle, threads, transport.opened if app_id else None, audiences.at, TeamsFiles(core.session)
    )


class MeasuredMessenger:
    """Implements `core.ports.Messenger` and `SignallingMessenger` by delegation."""

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

    async def signal(self, place: Place, text: str) -> float:
        messenger = self._messenger
        return await messenger.signal(place, text) if isinstance(messenger, SignallingMessenger) else 0.0

    @contextmanager
    def _measured(self, call: str) -> Generator[None]:
        with span(f"{self._platform} {call}"), timed(POSTS, self._platform, call):
            yield
