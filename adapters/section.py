"""The base of the sections of plumbline.yaml, the types of their settings, and what a section opens its system with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol, Self, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field

from core.ports import Clock

if TYPE_CHECKING:
    import aiohttp
    from pydantic_settings import BaseSettings

C = TypeVar("C", bound="BaseSettings")

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})

EnvironmentName = Annotated[str, Field(pattern="^[A-Z][A-Z0-9_]*$")]
"""The name of a variable that contains a secret."""

Url = Annotated[str, Field(pattern=r"^https?://[^/?#\s]+[^?#\s]*$")]
"""A server with the path of its API."""


def is_loopback(url: str) -> bool:
    """Return whether an address, with or without a scheme, is on this machine."""
    try:
        return urlsplit(url if "//" in url else f"//{url}").hostname in LOOPBACK
    except ValueError:
        return False


class Section(BaseModel):
    """A section in which unknown keys are errors, because they are probably misspelt."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @property
    def label(self) -> str:
        """Return the kind of the section for people, such as “github issue”; empty if it has none."""
        return str(getattr(self, "kind", "")).replace("_", " ")

    def beside(self, folder: Path) -> Self:
        """Return the section with the paths in it, which are relative to the folder, made absolute."""
        return self.model_copy(
            update={name: _absolute(value, folder) for name, value in self if isinstance(value, Path | dict)}
        )


def _absolute(value: object, folder: Path) -> object:
    match value:
        case Path():
            return folder / value
        case dict():
            return {name: _absolute(each, folder) for name, each in value.items()}
        case _:
            return value


class HostSettings(Protocol):
    """The settings of the process that systems need. Secrets are only read by the name that a section gives."""

    @property
    def data_dir(self) -> Path: ...
    @property
    def database(self) -> str: ...
    @property
    def public_url(self) -> str: ...

    def chat(self, kind: type[C], /) -> C:
        """Return the settings of a chat."""
        ...

    def secret(self, variable: str, name: str, /) -> str:
        """Return the secret of `name` in an environment variable. Raises ConfigurationError if there is none."""
        ...


@dataclass(frozen=True, slots=True)
class Host:
    """The parts of the process that a system needs: settings, a session for HTTP requests, and the time."""

    settings: HostSettings
    session: aiohttp.ClientSession
    clock: Clock
