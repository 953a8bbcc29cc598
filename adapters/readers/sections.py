"""Sections of plumbline.yaml for the systems that definitions describe: one class each, made from its definition."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Optional

from pydantic import Field, create_model

from adapters.readers.credentials import opened
from adapters.readers.definition import Definition, parsed, read_definition, shipped
from adapters.readers.on_call import Schedules
from adapters.readers.pages import Pages
from adapters.readers.reader import Reader
from adapters.readers.template import filled
from adapters.section import EnvironmentName, Host, Section, Url
from adapters.tools.prometheus_alerts import PrometheusAlerts
from adapters.tools.section import Tools, ToolSection, system_at

Name = Annotated[str, Field(min_length=1)]  # an empty id in a query could match every schedule
Names = Annotated[tuple[Name, ...], Field(min_length=1)]
Labels = Annotated[dict[str, str], Field(min_length=1)]
Services = Mapping[str, str | Mapping[str, str]]
_SERVICES: dict[str, tuple[Any, Any]] = {
    "labels": (Annotated[dict[str, Labels], Field(min_length=1)], ...),
    "names": (Annotated[dict[str, Name], Field(min_length=1)], ...),
    "any": (dict[str, Name], {}),
}
"""The type and the default of a section's services, by what its definition says about them."""


class DefinedSection(Section):
    """A system that a definition describes. The other keys are the definition's settings, and `…_env` for its secrets."""

    kind: str
    name: str
    url: str

    @property
    def definition(self) -> Definition:
        raise NotImplementedError

    @property
    def given(self) -> dict[str, str]:
        """Return the settings that are not empty."""
        return {name: value for name in self.definition.settings if (value := getattr(self, name))}

    @property
    def variables(self) -> dict[str, str]:
        """Return the environment variables by secret."""
        return {name: value for name in self.definition.secrets if (value := getattr(self, f"{name}_env"))}

    def pages(self, host: Host) -> Pages:
        """Return the client of the system. Raises ConfigurationError for a missing secret."""
        secrets = {name: host.settings.secret(variable, self.name) for name, variable in self.variables.items()}
        url = filled(self.url, self.given)
        http = opened(self.definition, system_at(self.name, url), url, host.session, self.given, secrets)
        return Pages(http, self.given)


class ReaderTool(DefinedSection, ToolSection):
    """A system whose logs, metrics, changes or traces are read."""

    services: Services

    def open(self, host: Host) -> Tools:
        """Return what the definition describes, and the alerts of a server that has them like Prometheus."""
        definition, pages = self.definition, self.pages(host)
        reader = Reader(self.name, pages, definition, self.services)
        return Tools(
            logs=(reader,) if definition.logs is not None else (),
            metrics=(reader,) if definition.metrics is not None else (),
            changes=(reader,) if definition.changes is not None else (),
            monitors=(PrometheusAlerts(self.name, pages.http),) if self.kind == "prometheus" else (),
            graphs=(reader,) if definition.calls is not None or definition.spans is not None else (),
        )


class OnCallSystem(DefinedSection):
    """A system that knows who is on call. Each kind of schedules in it maps a team to the ids of its schedules."""

    @property
    def ids(self) -> dict[str, dict[str, tuple[str, ...]]]:
        """Return the ids of the schedules of each team, by their kind."""
        return {
            kind: {team: (ids,) if isinstance(ids, str) else ids for team, ids in getattr(self, kind).items()}
            for kind in self.definition.people
        }

    def open(self, host: Host) -> Schedules:
        """Return the schedules. Raises ConfigurationError for a missing secret."""
        return Schedules(self.name, self.pages(host), self.definition, self.ids)


class OwnReaderTool(ReaderTool):
    """A system that a definition of yours describes, in the YAML file `definition`.

    `services` are as the definition says; `settings` are its settings, and `secrets` maps a secret to the environment
    variable with it.
    """

    kind: Literal["reader"]  # pyright: ignore[reportIncompatibleVariableOverride]  # sections are frozen
    url: Url
    definition_file: Path = Field(alias="definition")
    services: Services = Field(default_factory=dict[str, str])
    settings: dict[str, str] = Field(default_factory=dict[str, str])
    secrets: dict[str, EnvironmentName] = Field(default_factory=dict[str, EnvironmentName])

    @property
    def definition(self) -> Definition:
        return read_definition(self.definition_file)

    @property
    def given(self) -> dict[str, str]:
        defaults = {name: each.default for name, each in self.definition.settings.items()}
        return {name: value for name, value in (defaults | self.settings).items() if value}

    @property
    def variables(self) -> dict[str, str]:
        return dict(self.secrets)


@cache
def defined_sections() -> tuple[type[DefinedSection], ...]:
    """Return the sections that definitions describe, of tools and of systems that know who is on call."""
    return OwnReaderTool, *(_section(kind, definition) for kind, definition in shipped().items())


def section_of(point: EntryPoint) -> type[DefinedSection]:
    """Return the section of the definition `NAME.yaml` in the package of an entry point. Raises ConfigurationError."""
    file = resources.files(point.load()) / f"{point.name}.yaml"
    return _section(point.name, parsed(file.read_text("utf-8"), file.name))


def _section(kind: str, definition: Definition) -> type[DefinedSection]:
    """Return the section of a system: a tool, unless its definition says who is on call."""
    fields: dict[str, Any] = {
        "definition": (ClassVar[Definition], definition),
        "kind": (Literal[kind], ...),
        "name": (str, definition.title),
        "url": (Url, definition.url or ...),
    }
    fields |= {
        name: (Name, Field(description=each.about))
        if each.default is None
        else (str, Field(each.default, description=each.about))
        for name, each in definition.settings.items()
    }
    fields |= {
        f"{name}_env": (
            EnvironmentName if each.needed else Optional[EnvironmentName],  # noqa: UP045  # of a value
            Field(... if each.needed else None, description=f"Names the variable with {each.about}"),
        )
        for name, each in definition.secrets.items()
    }
    name, about = kind.title().replace("_", ""), f"{definition.title}, as in {definition.reference[0]}"
    if not definition.people:
        fields["services"] = _SERVICES[definition.services]
        return create_model(f"{name}Tool", __base__=ReaderTool, __doc__=about, **fields)
    ids: Any = dict[str, Name | Names]
    one: tuple[Any, Any] = (Annotated[ids, Field(min_length=1)], ...)
    fields |= {each: one if len(definition.people) == 1 else (ids, {}) for each in definition.people}
    return create_model(f"{name}Section", __base__=OnCallSystem, __doc__=about, **fields)
