"""The registry: what the modules of a package declare, so that a new kind is one new module.

Nothing is listed anywhere. A webhook's format is a value of a module in `adapters.alerts`. Everything else is a section
of plumbline.yaml, with its `kind`, its settings and `open`: a class in the module of its adapter.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from types import ModuleType
from typing import Annotated, Any, Generic, TypeVar, Union, cast, get_args

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from adapters.section import Section

T = TypeVar("T")
S = TypeVar("S", bound=Section)


def modules(package: ModuleType, first: str = "") -> Iterator[ModuleType]:
    """Import the modules of a package one after the other; those whose names begin with the word `first` come first."""
    names = sorted(each.name for each in pkgutil.iter_modules(package.__path__))
    for name in sorted(names, key=lambda name: name.partition("_")[0] != first):
        yield import_module(f"{package.__name__}.{name}")


def unique(declared: Iterable[tuple[str, T, str]]) -> dict[str, T]:
    """Return what modules declare by name. Raises ValueError that names both modules if two claim one name."""
    owners, values = dict[str, str](), dict[str, T]()
    for name, value, module in declared:
        if name in values and values[name] is not value:
            raise ValueError(f"{owners[name]} and {module} both declare {name}: rename one of them.")
        owners.setdefault(name, module)
        values[name] = value
    return values


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


class Kinds(Later, Generic[S]):
    """The kinds of sections that the modules of a package declare as subclasses of `base` with a literal `kind`.

    A section is validated by the class of its kind, for which no other module of the package is loaded if the kind
    begins with the first word of its module's name. `others` are declared elsewhere, and come first.
    """

    def __init__(
        self, package: ModuleType, base: type[S], others: Callable[[], Mapping[str, type[S]]] = dict[str, type[S]]
    ) -> None:
        super().__init__(self._union)
        self.package = package
        self._base = base
        self._others = others

    def all(self) -> dict[str, type[S]]:
        """Return every section by its kind. Raises ValueError if two claim one."""
        others = ((kind, section, section.__module__) for kind, section in self._others().items())
        return dict(sorted(unique((*others, *self._declared(""))).items()))

    def section(self, kind: str) -> type[S] | None:
        """Return the section of a kind; None if nothing declares it."""
        if kind in (others := self._others()):
            return others[kind]
        return next((section for declared, section, _ in self._declared(kind) if declared == kind), None)

    def validated(self, given: Any) -> Any:
        """Return the section that is given. Raises ValidationError, and ValueError without a kind that exists."""
        if isinstance(given, self._base):
            return given
        kind = cast("dict[str, Any]", given).get("kind") if isinstance(given, dict) else None
        section = self.section(kind) if isinstance(kind, str) else None
        if section is None:
            problem = f"there is no kind {kind}" if isinstance(kind, str) else "`kind` is missing"
            raise ValueError(f"{problem}: use one of {', '.join(self.all())}")
        return section.model_validate(given)

    def _declared(self, kind: str) -> Iterator[tuple[str, type[S], str]]:
        """Yield the kinds that modules declare, beginning with the modules that share their first word with this kind."""
        for module in modules(self.package, first=kind.partition("_")[0]):
            for value in vars(module).values():
                if isinstance(value, type) and issubclass(value, self._base) and value.__module__ == module.__name__:
                    field = value.model_fields.get("kind")
                    yield from ((each, value, module.__name__) for each in get_args(field and field.annotation))

    def _union(self) -> Any:
        sections = tuple(self.all().values())
        return Annotated[Union[sections], Field(discriminator="kind")]  # noqa: UP007  # known only now
