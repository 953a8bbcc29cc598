"""The settings of Slack."""

from __future__ import annotations

from pydantic import Field, SecretStr, field_validator

from adapters.chat import ChatSettings
from adapters.section import is_loopback
from core.model.conversation import Platform
from core.model.errors import ConfigurationError


class SlackSettings(ChatSettings):
    """Slack, over HTTP or, with an app token, through Socket Mode."""

    platform = Platform.SLACK
    title = "Slack"
    path = "/slack/events"
    required = ("SLACK_BOT_TOKEN", "SLACK_SIGNING_SECRET")

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
