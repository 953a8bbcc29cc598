"""Backstage's software catalogue: https://backstage.io/docs/features/software-catalog/descriptor-format

Groups are teams; Components, Resources, APIs, Systems and Domains are services; `spec.owner` names their owners, and
`spec.dependsOn` and `spec.consumesApis` their dependencies. Annotations of a Group state how to reach it:
`plumbline/channel`, `plumbline/slack-user-group`, `plumbline/teams-mention` and `plumbline/teams-tag`.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, Literal, cast

import structlog
import yaml
from pydantic import BaseModel, ValidationError, model_validator

from adapters.catalogues.files import CatalogueFiles
from adapters.catalogues.section import CatalogueSection
from core.model.catalogue import Catalogue
from core.model.conversation import Platform
from core.model.errors import SourceUnavailable
from core.model.team import TAG, Team

NAMES = frozenset({"catalog-info.yaml", "catalog-info.yml"})
SERVICES = frozenset({"component", "resource", "api", "system", "domain"})
MAX_ENTITIES = 20_000
MAX_LOCATIONS = 500  # files that Locations name

log = structlog.get_logger()


class _Part(BaseModel):
    @model_validator(mode="before")
    @classmethod
    def _without_empty_values(cls, given: object) -> object:
        """Drop empty values: `description:` without a value equals a missing description."""
        if not isinstance(given, dict):
            return given
        return {name: value for name, value in cast("dict[Any, Any]", given).items() if value is not None}


class _Metadata(_Part):
    name: str
    title: str = ""
    description: str = ""
    annotations: dict[str, Any] = {}


class _Profile(_Part):
    displayName: str = ""


class _Spec(_Part):
    owner: str = ""
    profile: _Profile = _Profile()
    members: list[str] = []
    dependsOn: list[str] = []
    consumesApis: list[str] = []
    providesApis: list[str] = []
    target: str = ""
    targets: list[str] = []


class _Entity(_Part):
    kind: str
    metadata: _Metadata
    spec: _Spec = _Spec()


async def read_backstage(files: CatalogueFiles) -> Catalogue:
    """Return the catalogue. Raises SourceUnavailable if nothing can be read, or there is no entity."""
    entities = await _entities(files)
    if not entities:
        raise SourceUnavailable("There is no entity in any catalog-info.yaml.")
    return Catalogue(tuple(_teams(entities)), _dependencies(entities))


async def _entities(files: CatalogueFiles) -> list[_Entity]:
    all_entities: list[_Entity] = []
    read: set[PurePosixPath] = set()
    more = await files.read(lambda path: path.name in NAMES)
    while more:
        read |= more.keys()
        named: set[PurePosixPath] = set()
        for path, text in more.items():
            entities = await asyncio.to_thread(lambda path=path, text=text: list(_parsed(path, text)))
            all_entities += entities
            named |= {target for entity in entities for target in _targets(path, entity)}
        if len(all_entities) > MAX_ENTITIES:
            raise SourceUnavailable(f"The catalogue has more than {MAX_ENTITIES} entities.")
        wanted = frozenset(sorted(named - read)[:MAX_LOCATIONS])
        more = await files.read(lambda path, wanted=wanted: path in wanted) if wanted else {}
    return all_entities


class _Loader(yaml.SafeLoader):
    """A loader without aliases of lists and mappings, with which a short file can expand beyond memory."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        is_alias = self.check_event(yaml.AliasEvent)
        node = super().compose_node(parent, index)
        if is_alias and not isinstance(node, yaml.ScalarNode):
            raise yaml.MarkedYAMLError(problem="an alias of a list or a mapping is not read")
        return node


def _parsed(path: PurePosixPath, text: str) -> Iterator[_Entity]:
    """Yield the entities. Invalid ones are logged and skipped, because one error must not hide all others."""
    try:
        for document in yaml.load_all(text, _Loader):
            if document is not None and (entity := _entity(path, document)) is not None:
                yield entity
    except (yaml.YAMLError, RecursionError) as error:
        log.warning("catalogue_file_left_out", path=str(path), error=_in_one_line(error))


