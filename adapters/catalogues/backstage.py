"""Backstage's software catalogue: https://backstage.io/docs/features/software-catalog/descriptor-format

Groups are teams; Components, Resources, APIs, Systems and Domains are services; `spec.owner` names their owners, and
`spec.dependsOn` and `spec.consumesApis` their dependencies. Kind, namespace and name together identify an entity; a
reference without a namespace means that of the entity in which it stands. Annotations of a Group state how to reach it:
`plumbline/channel`, `plumbline/slack-user-group`, `plumbline/teams-mention` and `plumbline/teams-tag`.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, cast

import structlog
import yaml
from pydantic import (
    BaseModel,
    Field,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)

from adapters.catalogues.section import CatalogueFiles, CatalogueSection
from core.model.conversation import Platform
from core.model.errors import SourceUnavailable
from core.model.team import TAG, Catalogue, Team, shortest_names

NAMES = frozenset({"catalog-info.yaml", "catalog-info.yml"})
SKELETON = "skeleton"  # folder with the content of a template, in which entities are only patterns
# Of two with one name, the one whose kind comes first here is shown by the name alone.
SERVICES = ("component", "resource", "api", "system", "domain")
MAX_ENTITIES = 20_000
MAX_LOCATIONS = 500  # files that Locations name

Name = Annotated[str, Field(pattern=r"^[^\s:/{}$][^:/{}$]{0,199}$")]  # not a placeholder of a template
Reference = Annotated[str, Field(pattern=r"^(?:[^:/{}$]{1,99}:)?(?:[^:/{}$]{1,199}/)?[^:/{}$]{1,199}$")]

log = structlog.get_logger()


class _Part(BaseModel, coerce_numbers_to_str=True):
    """A part of an entity. An invalid field is left out, and named in the context; one that is required makes it invalid."""

    @model_validator(mode="before")
    @classmethod
    def _without_empty_values(cls, given: object) -> object:
        """Drop empty values: `description:` without a value equals a missing description."""
        if not isinstance(given, dict):
            return given
        return {name: value for name, value in cast("dict[Any, Any]", given).items() if value not in (None, "")}

    @field_validator("*", mode="wrap")
    @classmethod
    def _without_invalid_values(
        cls, given: object, read: ValidatorFunctionWrapHandler, field: ValidationInfo
    ) -> object:
        try:
            return read(given)
        except ValidationError as error:
            declared = cls.model_fields[field.field_name or ""]
            if declared.is_required():
                raise
            cast("list[str]", field.context).append(f"{field.field_name} ({error.errors()[0]['msg']})")
            return declared.get_default(call_default_factory=True, validated_data={})


class _Metadata(_Part):
    name: Name
    namespace: Name = "default"
    title: str = ""
    description: str = ""
    annotations: dict[Any, Any] = {}


class _Profile(_Part):
    displayName: str = ""


class _Spec(_Part):
    owner: Reference = ""
    profile: _Profile = _Profile()
    members: list[Reference] = []
    dependsOn: list[Reference] = []
    consumesApis: list[Reference] = []
    providesApis: list[Reference] = []
    target: str = ""
    targets: list[str] = []


class _Entity(_Part):
    kind: str
    metadata: _Metadata
    spec: _Spec = _Spec()

    @property
    def path(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"


async def read_backstage(files: CatalogueFiles) -> Catalogue:
    """Return the catalogue. Raises SourceUnavailable if nothing can be read, or there is no entity."""
    entities, left_out = await _entities(files)
    if not entities:
        raise SourceUnavailable("There is no entity in any catalog-info.yaml.")
    for line in left_out:
        log.warning("catalogue_entry_left_out", entry=line)
    services = _Names(entities, SERVICES)
    return Catalogue(tuple(_teams(entities, services)), _dependencies(entities, services), left_out=tuple(left_out))


async def _entities(files: CatalogueFiles) -> tuple[list[_Entity], list[str]]:
    """Return the entities, and what is left out of the files."""
    all_entities: list[_Entity] = []
    left_out: list[str] = []
    read: set[PurePosixPath] = set()
    more = await files.read(lambda path: path.name in NAMES and SKELETON not in path.parts)
    while more:
        read |= more.keys()
        named: set[PurePosixPath] = set()
        for path, text in more.items():
            entities = await asyncio.to_thread(lambda path=path, text=text: list(_parsed(path, text, left_out)))
            all_entities += entities
            named |= {target for entity in entities for target in _targets(path, entity)}
        if len(all_entities) > MAX_ENTITIES:
            raise SourceUnavailable(f"The catalogue has more than {MAX_ENTITIES} entities.")
        wanted = frozenset(sorted(named - read)[:MAX_LOCATIONS])
        more = await files.read(lambda path, wanted=wanted: path in wanted) if wanted else {}
    return all_entities, left_out


class _Loader(yaml.SafeLoader):
    """A loader without aliases of lists and mappings, with which a short file can expand beyond memory."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        is_alias = self.check_event(yaml.AliasEvent)
        node = super().compose_node(parent, index)
        if is_alias and not isinstance(node, yaml.ScalarNode):
            raise yaml.MarkedYAMLError(problem="an alias of a list or a mapping is not read")
        return node


