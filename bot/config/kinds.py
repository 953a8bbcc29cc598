"""The kinds of things that plumbline.yaml may name: each is declared by a module, and none is listed here."""

from __future__ import annotations

from typing import Annotated

from adapters import catalogues, publishers, sources
from adapters.catalogues.section import CatalogueSection
from adapters.kinds import Kinds
from adapters.publishers.section import PublisherSection
from adapters.sources.section import SourceSection

CATALOGUES = Kinds(catalogues, CatalogueSection)
PUBLISHERS = Kinds(publishers, PublisherSection)
SOURCES = Kinds(sources, SourceSection)

AnyCatalogue = Annotated[CatalogueSection, CATALOGUES]
AnyPublisher = Annotated[PublisherSection, PUBLISHERS]
AnySource = Annotated[SourceSection, SOURCES]
