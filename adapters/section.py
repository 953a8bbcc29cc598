"""The base of the sections of plumbline.yaml, what a section opens its system with, and the registry of sections by kind.

Nothing is listed anywhere. A webhook's format is a value of a module in `adapters.alerts`. Everything else is a section
of plumbline.yaml, with its `kind`, its settings and `open`: a class in the module of its adapter. A plugin is the same in
another distribution, whose entry point has its name.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, Generic, Protocol, Self, TypeVar, Union, cast, get_args
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from core.ports import Clock

if TYPE_CHECKING:
    import aiohttp
    from pydantic_settings import BaseSettings

C = TypeVar("C", bound="BaseSettings")

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})

EnvironmentName = Annotated[str, Field(pattern="^[A-Z][A-Z0-9_]*$")]
"""The name of a variable that contains a secret."""

Url = Annotated[str, Field(pattern=r"^https?://[^/?#\s]+[^?#\s]*$")]
"""A server with the path of its API."""


def is_loopback(url: str) -> bool:
    """Return whether an address, with or without a scheme, is on this machine."""
    try:
        return urlsplit(url if "//" in url else f"//{url}").hostname in LOOPBACK
    except ValueError:
        return False


class Section(BaseModel):
    """A section in which unknown keys are errors, because they are probably misspelt."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @property
    def label(self) -> str:
        """Return the kind of the section for people, such as “github issue”; empty if it has none."""
        return str(getattr(self, "kind", "")).replace("_", " ")

    def beside(self, folder: Path) -> Self:
        """Return the section with the paths in it, which are relative to the folder, made absolute."""
        return self.model_copy(
            update={name: _absolute(value, folder) for name, value in self if isinstance(value, Path | dict)}
        )


def _absolute(value: object, folder: Path) -> object:
    match value:
        case Path():
            return folder / value
        case dict():
            return {name: _absolute(each, folder) for name, each in value.items()}
        case _:
            return value


class HostSettings(Protocol):
    """The settings of the process that systems need. Secrets are only read by the name that a section gives."""

    @property
    def data_dir(self) -> Path: ...
    @property
    def database(self) -> str: ...
    @property
    def public_url(self) -> str: ...

    def chat(self, kind: type[C], /) -> C:
        """Return the settings of a chat."""
        ...

    def secret(self, variable: str, name: str, /) -> str:
        """Return the secret of `name` in an environment variable. Raises ConfigurationError if there is none."""
        ...


@dataclass(frozen=True, slots=True)
class Host:
    """The parts of the process that a system needs: settings, a session for HTTP requests, and the time."""

    settings: HostSettings
    session: aiohttp.ClientSession
    clock: Clock


T = TypeVar("T")
S = TypeVar("S", bound=Section)
Declarations = Iterable[tuple[str, T, str]]
"""Declarations, each a name, its value, and the module or the distribution."""

installed = cache(entry_points)  # of all distributions, which are read once


def modules(package: ModuleType, name: str = "") -> Iterator[ModuleType]:
    """Import the modules of a package one after the other: all, or those whose names share a word with a name."""
    words = set(name.split("_"))
    names = sorted(each.name for each in pkgutil.iter_modules(package.__path__))
    return (import_module(f"{package.__name__}.{each}") for each in names if not name or words & set(each.split("_")))


def declared(of: Iterable[ModuleType], names: Callable[[Any], Iterable[str]]) -> Declarations[Any]:
    """Yield what modules declare, by the names of a value. A class that a module imports is declared elsewhere."""
    for module in of:
        for value in vars(module).values():
            if getattr(value, "__module__", "") == module.__name__ or not isinstance(value, type):
                yield from ((name, value, module.__name__) for name in names(value))


def unique(declarations: Declarations[T]) -> dict[str, T]:
    """Return what is declared by name. Raises ValueError that names both modules or distributions if two claim one name."""
    claims = dict[str, tuple[T, str]]()
    for name, value, owner in declarations:
        first, other = claims.setdefault(name, (value, owner))
        if first is not value:
            raise ValueError(f"{other} and {owner} both declare {name}: rename or remove one of them.")
    return {name: value for name, (value, _) in claims.items()}


