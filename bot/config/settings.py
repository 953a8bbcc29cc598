"""Settings from environment variables, which are read only here.

The files of the workspace that they name are for the bot's user alone.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from stat import S_IMODE
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, ModelWrapValidatorHandler, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from adapters import http
from adapters.chat import CHATS, ChatSettings
from adapters.section import LOOPBACK, C, is_loopback
from core.model.errors import ConfigurationError
from core.model_calls.choice import Trust

EMBEDDED = "all-MiniLM-L6-v2"  # the embedding model that comes with the bot


class Settings(BaseSettings):
    """The settings of the operator. Every field is optional; docs/configuration.md describes each."""

    model_config = SettingsConfigDict(frozen=True, extra="ignore", populate_by_name=True, env_ignore_empty=True)

    host: str = Field("127.0.0.1", validation_alias="PLUMBLINE_HOST")
    port: int = Field(8080, validation_alias="PLUMBLINE_PORT", ge=0, le=65535)
    data_dir: Path = Field(Path("plumbline-data"), validation_alias="PLUMBLINE_DATA_DIR")
    database_url: str = Field("", validation_alias="PLUMBLINE_DATABASE_URL")
    qdrant_url: str = Field("", validation_alias="PLUMBLINE_QDRANT_URL")
    qdrant_api_key: SecretStr | None = Field(None, validation_alias="PLUMBLINE_QDRANT_API_KEY")
    embeddings: str = Field(EMBEDDED, validation_alias="PLUMBLINE_EMBEDDINGS")
    embeddings_api_key: SecretStr | None = Field(None, validation_alias="PLUMBLINE_EMBEDDINGS_API_KEY")
    llm_url: str = Field("", validation_alias="PLUMBLINE_LLM_URL")  # empty: the evidence engine works alone
    llm_model: str = Field("", validation_alias="PLUMBLINE_LLM_MODEL")
    llm_api_key: SecretStr | None = Field(None, validation_alias="PLUMBLINE_LLM_API_KEY")
    # tokens of its context, and replies that it generates concurrently; 0: as the server says
    llm_context: int = Field(0, validation_alias="PLUMBLINE_LLM_CONTEXT", ge=0)
    llm_parallel: int = Field(0, validation_alias="PLUMBLINE_LLM_PARALLEL", ge=0, le=256)
    # trust in the model for answers, causes and owners, unless plumbline.yaml says otherwise
    llm_use: Trust = Field(Trust.MEASURED, validation_alias="PLUMBLINE_LLM_USE")
    config: Path | None = Field(None, validation_alias="PLUMBLINE_CONFIG")
    webhook_secret: SecretStr | None = Field(None, validation_alias="PLUMBLINE_WEBHOOK_SECRET")
    public_url: str = Field("", validation_alias="PLUMBLINE_PUBLIC_URL")  # of the local page
    console_token: SecretStr | None = Field(None, validation_alias="PLUMBLINE_CONSOLE_TOKEN")
    log: Literal["console", "json"] = Field("console", validation_alias="PLUMBLINE_LOG")
    otlp_endpoint: str = Field("", validation_alias="OTEL_EXPORTER_OTLP_ENDPOINT")  # of an OpenTelemetry collector
    semconv_opt_in: str = Field("", validation_alias="OTEL_SEMCONV_STABILITY_OPT_IN")  # comma-separated
    _chats: tuple[ChatSettings, ...] = ()  # all that are declared

    @model_validator(mode="wrap")
    @classmethod
    def _with_chats(cls, values: dict[str, Any], make: ModelWrapValidatorHandler[Self]) -> Self:
        settings = make(values)
        # Its own, before anybody sees it.
        settings._chats = tuple(kind(**values) for kind in CHATS.all().values())  # noqa: SLF001
        return settings

    @field_validator("public_url")
    @classmethod
    def _is_web_address(cls, url: str) -> str:
        parts = urlsplit(url)
        if url and (parts.scheme not in {"http", "https"} or not parts.hostname):
            raise ValueError(f"{url!r} is not the address of a page: https://HOST, with a path if there is one")
        return url

    @field_validator("llm_url")
    @classmethod
    def _names_a_server(cls, url: str) -> str:
        if "," in url:
            raise ValueError(f"{url!r} is more than one address: put a load balancer before several servers")
        parts = urlsplit(url.strip())
        if url and (parts.scheme not in {"http", "https"} or not parts.hostname):
            raise ValueError(f"{url!r} is not the address of a server: http://HOST:PORT")
        return url.strip().rstrip("/")

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
        }
        return (
            *(name for name, is_open in ways.items() if is_open),
            *(chat.way_in for chat in self._chats if chat.way_in),
        )

    @property
    def local(self) -> bool:
        """Return whether only this machine can reach the bot."""
        return not self.ways_in

    @property
    def _has_public_url(self) -> bool:
        return bool(self.public_url) and not is_loopback(self.public_url)

    @property
    def chats(self) -> tuple[ChatSettings, ...]:
        """Return the chats that have their credentials, in order of preference."""
        return tuple(chat for chat in self._chats if chat.is_on)

    @property
    def playgrounds(self) -> tuple[ChatSettings, ...]:
        """Return the chats without credentials that programs on this machine may use. No proxy may expose the bot."""
        if self.host not in LOOPBACK or self._has_public_url or any(chat.is_proxied for chat in self._chats):
            return ()
        return tuple(chat for chat in self._chats if chat.has_playground and not chat.is_on)

    def chat(self, kind: type[C], /) -> C:
        """Return the settings of a chat, which may be off."""
        return next(chat for chat in self._chats if isinstance(chat, kind))

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
    for chat in settings.chats:
        chat.check()
    return settings


def read_settings(**overrides: object) -> Settings:
    """Return the settings of this process even if secrets are missing, for `doctor`.

    Raises ConfigurationError that names the invalid variable.
    """
    http.prepare(os.environ)
    try:
        return Settings(**overrides)  # pyright: ignore[reportArgumentType]
    except ValidationError as error:
        problems = (f"{each['loc'][0]}: {each['msg'].removeprefix('Value error, ')}" for each in error.errors())
        raise ConfigurationError(f"Settings in the environment are not valid: {'; '.join(problems)}.") from None


def missing_secrets(settings: Settings) -> str:
    """Return a sentence about the secrets to set, and why; empty if none is missing."""
    secrets = {
        "PLUMBLINE_WEBHOOK_SECRET": settings.webhook_secret,
        "PLUMBLINE_CONSOLE_TOKEN": settings.console_token,
    }
    missing = [name for name, value in secrets.items() if value is None]
    if not missing or settings.local:
        return ""
    return (
        f"Other machines can reach the bot because of {' and '.join(settings.ways_in)}: "
        f"set {' and '.join(missing)} first."
    )


def named_secret(variable: str, name: str) -> str:
    """Return the secret of `name` from the environment variable that plumbline.yaml gives. Raises ConfigurationError."""
    if not (value := os.environ.get(variable, "").strip()):
        raise ConfigurationError(f"{name} needs {variable}, which is not set in the environment.")
    return value


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
