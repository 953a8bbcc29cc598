"""Slack, as a chat. The SDK is loaded when it is opened."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from adapters.chat import Budget, Chat, ChatHost, CheckResult, secret
from adapters.section import Host
from adapters.slack.settings import SlackSettings
from core.model.conversation import Channel
from core.ports import OpenToAll

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

# https://docs.slack.dev/apis/web-api/rate-limits: one message per second in a channel; edits are tier 3, 50 per minute.
EDIT = 1.25  # seconds per edit, relative to a post


class SlackChat(SlackSettings):
    """Slack, with these settings."""

    def findings(self, host: Host, channels: Sequence[Channel]) -> AsyncIterator[CheckResult]:
        from adapters.slack.doctor import check_slack

        return check_slack(self, host, channels)

    def openness(self, host: Host, engine: AsyncEngine) -> OpenToAll:
        from adapters.slack.channels import is_open
        from adapters.slack.client import BotIdentity, slack_client

        client = slack_client(secret(self.bot_token), self.api_url, host.session)
        return partial(is_open, client=client, identity=BotIdentity(client))

    async def open(self, host: ChatHost) -> Chat:
        from adapters.posted.slack import SlackPosted
        from adapters.slack.channels import SlackFiles, SlackThreads
        from adapters.slack.client import slack_client
        from adapters.slack.inbound import SlackInbound
        from adapters.slack.messenger import SlackMessenger

        token = secret(self.bot_token)
        client = slack_client(token, self.api_url, host.session)
        inbound = SlackInbound(
            client=client,
            signing_secret=secret(self.signing_secret) or None,
            app_token=secret(self.app_token) or None,
            channels=host.channels,
            inbox=host.inbox,
            forms=host.forms,
            home_of=host.home_of,
            examples=host.examples,
            clock=host.clock,
        )
        host.stack.push_async_callback(inbound.close)
        await inbound.start()
        return Chat(
            SlackMessenger(client),
            inbound.handle,
            Budget(self.post_interval, EDIT * self.post_interval),
            SlackThreads(client),
            audience_at=inbound.audience_at,
            files=SlackFiles(host.session, token, self.api_url),
            channels=SlackPosted(client),
        )
