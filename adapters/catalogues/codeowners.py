"""A repository's CODEOWNERS file, as used by GitHub and GitLab."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Literal

from pydantic import Field

from adapters.catalogues.section import CatalogueFiles, CatalogueSection
from core.model.errors import SourceUnavailable
from core.model.team import Catalogue, CodeOwners, Team, shortest_names

PLACES = tuple(map(PurePosixPath, (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS")))


async def read_codeowners(files: CatalogueFiles, services: frozenset[str]) -> Catalogue:
    """Return the rules of the first CODEOWNERS file found, and the groups that it names as teams.

    Raises SourceUnavailable if there is none.
    """
    texts = await files.read(lambda path: path in PLACES)
    place = next((place for place in PLACES if place in texts), None)
    if place is None:
        raise SourceUnavailable(f"There is no CODEOWNERS file at {', '.join(map(str, PLACES))}.")
    forge = place.parts[0]
    code = CodeOwners.parsed(texts[place], services, may_exclude=forge != ".github", matches_below=forge == ".gitlab")
    return Catalogue(teams=tuple(Team(group, group) for group in _groups(code)), code=(code,))


def _groups(code: CodeOwners) -> dict[str, None]:
    """Return the shortest names of `@organisation/team` and `@group/subgroup`. Owners without a slash may be people."""
    names = shortest_names(owner.lstrip("@") for owner in code.owners if owner.startswith("@"))
    return dict.fromkeys(name for path, name in names.items() if "/" in path)


class CodeownersSection(CatalogueSection):
    """A CODEOWNERS file. `teams` maps its owners to team ids; `services` are the services whose code it covers."""

    kind: Literal["codeowners"]
    teams: dict[str, str] = Field(default_factory=dict[str, str])
    services: tuple[str, ...] = ()

    @property
    def team_ids(self) -> Mapping[str, str]:
        return self.teams

    async def read(self, files: CatalogueFiles) -> Catalogue:
        return await read_codeowners(files, frozenset(self.services))
