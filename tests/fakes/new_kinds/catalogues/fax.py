"""A catalogue that somebody adds: a directory of faxes, with a team and its services in each line."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from adapters.catalogues.section import CatalogueFiles, CatalogueSection
from core.model.team import Catalogue, Team


class FaxSection(CatalogueSection):
    """A directory of faxes, in the file with this name."""

    kind: Literal["fax"]
    file: Annotated[str, Field(pattern=r"\.fax$")] = "directory.fax"

    async def read(self, files: CatalogueFiles) -> Catalogue:
        texts = await files.read(lambda path: path.name == self.file)
        lines = (line.split() for text in texts.values() for line in text.splitlines())
        return Catalogue(tuple(Team(team, team, services=frozenset(services)) for team, *services in lines))
