"""The sections of `catalogues` in plumbline.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Self

from pydantic import model_validator

from adapters.catalogues.files import CatalogueFiles
from adapters.section import Section
from core.model.catalogue import Catalogue


class CatalogueSection(Section):
    """A catalogue in the folder `path`, or in the repository of the git_repository `source` with this name."""

    path: Path | None = None
    source: str = ""

    @model_validator(mode="after")
    def _from_one_place(self) -> Self:
        if (self.path is None) == (not self.source):
            raise ValueError("name either a folder (`path`) or a git_repository source (`source`)")
        return self

    @property
    def place(self) -> str:
        return self.source or str(self.path)

    @property
    def team_ids(self) -> Mapping[str, str]:
        """Return the ids of teams by the names that the catalogue has for them, as far as they differ."""
        return {}

    async def read(self, files: CatalogueFiles) -> Catalogue:
        """Return the catalogue in these files. Raises SourceUnavailable if there is none."""
        raise NotImplementedError