class Registry(Generic[T]):
    """Declarations by name: those of modules of this product, and plugins, by the names of their entry points.

    `own` yields the declarations of modules: all, or at least those of a given name. `names` are those that a value declares,
    none if it is of another sort. `groups` has the loader of each group of entry points. A plugin is loaded when its name is
    looked for, or when all are.
    """

    def __init__(
        self,
        own: Callable[[str], Declarations[T]],
        names: Callable[[Any], Iterable[str]],
        groups: Mapping[str, Callable[[EntryPoint], Any]],
    ) -> None:
        self._own = own
        self._names = names
        self._groups = groups

    def all(self) -> dict[str, T]:
        """Return everything by name, except plugins that cannot be used. Raises ValueError if two modules claim a name."""
        usable = {name: plugin for name, plugin in self._plugins().items() if not isinstance(plugin, ValueError)}
        return dict(sorted({**usable, **unique(self._own(""))}.items()))

    def named(self, name: str) -> T | None:
        """Return what has a name, the product's own first; None if nothing has.

        Raises ValueError that names the distribution of a plugin that cannot be used.
        """
        own = next((own for each, own, _ in self._own(name) if each == name), None)
        if isinstance(value := own or self._plugin(name), ValueError):
            raise value
        return value

    def faults(self) -> dict[str, str]:
        """Return by name why plugins cannot be used, with their distributions."""
        return {name: str(plugin) for name, plugin in self._plugins().items() if isinstance(plugin, ValueError)}

    def _plugins(self) -> dict[str, T | ValueError]:
        return {point.name: self._plugin(point.name) for point in self._points}

    def _plugin(self, name: str) -> Any:
        """Return a plugin, or the ValueError that says why it cannot be used; None if there is none."""
        claims = [(name, each, f"{each.dist and each.dist.name}") for each in self._points if each.name == name]
        fault = f"plugin {' and '.join(owner for _, _, owner in claims)} cannot be used: "
        try:
            unique((*self._own(name), *claims))
            for _, point, _ in claims:
                plugin = self._groups[point.group](point)
                return plugin if name in self._names(plugin) else ValueError(f"{fault}{point.value} is not {name}")
        except Exception as error:  # noqa: BLE001  # whatever the code of a plugin raises
            return ValueError(f"{fault}{error}")
        return None

    @cached_property
    def _points(self) -> Sequence[EntryPoint]:
        return [point for group in self._groups for point in installed().select(group=group)]


class Later:
    """An annotation that looks for a type when a value is validated, and not when the module of the model is loaded."""

    def __init__(self, types: Callable[[], Any]) -> None:
        self._types = types

    def validated(self, given: Any) -> Any:
        """Return the value of what is given. Raises ValidationError, whose place pydantic adds to that of the model."""
        return TypeAdapter(self._types()).validate_python(given)

    def __get_pydantic_core_schema__(self, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.validated)

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(TypeAdapter(self._types()).core_schema)


class Kinds(Registry[type[S]], Later):
    """The kinds of sections that the modules of a package declare as subclasses of `base` with a literal `kind`.

    A section is validated by the class of its kind. Only modules are loaded for it that share a word with the kind in
    their names, so the module that declares it must. `others` are sections that are declared elsewhere; those of another
    base are left out.
    """

    def __init__(
        self,
        package: ModuleType,
        base: type[S],
        groups: Mapping[str, Callable[[EntryPoint], Any]],
        others: Callable[[], Iterable[type[Section]]] = tuple[type[Section]],
    ) -> None:
        Registry.__init__(self, self._sections, self._kinds, groups)
        Later.__init__(self, self._union)
        self.package = package
        self._base = base
        self._others = others

    def validated(self, given: Any) -> Any:
        """Return the section that is given. Raises ValidationError, and ValueError without a kind that exists."""
        if isinstance(given, self._base):
            return given
        kind = cast("dict[str, Any]", given).get("kind") if isinstance(given, dict) else None
        section = self.named(kind) if isinstance(kind, str) else None
        if section is None:
            problem = f"there is no kind {kind}" if isinstance(kind, str) else "`kind` is missing"
            raise ValueError(f"{problem}: use one of {', '.join(self.all())}")
        return section.model_validate(given)

    def _sections(self, kind: str) -> Declarations[Any]:
        yield from ((each, section, section.__module__) for section in self._others() for each in self._kinds(section))
        yield from declared(modules(self.package, kind), self._kinds)

    def _kinds(self, value: Any) -> Iterable[str]:
        field = value.model_fields.get("kind") if isinstance(value, type) and issubclass(value, self._base) else None
        return get_args(field and field.annotation)

    def _union(self) -> Any:
        return Annotated[Union[tuple(self.all().values())], Field(discriminator="kind")]  # noqa: UP007  # known only now
