"""Paths of values in an answer: JSONPath (RFC 9535), from an item or, with `^`, from what contains it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, cast

from pydantic import GetPydanticSchema
from pydantic_core import core_schema

if TYPE_CHECKING:
    import jsonpath

MISSING, ODD = object(), object()  # no value there, or none because what should contain it is no object or list
_TO_ONE_VALUE = re.compile(r"\$(?:\.[A-Za-z_][\w-]*|\['[^'\\]*'\]|\[-?\d{1,9}\])*")
_KEY = re.compile(r"\.([A-Za-z_][\w-]*)|\['([^']*)'\]|\[(-?\d+)\]")


@dataclass(frozen=True, slots=True)
class JsonItem:
    """A value of an answer within others, innermost first."""

    value: Any
    within: tuple[Any, ...] = ()


class Path:
    """The path `$.name[0]` of an item, `^.name` of what contains it, `^^.name` of what contains that."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._outward = len(text) - len(text.lstrip("^"))
        self._path = f"${text.lstrip('^')}" if self._outward else text
        self._keys = _keys(self._path)
        self._list = _keys(self._path.removesuffix("[*]"))  # of which the path finds every element

    @cached_property
    def compiled(self) -> jsonpath.JSONPath | jsonpath.CompoundJSONPath:
        """Return the path for the library. Raises ValueError for one that is not JSONPath."""
        import jsonpath

        try:
            return jsonpath.compile(self._path)
        except jsonpath.JSONPathError as error:
            raise ValueError(f"{self.text!r} is not a JSONPath: {str(error).partition(chr(10))[0]}") from None

    def checked(self) -> Path:
        """Return the path. Raises ValueError for one that is not JSONPath."""
        if self._list is None:
            _ = self.compiled
        return self

    def all(self, item: JsonItem) -> list[Any]:
        """Return the values there. Raises ValueError where an answer is nested too deeply."""
        if self._outward > len(item.within):
            return []
        root = item.within[self._outward - 1] if self._outward else item.value
        if self._keys is not None:
            value = _at(root, self._keys)
            return [] if value is MISSING or value is ODD else [value]
        if self._list is not None:
            value = _at(root, self._list)
            return list(cast("dict[str, Any]", value).values()) if isinstance(value, dict) else _listed(value)
        from jsonpath import JSONPathError

        try:
            return self.compiled.findall(root) if isinstance(root, dict | list) else []
        except JSONPathError as error:
            raise ValueError(str(error)) from error

    def first(self, item: JsonItem) -> Any:
        """Return the first value there that is not null; None if there is none."""
        return next((each for each in self.all(item) if each is not None), None)

    def elements(self, item: JsonItem) -> list[Any]:
        """Return the elements of the list there; null is an empty one. Raises ValueError if there is none.

        A list at a path that ends with `[*]` may be missing. Other paths with wildcards give all values that match.
        """
        keys = self._keys if self._keys is not None else self._list
        if keys is None or self._outward:
            return self.all(item)
        value = _at(item.value, keys)
        if value is MISSING and self._keys is None:
            return []
        if not isinstance(value, list | None):
            raise ValueError(f"there is no list at {self.text}")  # noqa: TRY004  # of an answer, not of a caller
        return cast("list[Any] | None", value) or []

    def one(self, item: JsonItem) -> Any:
        """Return the value there; None if it is missing. Raises ValueError if what should hold it is a text, for example."""
        if self._keys is not None and not self._outward and _at(item.value, self._keys) is ODD:
            raise ValueError(f"{self.text} is within what is no object or list")
        return self.first(item)


def _keys(path: str) -> tuple[str | int, ...] | None:
    """Return the names and positions of a path that leads to one value; None for any other.

    They are followed here, because a compiled path takes twenty times as long for each of thousands of log lines.
    """
    if not _TO_ONE_VALUE.fullmatch(path):
        return None
    return tuple(int(key[3]) if key[3] else key[1] or key[2] for key in _KEY.finditer(path))


def _listed(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _at(value: Any, keys: Sequence[str | int]) -> Any:
    for number, key in enumerate(keys):
        if value is None and number:
            return MISSING
        if not isinstance(value, dict if isinstance(key, str) else list):
            return ODD
        if isinstance(key, str):
            value = cast("dict[str, Any]", value).get(key, MISSING)
        else:
            is_there = -len(cast("list[Any]", value)) <= key < len(cast("list[Any]", value))
            value = cast("list[Any]", value)[key] if is_there else MISSING
        if value is MISSING:
            break
    return value


def _path(text: str, info: core_schema.ValidationInfo) -> Path:
    path = Path(text)
    return path.checked() if info.context == CHECKED else path


CHECKED = "checked"
"""The context of a validation in which paths are compiled; without it they are when they are used, which is quicker."""

JsonPath = Annotated[
    Path,
    GetPydanticSchema(
        lambda _, __: core_schema.with_info_after_validator_function(_path, core_schema.str_schema(max_length=500))
    ),
]