def _entity(path: PurePosixPath, document: object) -> _Entity | None:
    try:
        return _Entity.model_validate(document)
    except ValidationError as error:
        log.warning("catalogue_entity_left_out", path=str(path), error=_in_one_line(error))
        return None


def _in_one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


def _targets(path: PurePosixPath, entity: _Entity) -> Iterator[PurePosixPath]:
    """Yield the files in the same place that a Location names. Other places are never read."""
    if entity.kind.casefold() != "location":
        return
    for target in filter(None, [entity.spec.target, *entity.spec.targets]):
        if "://" in target or target.startswith("/"):
            continue
        parts: list[str] = []
        for part in (path.parent / target).parts:
            if part == ".." and not parts:
                break
            parts.pop() if part == ".." else parts.append(part)
        else:
            yield PurePosixPath(*parts)


def _teams(entities: Iterable[_Entity]) -> Iterator[Team]:
    groups = {entity.metadata.name: entity for entity in entities if entity.kind.casefold() == "group"}
    name_of = _Names(groups)
    services: defaultdict[str, set[str]] = defaultdict(set)
    for entity in entities:
        owner = entity.spec.owner
        if entity.kind.casefold() in SERVICES and owner and not owner.casefold().startswith("user:"):
            services[name_of(owner)].add(entity.metadata.name)
    for name, group in groups.items():
        shown = group.spec.profile.displayName or group.metadata.title or name
        annotations = {key: value for key, value in group.metadata.annotations.items() if isinstance(value, str)}
        yield Team(
            id=name,
            name=shown,
            document=group.metadata.description,
            services=frozenset(services[name]),
            channel=annotations.get("plumbline/channel", ""),
            mentions=_mentions(annotations),
            members=frozenset(map(_name, group.spec.members)),
        )
    for owner, owned in services.items():
        if owner not in groups:
            yield Team(owner, owner, services=frozenset(owned))


def _mentions(annotations: Mapping[str, str]) -> dict[Platform, str]:
    tag = annotations.get("plumbline/teams-tag", "")
    ids = {
        Platform.SLACK: annotations.get("plumbline/slack-user-group", ""),
        Platform.TEAMS: f"{TAG}{tag}" if tag else annotations.get("plumbline/teams-mention", ""),
    }
    return {platform: id_ for platform, id_ in ids.items() if id_}


def _dependencies(entities: Iterable[_Entity]) -> dict[str, tuple[str, ...]]:
    """Return the dependencies. A service that consumes an API calls the one that provides it."""
    services = [entity for entity in entities if entity.kind.casefold() in SERVICES]
    name_of = _Names(entity.metadata.name for entity in services)
    providers: defaultdict[str, list[str]] = defaultdict(list)
    for entity in services:
        for api in entity.spec.providesApis:
            providers[name_of(api)].append(entity.metadata.name)
    calls: dict[str, tuple[str, ...]] = {}
    for entity in services:
        apis = map(name_of, entity.spec.consumesApis)
        consumed = (service for api in apis for service in providers.get(api, [api]))
        called = dict.fromkeys([*map(name_of, entity.spec.dependsOn), *consumed])
        called.pop(entity.metadata.name, None)
        if called:
            calls[entity.metadata.name] = tuple(called)
    return calls


class _Names:
    """Canonical names of references, as spelled by the entity itself or else the first reference. Case is ignored."""

    def __init__(self, written: Iterable[str]) -> None:
        self._written = {name.casefold(): name for name in written}

    def __call__(self, reference: str) -> str:
        name = _name(reference)
        return self._written.setdefault(name.casefold(), name)


def _name(reference: str) -> str:
    """Return the name in `kind:namespace/name`."""
    return reference.rpartition(":")[2].rpartition("/")[2]


class BackstageSection(CatalogueSection):
    """All `catalog-info.yaml` files, and the entities that their Locations name in the same place."""

    kind: Literal["backstage"]

    async def read(self, files: CatalogueFiles) -> Catalogue:
        return await read_backstage(files)
