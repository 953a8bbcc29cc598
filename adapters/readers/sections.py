"""Sections of plumbline.yaml for the systems that definitions describe: one class each, made from its definition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Optional

from pydantic import Field, create_model

from adapters.readers.credentials import opened
from adapters.readers.definition import Definition, read_definition, shipped
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
        return shipped()[self.kind]

    @property
    def given(self) -> dict[str, str]:
        """Return the settings that are not empty."""
        named = {name: getattr(self, name) for name in self.definition.settings}
        return {name: value for name, value in named.items() if value}

    @property
    def variables(self) -> dict[str, str]:
        """Return the environment variables by secret."""
        named = {name: getattr(self, f"{name}_env") for name in self.definition.secrets}
        return {name: value for name, value in named.items() if value}

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
        given: dict[str, Mapping[str, str | tuple[str, ...]]] = {
            kind: getattr(self, kind) for kind in self.definition.people
        }
        return {
            kind: {team: (ids,) if isinstance(ids, str) else ids for team, ids in of_team.items()}
            for kind, of_team in given.items()
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
def reader_tools() -> dict[str, type[ReaderTool]]:
    """Return the sections of tools that definitions describe, by kind."""
    return {"reader": OwnReaderTool, **dict(_tools())}


@cache
def on_call_systems() -> dict[str, type[OnCallSystem]]:
    """Return the sections of systems that know who is on call, by kind."""
    return dict(_schedules())


def _tools() -> Iterator[tuple[str, type[ReaderTool]]]:
    for kind, definition in shipped().items():
        if not definition.people:
            fields: Any = {**_fields(kind, definition), "services": _SERVICES[definition.services]}
            yield kind, create_model(_name(kind, "Tool"), __base__=ReaderTool, __doc__=_about(definition), **fields)


def _schedules() -> Iterator[tuple[str, type[OnCallSystem]]]:
    for kind, definition in shipped().items():
        if definition.people:
            fields: Any = _fields(kind, definition)
            ids: Any = dict[str, Name | Names]
            one: tuple[Any, Any] = (Annotated[ids, Field(min_length=1)], ...)
            fields |= {each: one if len(definition.people) == 1 else (ids, {}) for each in definition.people}
            yield (
                kind,
                create_model(_name(kind, "Section"), __base__=OnCallSystem, __doc__=_about(definition), **fields),
            )


def _name(kind: str, suffix: str) -> str:
    return f"{kind.title().replace('_', '')}{suffix}"


def _about(definition: Definition) -> str:
    return f"{definition.title}, as in {definition.reference[0]}"


def _fields(kind: str, definition: Definition) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "kind": (Literal[kind], ...),
        "name": (str, definition.title),
        "url": (Url, definition.url or ...),
    }
    for name, setting in definition.settings.items():
        kind_of: Any = str if setting.default is not None else Name
        default = ... if setting.default is None else setting.default
        fields[name] = (kind_of, Field(default, description=setting.about))
    for name, secret in definition.secrets.items():
        kind_of = EnvironmentName if secret.needed else Optional[EnvironmentName]  # noqa: UP045  # of a value
        default = ... if secret.needed else None
        fields[f"{name}_env"] = (kind_of, Field(default, description=f"Names the variable with {secret.about}"))
    return fields
