"""The kinds of things that plumbline.yaml may name: each is declared by a module, and none is listed here."""

from __future__ import annotations

from typing import Annotated

from adapters import publishers
from adapters.kinds import Kinds
from adapters.publishers.section import PublisherSection

PUBLISHERS = Kinds(publishers, PublisherSection)

AnyPublisher = Annotated[PublisherSection, PUBLISHERS]
