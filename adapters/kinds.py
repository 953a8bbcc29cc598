"""The registry: what the modules of a package declare, so that a new kind is one new module.

Nothing is listed anywhere. A webhook's format is a value of a module in `adapters.alerts`.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

T = TypeVar("T")


def modules(package: ModuleType) -> Iterator[ModuleType]:
    """Import the modules of a package one after the other."""
    for each in pkgutil.iter_modules(package.__path__):
        yield import_module(f"{package.__name__}.{each.name}")


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
