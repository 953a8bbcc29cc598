"""Sections of plumbline.yaml for the systems that definitions describe: one class each, made from its definition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional, Union

from pydantic import Field, create_model

from adapters.readers.definition import Definition, read_definition, shipped
from bot.config.section import Section, Url
from bot.config.source_sections import EnvironmentName

Name = Annotated[str, Field(min_length=1)]
Labels = Annotated[dict[str, str], Field(min_length=1)]
Services = Mapping[str, str | Mapping[str, str]]
_SERVICES: dict[str, tuple[Any, Any]] = {
    "labels": (Annotated[dict[str, Labels], Field(min_length=1)], ...),
    "names": (Annotated[dict[str, Name], Field(min_length=1)], ...),
    "any": (dict[str, Name], {}),
}
"""The type and the default of a section's services, by what its definition says about them."""


class ReaderTool(Section):
    """A system that a definition describes. The other keys are the definition's settings, and `…_env` for its secrets."""

    kind: str
    name: str
    url: str
    services: Services

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


def _classes() -> Iterator[type[ReaderTool]]:
    for kind, definition in shipped().items():
        if not definition.people:
            yield _class(kind, definition)


def _class(kind: str, definition: Definition) -> type[ReaderTool]:
    fields: dict[str, Any] = {
        "kind": (Literal[kind], ...),
        "name": (str, definition.title),
        "url": (Url, definition.url or ...),
        "services": _SERVICES[definition.services],
    }
    for name, setting in definition.settings.items():
        fields[name] = (str, Field(... if setting.default is None else setting.default, description=setting.about))
    for name, secret in definition.secrets.items():
        kind_of: Any = EnvironmentName if secret.needed else Optional[EnvironmentName]  # noqa: UP045  # of a value
        default = ... if secret.needed else None
        fields[f"{name}_env"] = (kind_of, Field(default, description=f"Names the variable with {secret.about}"))
    documented = f"{definition.title}, as in {definition.reference[0]}"
    return create_model(f"{kind.title().replace('_', '')}Tool", __base__=ReaderTool, __doc__=documented, **fields)


if TYPE_CHECKING:
    ShippedReaderTool = ReaderTool
else:
    ShippedReaderTool = Union[tuple(_classes())]  # noqa: UP007  # of classes that are not known before
