"""Slack, as a chat. The SDK is loaded when it is opened."""

from __future__ import annotations

from pydantic import Field, SecretStr, field_validator

from adapters.chat import Chat, ChatHost, ChatSettings, secret
from adapters.rate_limits import Budget
from adapters.section import is_loopback
from core.model.conversation import Platform
from core.model.errors import ConfigurationError

# https://docs.slack.dev/apis/web-api/rate-limits: one message per second in a channel; edits are tier 3, 50 per minute.
EDIT = 1.25  # seconds per edit, relative to a post


class SlackSettings(ChatSettings):
    """Slack, over HTTP or, with an app token, through Socket Mode."""

    platform = Platform.SLACK
    title = "Slack"
    path = "/slack/events"
    required = "SLACK_BOT_TOKEN and SLACK_SIGNING_SECRET"

    bot_token: SecretStr | None = Field(None, validation_alias="SLACK_BOT_TOKEN")
    signing_secret: SecretStr | None = Field(None, validation_alias="SLACK_SIGNING_SECRET")
    app_token: SecretStr | None = Field(None, validation_alias="SLACK_APP_TOKEN")
    api_url: str = Field("https://slack.com/api/", validation_alias="SLACK_API_URL")
    post_interval: float = Field(1.05, validation_alias="SLACK_POST_INTERVAL", ge=0)  # seconds, in a channel
    config_token: SecretStr | None = Field(None, validation_alias="SLACK_CONFIG_TOKEN")  # for `plumbline doctor` only

    @field_validator("api_url")
    @classmethod
    def _ends_with_slash(cls, url: str) -> str:
        return url if url.endswith("/") else f"{url}/"

    @property
    def is_on(self) -> bool:
        return self.bot_token is not None

    def check(self) -> None:
        if self.is_on and self.signing_secret is None and self.app_token is None:
            raise ConfigurationError(
                "SLACK_BOT_TOKEN is set: set SLACK_SIGNING_SECRET (HTTP) or SLACK_APP_TOKEN as well."
            )

    @property
    def way_in(self) -> str:
        is_over_http = self.is_on and self.signing_secret is not None and self.app_token is None
        return "SLACK_SIGNING_SECRET" if is_over_http else ""

    @property
    def is_proxied(self) -> bool:
        """A Slack API on this machine is an emulator, which needs no proxy."""
        return bool(self.way_in) and not is_loopback(self.api_url)

    async def open(self, host: ChatHost) -> Chat:
        from adapters.slack.client import slack_client
        from adapters.slack.inbound import SlackInbound
        from adapters.slack.messenger import SlackMessenger
        from adapters.slack.threads import SlackFiles, SlackThreads

        token = secret(self.bot_token)
        inbound = SlackInbound(
            bot_token=token,
            signing_secret=secret(self.signing_secret) or None,
            app_token=secret(self.app_token) or None,
            api_url=self.api_url,
            channels=host.channels,
            inbox=host.inbox,
            forms=host.forms,
            home_of=host.home_of,
            examples=host.examples,
            clock=host.clock,
        )
        host.stack.push_async_callback(inbound.close)
        await inbound.start()
        client = slack_client(token, self.api_url, host.session)
        return Chat(
            SlackMessenger(client),
            inbound.handle,
            Budget(self.post_interval, EDIT * self.post_interval),
            SlackThreads(client),
            audience_at=inbound.audience_at,
            files=SlackFiles(host.session, token, self.api_url),
        )
