"""Places in JSON: paths (JSONPath, RFC 9535), alone or in a text, and what a body has there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from adapters.alerts import fields
from core.model.errors import ConfigurationError, MalformedInput
from core.model.text import load_json

if TYPE_CHECKING:
    import jsonpath

    Path = jsonpath.JSONPath | jsonpath.CompoundJSONPath

MAX_LEVELS = 12  # in which JSON as a text is looked for
NAMES = ("name", "key", "tag")  # of the field with the name of a label, beside its `value`


@dataclass(frozen=True, slots=True)
class TemplatePart:
    """A text, and the path of the value after it; None after the last text.

    A path may have a condition (`has_filter`), and may lead to a part of a text (`ends_in_index`).
    """

    text: str
    path: Path | None
    has_filter: bool
    ends_in_index: bool


Place = tuple[TemplatePart, ...]


@dataclass(frozen=True, slots=True)
class LabelPlaces:
    """The places of labels: the items of a list, and in an item its `name` and its `value`, the first that is not empty."""

    each: Place
    name: Place
    value: tuple[Place, ...]


def place(text: str) -> Place:
    """Return the place that a path, or a text with paths in braces, names. Raises ConfigurationError for an invalid one."""
    import jsonpath  # slow to load

    parts = list[TemplatePart]()
    rest = f"{{{text}}}" if text.startswith("$") else text
    try:
        while rest:
            before, _, rest = rest.partition("{")
            path, _, rest = rest.partition("}")
            compiled = jsonpath.compile(path) if path else None
            parts.append(TemplatePart(before, compiled, "?" in path, path[-2:-1].isdigit()))
    except jsonpath.JSONPathError as error:
        problem = str(error).partition("\n")[0]
    else:
        if any(part.path is not None for part in parts):
            return tuple(parts)
        problem = "it has no path"
    raise ConfigurationError(
        f"{text!r} in plumbline.yaml, or in a definition, is not a JSONPath: {problem}; write $.name.name."
    )


class SentBody:
    """A webhook's body, or an item in it, in which places are looked up.

    A path is tried in the body as it was sent, then in it with each text that is JSON opened. One with a condition is tried
    in a list of that alone as well, so that `$[?…]` is a condition for the body; one that ends in an index, also in the
    body with each text that has slashes as the list of its parts.
    """

    def __init__(self, sender: str, value: Any) -> None:
        self._sender = sender
        self._value = value
        self._opened = _opened(value)
        self._plain = [value] if self._opened == value else [value, self._opened]

    def text(self, places: Iterable[Place]) -> str:
        """Return the first text that is not empty; empty if there is none."""
        return next(filter(None, map(self._filled, places)), "")

    def items(self, places: LabelPlaces) -> Iterator[tuple[str, str]]:
        """Yield the labels in a list, with their names in the form of labels: `affected_service`."""
        for item in self._at(places.each[0]):
            inner = SentBody(self._sender, item)
            yield "_".join(inner.text([places.name]).lower().split()), inner.text(places.value)

    def labels(self, at: Place) -> Iterator[tuple[str, str]]:
        """Yield the names and texts in an object, in a list of objects with a name and a value, or of texts NAME:VALUE."""
        held = _opened(next(iter(self._at(at[0])), ""))
        if isinstance(held, dict):
            yield from ((name, scalar(value)) for name, value in held.items())
            return
        for item in held if isinstance(held, list) else scalar(held).split(","):
            if isinstance(item, dict):
                yield next(filter(None, (scalar(item.get(name)) for name in NAMES)), ""), scalar(item.get("value"))
            else:
                yield from fields.tags([scalar(item)]).items()

    def _filled(self, at: Place) -> str:
        """Return a text with the values at its paths; empty if one of them is."""
        filled = ""
        for part in at:
            value = ", ".join(filter(None, map(scalar, self._at(part))))
            if part.path is not None and not value:
                return ""
            filled += part.text + value
        return filled.strip()

    def _at(self, part: TemplatePart) -> list[Any]:
        """Return the values to which a path leads in the first view where it leads to any but null and empty texts."""
        import jsonpath

        if part.path is None:
            return []
        try:
            for view in self._views(part):
                if values := [match.obj for match in part.path.finditer(view) if match.obj not in (None, "")]:
                    return values
        except jsonpath.JSONPathError as error:
            problem = str(error).partition("\n")[0][:200]
            raise MalformedInput(
                f"The {self._sender} webhook cannot be searched for {part.path}: {problem}; nest it less deeply."
            ) from None
        return []

    def _views(self, part: TemplatePart) -> Iterator[Any]:
        yield from self._plain
        if part.has_filter:
            yield [self._opened]
        if part.ends_in_index:
            yield _opened(self._value, is_split=True)


def _opened(value: Any, levels: int = MAX_LEVELS, *, is_split: bool = False) -> Any:
    """Return a value in which each text that is JSON, as in the envelope of another system, is what it holds.

    If `is_split`, each other text with slashes is the list of its parts.
    """
    if isinstance(value, dict) and levels:
        return {name: _opened(field, levels - 1, is_split=is_split) for name, field in value.items()}
    if isinstance(value, list) and levels:
        return [_opened(item, levels - 1, is_split=is_split) for item in value]
    if isinstance(value, str) and levels and value.lstrip().startswith(("{", "[")):
        with suppress(ValueError):
            return _opened(load_json(value), levels - 1, is_split=is_split)
    return value.split("/") if is_split and isinstance(value, str) and "/" in value else value


def scalar(value: Any) -> str:
    """Return a text, a number or a boolean as text; empty for anything else."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int | float) else ""
