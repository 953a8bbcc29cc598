"""plumbline.yaml: the channels, sources, teams, routes, tools and dependencies of one workspace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from core.conversation import Channel, Platform
from core.errors import ConfigurationError
from core.team import Route, Team


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ChannelSection(_Section):
    name: str
    private: bool = False
    slack: str | None = None
    teams: str | None = None
    console: str | None = None


class FolderSource(_Section):
    kind: Literal["folder"]
    name: str
    path: Path
    url: str = ""


class ChatThreadsSource(_Section):
    kind: Literal["chat_threads"]
    name: str
    path: Path


class PastIncidentsSource(_Section):
    kind: Literal["past_incidents"]
    name: str
    path: Path


SourceSection = Annotated[FolderSource | ChatThreadsSource | PastIncidentsSource, Field(discriminator="kind")]


class TeamSection(_Section):
    id: str
    name: str
    document: Path | None = None
    services: tuple[str, ...] = ()
    channel: str = ""
    on_call: tuple[str, ...] = ()


class RouteSection(_Section):
    channels: tuple[str, ...]
    match: dict[str, str] = {}


class LogFilesTool(_Section):
    kind: Literal["log_files"]
    name: str = "log files"
    path: Path


class MetricFilesTool(_Section):
    kind: Literal["metric_files"]
    name: str = "metric files"
    path: Path


class ChangeFilesTool(_Section):
    kind: Literal["change_files"]
    name: str = "change files"
    path: Path


class PrometheusTool(_Section):
    kind: Literal["prometheus"]
    name: str = "Prometheus"
    url: str


ToolSection = Annotated[LogFilesTool | MetricFilesTool | ChangeFilesTool | PrometheusTool, Field(discriminator="kind")]


class _File(_Section):
    name: str = "Plumbline"
    channels: tuple[ChannelSection, ...] = ()
    sources: tuple[SourceSection, ...] = ()
    teams: tuple[TeamSection, ...] = ()
    routes: tuple[RouteSection, ...] = ()
    tools: tuple[ToolSection, ...] = ()
    dependencies: dict[str, tuple[str, ...]] = {}
    examples: tuple[str, ...] = ()


class Workspace(BaseModel):
    """What plumbline.yaml says, with every path made absolute and every team document read."""

    model_config = ConfigDict(frozen=True)

    name: str
    channels: tuple[Channel, ...]
    sources: tuple[SourceSection, ...]
    teams: tuple[Team, ...]
    routes: tuple[Route, ...]
    tools: tuple[ToolSection, ...]
    dependencies: dict[str, tuple[str, ...]]
    examples: tuple[str, ...]


S = TypeVar("S", bound=BaseModel)

DEFAULT_CHANNEL = ChannelSection(name="general", console="general")


def load_workspace(path: Path | None) -> Workspace:
    """Read plumbline.yaml; without one, an empty workspace with a single channel on the local page.

    Paths in the file are relative to it. Raises ConfigurationError naming the line of the file that is wrong.
    """
    file = _read(path) if path is not None else _File()
    folder = path.parent.resolve() if path is not None else Path.cwd()
    channels = file.channels or (DEFAULT_CHANNEL,)
    return Workspace(
        name=file.name,
        channels=tuple(_channel(section) for section in channels),
        sources=tuple(_absolute(section, folder) for section in file.sources),
        teams=tuple(_team(section, folder) for section in file.teams),
        routes=tuple(Route(section.channels, tuple(section.match.items())) for section in file.routes)
        or (Route((channels[0].name,)),),
        tools=tuple(_absolute(section, folder) for section in file.tools),
        dependencies=file.dependencies,
        examples=file.examples,
    )


def _read(path: Path) -> _File:
    try:
        return _File.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")) or {})
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be read: {error.strerror}. PLUMBLINE_CONFIG names this file."
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} is not valid YAML: {' '.join(str(error).split())}.") from None
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(str(part) for part in problem["loc"]) or "the file"
        raise ConfigurationError(f"{path}: {where}: {problem['msg']}.") from None


def _channel(section: ChannelSection) -> Channel:
    ids = {Platform.SLACK: section.slack, Platform.TEAMS: section.teams, Platform.CONSOLE: section.console}
    return Channel(section.name, {platform: id_ for platform, id_ in ids.items() if id_}, section.private)


def _team(section: TeamSection, folder: Path) -> Team:
    document = ""
    if section.document is not None:
        file = folder / section.document
        try:
            document = file.read_text(encoding="utf-8")
        except OSError as error:
            raise ConfigurationError(f"Team {section.id}: {file} cannot be read: {error.strerror}.") from None
    return Team(section.id, section.name, document, frozenset(section.services), section.channel, section.on_call)


def _absolute(section: S, folder: Path) -> S:
    path = getattr(section, "path", None)
    return section if path is None else section.model_copy(update={"path": folder / path})
