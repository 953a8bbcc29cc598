"""Settings from environment variables, which are read only here.

The files of the workspace that they name are for the bot's user alone.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from stat import S_IMODE
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from core.model.errors import ConfigurationError
from core.model_calls.choice import Trust

EMBEDDED = "all-MiniLM-L6-v2"  # the embedding model that comes with the bot
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class Settings(BaseSettings):
    """The settings of the operator. Every field is optional; docs/configuration.md describes each."""

    model_config = SettingsConfigDict(frozen=True, extra="ignore", populate_by_name=True, env_ignore_empty=True)

    host: str = Field("127.0.0.1", validation_alias="PLUMBLINE_HOST")
    port: int = Field(8080, validation_alias="PLUMBLINE_PORT", ge=0, le=65535)
    data_dir: Path = Field(Path("plumbline-data"), validation_alias="PLUMBLINE_DATA_DIR")
    database_url: str = Field("", validation_alias="PLUMBLINE_DATABASE_URL")
    # for one start after an update whose earlier version left unreadable work
    begin_anew: bool = Field(default=False, validation_alias="PLUMBLINE_BEGIN_ANEW")
    qdrant_url: str = Field("", validation_alias="PLUMBLINE_QDRANT_URL")
    qdrant_api_key: SecretStr | None = Field(None, validation_alias="PLUMBLINE_QDRANT_API_KEY")
    embeddings: str = Field(EMBEDDED, validation_alias="PLUMBLINE_EMBEDDINGS")
    embeddings_api_key: SecretStr | None = Field(None, validation_alias="PLUMBLINE_EMBEDDINGS_API_KEY")
    llm_url: str = Field("", validation_alias="PLUMBLINE_LLM_URL")
    llm_model: str = Field("", validation_alias="PLUMBLINE_LLM_MODEL")
    llm_api_key: SecretStr | None = Field(None, validation_alias="PLUMBLINE_LLM_API_KEY")
    # tokens of its context, and replies that it generates concurrently; 0: as the server says
    llm_context: int = Field(0, validation_alias="PLUMBLINE_LLM_CONTEXT", ge=0)
    llm_parallel: int = Field(0, validation_alias="PLUMBLINE_LLM_PARALLEL", ge=0, le=256)
    # trust in the model for answers, causes and owners, unless plumbline.yaml says otherwise
    llm_use: Trust | None = Field(None, validation_alias="PLUMBLINE_LLM_USE")
    # the former name, with `auto` (measured), `choose` and `compose` (always)
    llm_answers: Literal["auto", "never", "choose", "compose"] = Field("auto", validation_alias="PLUMBLINE_LLM_ANSWERS")
    config: Path | None = Field(None, validation_alias="PLUMBLINE_CONFIG")
    webhook_secret: SecretStr | None = Field(None, validation_alias="PLUMBLINE_WEBHOOK_SECRET")
    public_url: str = Field("", validation_alias="PLUMBLINE_PUBLIC_URL")  # of the local page
    console_token: SecretStr | None = Field(None, validation_alias="PLUMBLINE_CONSOLE_TOKEN")
    log: Literal["console", "json"] = Field("console", validation_alias="PLUMBLINE_LOG")
    otlp_endpoint: str = Field("", validation_alias="OTEL_EXPORTER_OTLP_ENDPOINT")  # of an OpenTelemetry collector
    semconv_opt_in: str = Field("", validation_alias="OTEL_SEMCONV_STABILITY_OPT_IN")  # comma-separated
    slack_bot_token: SecretStr | None = Field(None, validation_alias="SLACK_BOT_TOKEN")
    slack_signing_secret: SecretStr | None = Field(None, validation_alias="SLACK_SIGNING_SECRET")
    slack_app_token: SecretStr | None = Field(None, validation_alias="SLACK_APP_TOKEN")
    slack_api_url: str = Field("https://slack.com/api/", validation_alias="SLACK_API_URL")
    slack_post_interval: float = Field(1.05, validation_alias="SLACK_POST_INTERVAL", ge=0)  # seconds, in a channel
    slack_config_token: SecretStr | None = Field(
        None, validation_alias="SLACK_CONFIG_TOKEN"
    )  # for `plumbline doctor` only
    teams_app_id: str = Field("", validation_alias="TEAMS_APP_ID")
    teams_app_password: SecretStr | None = Field(None, validation_alias="TEAMS_APP_PASSWORD")
    teams_tenant_id: str = Field("", validation_alias="TEAMS_TENANT_ID")
    teams_sdk: Literal["botbuilder", "agents"] = Field("agents", validation_alias="TEAMS_SDK")

    @property
    def llm_trust(self) -> Trust:
        """Return the trust in the model for the uses that plumbline.yaml does not name."""
        former = {"auto": Trust.MEASURED, "never": Trust.NEVER, "choose": Trust.ALWAYS, "compose": Trust.ALWAYS}
        return self.llm_use or former[self.llm_answers]

    @field_validator("slack_api_url")
    @classmethod
    def _ends_with_slash(cls, url: str) -> str:
        return url if url.endswith("/") else f"{url}/"

    @field_validator("public_url")
    @classmethod
    def _is_web_address(cls, url: str) -> str:
        try:
            parts = urlsplit(url)
        except ValueError:
            parts = urlsplit("")
        if url and (parts.scheme not in {"http", "https"} or not parts.hostname):
            raise ValueError(f"{url!r} is not the address of a page: https://HOST, with a path if there is one")
        return url

    @field_validator("llm_url")
    @classmethod
    def _names_servers(cls, urls: str) -> str:
        for url in urls.split(",") if urls else ():
            if urlsplit(url.strip()).scheme not in {"http", "https"} or not urlsplit(url.strip()).hostname:
                raise ValueError(f"{url.strip()!r} is not the address of a server: http://HOST:PORT, comma-separated")
        return urls

    @property
    def llm_urls(self) -> tuple[str, ...]:
        """Return the language model servers; empty if the evidence engine works alone."""
        return tuple(url.strip().rstrip("/") for url in self.llm_url.split(",") if url.strip())

    @property
    def traces_model_calls(self) -> bool:
        return "gen_ai_latest_experimental" in {each.strip() for each in self.semconv_opt_in.split(",")}

    def secret(self, variable: str, name: str) -> str:
        """Return the secret of `name` in an environment variable. Raises ConfigurationError if there is none."""
        return named_secret(variable, name)

    @property
    def ways_in(self) -> tuple[str, ...]:
        """Return the settings that expose the bot to other machines, directly or through a local proxy."""
        ways = {
            f"PLUMBLINE_HOST={self.host}": self.host not in LOOPBACK,
            "PLUMBLINE_PUBLIC_URL": self._has_public_url,
            "SLACK_SIGNING_SECRET": self.slack_over_http,
            "TEAMS_APP_ID": bool(self.teams_app_id),
        }
        return tuple(name for name, is_open in ways.items() if is_open)

    @property
    def local(self) -> bool:
        """Return whether only this machine can reach the bot."""
        return not self.ways_in

    @property
    def _has_public_url(self) -> bool:
        return bool(self.public_url) and _host_of(self.public_url) not in LOOPBACK

    @property
    def slack_enabled(self) -> bool:
        return self.slack_bot_token is not None

    @property
    def slack_over_http(self) -> bool:
        """Return whether Slack sends events over HTTP, not through Socket Mode."""
        return self.slack_enabled and self.slack_signing_secret is not None and self.slack_app_token is None

    @property
    def teams_anonymous(self) -> bool:
        """Return whether Teams works without credentials, for the local playground. Requires that no proxy exposes the
        bot.

        A Slack API on this machine is an emulator, which needs no proxy.
        """
        has_proxy = self._has_public_url or (self.slack_over_http and _host_of(self.slack_api_url) not in LOOPBACK)
        return not self.teams_app_id and self.host in LOOPBACK and not has_proxy

    @property
    def teams_enabled(self) -> bool:
        return bool(self.teams_app_id) or self.teams_anonymous

    @property
    def teams_tenant_ids(self) -> frozenset[str]:
        """Return the accepted tenants; empty if all are accepted."""
        return frozenset(tenant.strip() for tenant in self.teams_tenant_id.split(",") if tenant.strip())

    @property
    def database(self) -> str:
        return self.database_url or f"sqlite:///{self.data_dir / 'plumbline.sqlite'}"

    @property
    def workflow_database(self) -> str:
        """Return the URL of the workflow database: the same PostgreSQL, or a separate SQLite file."""
        return self.database_url or f"sqlite:///{self.data_dir / 'workflows.sqlite'}"


def load_settings(**overrides: object) -> Settings:
    """Return the settings of this process.

    Raises ConfigurationError that names the invalid variable, or the secrets that are required because other machines
    can reach the bot.
    """
    settings = read_settings(**overrides)
    if missing := missing_secrets(settings):
        raise ConfigurationError(missing)
    _require_whole_chat(settings)
    return settings


def read_settings(**overrides: object) -> Settings:
    """Return the settings of this process even if secrets are missing, for `doctor`.

    Raises ConfigurationError that names the invalid variable.
    """
    try:
        return Settings(**overrides)  # pyright: ignore[reportArgumentType]
    except ValidationError as error:
        problems = "; ".join(
            f"{each['loc'][0]}: {each['msg'].removeprefix('Value error, ')}" for each in error.errors()
        )
        raise ConfigurationError(f"Settings in the environment are not valid: {problems}.") from None


def missing_secrets(settings: Settings) -> str:
    """Return a sentence about the secrets to set, and why; empty if none is missing."""
    secrets = {
        "PLUMBLINE_WEBHOOK_SECRET": settings.webhook_secret,
        "PLUMBLINE_CONSOLE_TOKEN": settings.console_token,
    }
    missing = [name for name, value in secrets.items() if value is None]
    if not missing or settings.local:
        return ""
    because = " and ".join(settings.ways_in)
    return f"Other machines can reach the bot because of {because}: set {' and '.join(missing)} first."


def named_secret(variable: str, name: str) -> str:
    """Return the secret of `name` from the environment variable that plumbline.yaml gives. Raises ConfigurationError."""
    value = os.environ.get(variable, "").strip()
    if not value:
        raise ConfigurationError(f"{name} needs {variable}, which is not set in the environment.")
    return value


def _require_whole_chat(settings: Settings) -> None:
    if settings.slack_enabled and settings.slack_signing_secret is None and settings.slack_app_token is None:
        raise ConfigurationError("SLACK_BOT_TOKEN is set: set SLACK_SIGNING_SECRET (HTTP) or SLACK_APP_TOKEN as well.")


def _host_of(url: str) -> str:
    """Return the host in lower case; empty if the address has none."""
    try:
        return urlsplit(url if "//" in url else f"//{url}").hostname or ""
    except ValueError:
        return ""


OTHERS = 0o077
PRIVATE = ("*.sqlite*", "*.npz", "index")


def keep_private(folder: Path) -> list[Path]:
    """Take the rights of other users from the data folder and its files. Returns those that keep such rights."""
    paths = [path for path in (folder, *(path for name in PRIVATE for path in folder.glob(name))) if path.exists()]
    for path in paths:
        with suppress(OSError):  # somebody else's, for example the root of a mounted volume
            path.chmod(S_IMODE(path.stat().st_mode) & ~OTHERS)
    # The group of a mounted volume, which an administrator gave to the bot, is no other user.
    others = [(path, 0o007 if path.stat().st_gid == os.getegid() else OTHERS) for path in paths if path.exists()]
    return [path for path, rights in others if path.stat().st_mode & rights]