def _parsed(path: PurePosixPath, text: str, left_out: list[str]) -> Iterator[_Entity]:
    """Yield the entities. Invalid ones are left out, because one error must not hide all others."""
    try:
        for document in yaml.load_all(text, _Loader):
            if document is not None and (entity := _entity(path, document, left_out)) is not None:
                yield entity
    except (yaml.YAMLError, RecursionError) as error:
        left_out.append(f"{path}: {_in_one_line(error)}")


def _entity(path: PurePosixPath, document: object, left_out: list[str]) -> _Entity | None:
    fields: list[str] = []
    try:
        entity = _Entity.model_validate(document, context=fields)
    except ValidationError as error:
        left_out.append(f"{path}: {_in_one_line(error)}")
        return None
    left_out += [f"{path}: {entity.kind} {entity.path}: {field}" for field in fields]
    return entity


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


def _teams(entities: Sequence[_Entity], name_of: _Names) -> Iterator[Team]:
    id_of = _Names(entities, ("group",))
    groups = {id_of(f"group:{entity.path}"): entity for entity in entities if entity.kind.casefold() == "group"}
    services: defaultdict[str, set[str]] = defaultdict(set)
    for entity in entities:
        owner = _reference(entity.spec.owner, entity, "group")
        if entity.kind.casefold() in SERVICES and entity.spec.owner and not owner.casefold().startswith("user:"):
            services[id_of(owner)].add(name_of(f"{entity.kind}:{entity.path}"))
    shown = {id_: group.spec.profile.displayName or group.metadata.title or id_ for id_, group in groups.items()}
    same = Counter(map(str.casefold, shown.values()))
    for id_, group in groups.items():
        annotations = {key: value for key, value in group.metadata.annotations.items() if isinstance(value, str)}
        yield Team(
            id=id_,
            name=shown[id_] if same[shown[id_].casefold()] == 1 else f"{shown[id_]} ({id_})",
            document=group.metadata.description,
            services=frozenset(services.pop(id_, ())),
            channel=annotations.get("plumbline/channel", ""),
            mentions=_mentions(annotations),
            members=frozenset(map(_name, group.spec.members)),
        )
    for owner, owned in services.items():
        yield Team(owner, owner, services=frozenset(owned))


def _mentions(annotations: Mapping[str, str]) -> dict[Platform, str]:
    tag = annotations.get("plumbline/teams-tag", "")
    ids = {
        Platform.SLACK: annotations.get("plumbline/slack-user-group", ""),
        Platform.TEAMS: f"{TAG}{tag}" if tag else annotations.get("plumbline/teams-mention", ""),
    }
    return {platform: id_ for platform, id_ in ids.items() if id_}


def _dependencies(entities: Sequence[_Entity], name_of: _Names) -> dict[str, tuple[str, ...]]:
    """Return the dependencies. A service that consumes an API calls the one that provides it."""
    services = {
        name_of(f"{entity.kind}:{entity.path}"): entity for entity in entities if entity.kind.casefold() in SERVICES
    }
    providers: defaultdict[str, list[str]] = defaultdict(list)
    for name, entity in services.items():
        for api in entity.spec.providesApis:
            providers[_reference(api, entity, "api").casefold()].append(name)
    calls: dict[str, tuple[str, ...]] = {}
    for name, entity in services.items():
        used = [_reference(given, entity, "component") for given in entity.spec.dependsOn]
        used += [_reference(given, entity, "api") for given in entity.spec.consumesApis]
        called = dict.fromkeys(callee for full in used for callee in providers.get(full.casefold()) or [name_of(full)])
        called.pop(name, None)
        if called:
            calls[name] = tuple(called)
    return calls


def _reference(given: str, entity: _Entity, kind: str) -> str:
    """Return `kind:namespace/name` of a reference in an entity, in which the first two may be missing."""
    own, _, path = given.rpartition(":")
    return f"{own or kind}:{path if '/' in path else f'{entity.metadata.namespace}/{path}'}"


class _Names:
    """The names of the entities of some kinds, as people read them, by `kind:namespace/name`. Case is ignored.

    An entity is shown by its name alone, or as `namespace/name` or `kind:name` if one in another namespace or of an
    earlier kind has that name too. A reference to a kind that is not there means an entity of another kind at its path.
    """

    def __init__(self, entities: Sequence[_Entity], kinds: Sequence[str]) -> None:
        self._shown: dict[str, str] = {}
        self._taken: set[str] = set()
        for kind in kinds:
            names = shortest_names(entity.path for entity in entities if entity.kind.casefold() == kind)
            for path, name in names.items():
                shown = f"{kind}:{name}" if _name(path).casefold() in self._taken else name
                self._shown[f"{kind}:{path}".casefold()] = shown
                self._shown.setdefault(path.casefold(), shown)
            self._taken |= {_name(path).casefold() for path in names}

    def __call__(self, reference: str) -> str:
        path = reference.rpartition(":")[2]
        shown = self._shown.get(reference.casefold()) or self._shown.get(path.casefold())
        if shown is None:
            shown = self._shown[path.casefold()] = path if _name(path).casefold() in self._taken else _name(path)
            self._taken.add(_name(path).casefold())
        return shown


def _name(reference: str) -> str:
    """Return the name in `kind:namespace/name`."""
    return reference.rpartition(":")[2].rpartition("/")[2]


class BackstageSection(CatalogueSection):
    """All `catalog-info.yaml` files, and the entities that their Locations name in the same place."""

    kind: Literal["backstage"]

    async def read(self, files: CatalogueFiles) -> Catalogue:
        return await read_backstage(files)
