"""The kinds of things that plumbline.yaml may name: each is declared by a module, a plugin or a definition of a reader, and
none is listed here.

The section `webhooks` has the settings of each format that a module of `adapters.alerts` or a plugin declares.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint
from typing import Annotated, Any, NotRequired

from pydantic import with_config
from typing_extensions import TypedDict

from adapters import alerts, catalogues, publishers, readers, sources, tools
from adapters.alerts.fields import ConfiguredFormat, Format, WebhookSection
from adapters.catalogues.section import CatalogueSection
from adapters.chat import CHATS
from adapters.kinds import Kinds, Later, Registry, declared, modules
from adapters.publishers.section import PublisherSection
from adapters.readers.sections import OnCallSystem, defined_sections, section_of
from adapters.sources.section import SourceSection
from adapters.tools.section import ToolSection

AnyFormat = Format[Any] | ConfiguredFormat[Any]


def _sources(value: Any) -> Iterable[str]:
    return [value.source] if isinstance(value, Format | ConfiguredFormat) else []


FORMATS = Registry[AnyFormat](
    lambda _: declared(modules(alerts), _sources), _sources, {"plumbline.webhooks": EntryPoint.load}
)
CATALOGUES = Kinds(catalogues, CatalogueSection, {"plumbline.catalogues": EntryPoint.load})
PUBLISHERS = Kinds(publishers, PublisherSection, {"plumbline.publishers": EntryPoint.load})
ON_CALL = Kinds(readers, OnCallSystem, {"plumbline.on_call": section_of}, defined_sections)
SOURCES = Kinds(sources, SourceSection, {"plumbline.sources": EntryPoint.load})
TOOLS = Kinds(
    tools, ToolSection, {"plumbline.tools": EntryPoint.load, "plumbline.readers": section_of}, defined_sections
)
REGISTRIES = (FORMATS, CATALOGUES, PUBLISHERS, ON_CALL, SOURCES, TOOLS, CHATS)

AnyCatalogue = Annotated[CatalogueSection, CATALOGUES]
AnyPublisher = Annotated[PublisherSection, PUBLISHERS]
AnySource = Annotated[SourceSection, SOURCES]
AnyTool = Annotated[ToolSection, TOOLS]
AnySchedules = Annotated[OnCallSystem, ON_CALL]


def _sections() -> Any:
    """Return the type of the whole section."""
    make: Any = TypedDict
    sections = {source: NotRequired[each.section] for source, each in FORMATS.all().items()}
    return with_config(extra="forbid")(make("WebhooksSection", sections))


WebhookSections = Annotated[Mapping[str, WebhookSection], Later(_sections)]
"""The sections by source, of those that have one."""
