"""The sections of `tools` in plumbline.yaml: systems that an investigation may read."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Protocol

from pydantic import Field
from yarl import URL

from adapters.http import Http, Token, basic
from adapters.section import Host, Section
from core.ports import (
    AlertMonitor,
    ChangeReader,
    CheckedTool,
    CodeReader,
    DependencyReader,
    LogReader,
    MetricReader,
    Toolbox,
)

Named = Annotated[dict[str, Annotated[str, Field(min_length=1)]], Field(min_length=1)]  # service → its name in the tool


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools that investigations may read."""

    logs: tuple[LogReader, ...] = ()
    metrics: tuple[MetricReader, ...] = ()
    changes: tuple[ChangeReader, ...] = ()
    code: tuple[CodeReader, ...] = ()
    toolboxes: tuple[Toolbox, ...] = ()
    monitors: tuple[AlertMonitor, ...] = ()
    graphs: tuple[DependencyReader, ...] = ()

    @property
    def checked(self) -> list[CheckedTool]:
        """Return the distinct tools whose access can be checked."""
        every = (*self.logs, *self.metrics, *self.changes, *self.code, *self.toolboxes, *self.monitors, *self.graphs)
        return [tool for tool in {id(each): each for each in every}.values() if isinstance(tool, CheckedTool)]


class ToolSection(Section):
    """A system that an investigation may read."""

    name: str

    def open(self, host: Host) -> Tools:
        """Return the tools that read the system. Raises ConfigurationError for a missing secret or certificate."""
        raise NotImplementedError


def open_tools(sections: Iterable[ToolSection], host: Host) -> Tools:
    """Open the tools of all sections. Raises ConfigurationError, as they do."""
    opened = [section.open(host) for section in sections]
    kinds = [each.name for each in fields(Tools)]
    return Tools(*(tuple(each for tools in opened for each in getattr(tools, kind)) for kind in kinds))


class _Served(Protocol):
    """A section about a server."""

    @property
    def name(self) -> str: ...

    @property
    def url(self) -> str: ...


def open_http(
    section: _Served,
    host: Host,
    *,
    user: str | None = None,
    headers: Mapping[str, str] | None = None,
    tls: ssl.SSLContext | bool = True,
    elsewhere: frozenset[str] = frozenset(),
) -> Http:
    """Open the server of a section with the token that it names: a bearer token, or the password of a `user`.

    Errors, which chats show, name the server by its address without a name and password.
    """
    variable = getattr(section, "token_env", None)
    token = host.settings.secret(variable, section.name) if variable else ""
    credentials = basic(user, token) if user is not None else Token(f"Bearer {token}" if token else "")
    system = system_at(section.name, section.url)
    return Http(system, section.url, host.session, credentials, headers or {}, tls, elsewhere)


def system_at(name: str, url: str) -> str:
    """Return how errors call the system at an address."""
    return f"{name} at {URL(url).with_user(None)}"
