"""The kinds of things that plumbline.yaml may name: each is declared by a module, or by a definition of a reader, and none is
listed here.

The section `webhooks` has the settings of each format that a module of `adapters.alerts` declares.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, NotRequired

from pydantic import ConfigDict
from typing_extensions import TypedDict

from adapters import alerts, catalogues, publishers, readers, sources, tools
from adapters.alerts.fields import ConfiguredFormat, Format, WebhookSection
from adapters.catalogues.section import CatalogueSection
from adapters.kinds import Kinds, Later, modules, unique
from adapters.publishers.section import PublisherSection
from adapters.readers.sections import OnCallSystem, on_call_systems, reader_tools
from adapters.sources.section import SourceSection
from adapters.tools.section import ToolSection

CATALOGUES = Kinds(catalogues, CatalogueSection)
PUBLISHERS = Kinds(publishers, PublisherSection)
ON_CALL = Kinds(readers, OnCallSystem, on_call_systems)
SOURCES = Kinds(sources, SourceSection)
TOOLS = Kinds(tools, ToolSection, reader_tools)

AnyCatalogue = Annotated[CatalogueSection, CATALOGUES]
AnyPublisher = Annotated[PublisherSection, PUBLISHERS]
AnySource = Annotated[SourceSection, SOURCES]
AnyTool = Annotated[ToolSection, TOOLS]
AnySchedules = Annotated[OnCallSystem, ON_CALL]


AnyFormat = Format[Any] | ConfiguredFormat[Any]


def formats() -> dict[str, AnyFormat]:
    """Return all webhook formats by source. Raises ValueError if two claim one."""
    return dict(sorted(unique(_declared()).items()))


def _declared() -> Iterator[tuple[str, AnyFormat, str]]:
    for module in modules(alerts):
        for value in vars(module).values():
            if isinstance(value, Format | ConfiguredFormat):
                yield value.source, value, module.__name__


def _sections() -> Any:
    """Return the type of the whole section."""
    section_of = {source: _section(each) for source, each in formats().items()}
    make: Any = TypedDict
    sections = make("WebhooksSection", {source: NotRequired[section] for source, section in section_of.items()})
    sections.__pydantic_config__ = ConfigDict(extra="forbid")
    return sections


def _section(of: AnyFormat) -> type[WebhookSection]:
    return of.section if isinstance(of, ConfiguredFormat) else WebhookSection


WebhookSections = Annotated[Mapping[str, WebhookSection], Later(_sections)]
"""The sections by source, of those that have one."""
