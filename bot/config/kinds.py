"""The kinds of things that plumbline.yaml may name: each is declared by a module, or by a definition of a reader, and none is listed here."""

from __future__ import annotations

from typing import Annotated

from adapters import catalogues, publishers, readers, sources, tools
from adapters.catalogues.section import CatalogueSection
from adapters.kinds import Kinds
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
