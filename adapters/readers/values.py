"""Values in an answer: their paths, and times, numbers and texts however a system writes them, and series of samples.

A path is JSONPath (RFC 9535), from an item or, with `^`, from what contains it.

Series that differ only in the part that is not shown are one, and what is known to be a counter is a rate.

Templates of requests are here, too. A value cannot leave the place where it stands, whatever it holds. `${name}` is replaced
with a value, `${start:ms}` with a time in a unit. A member that is nothing but a placeholder has its value as it is, and is
left out without one. Within a longer text, a name becomes a whole string of the request's query language, with its quotes,
so `{app=${service}}` is written without any.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast
from urllib.parse import quote
from zoneinfo import ZoneInfo

from pydantic import GetPydanticSchema
from pydantic_core import core_schema
from tzlocal.windows_tz import win_tz

from adapters.http import EPOCH, in_utc
from core.model.errors import ToolUnavailable
from core.ports import Series

if TYPE_CHECKING:
    import jsonpath

MAX_NAME = 128  # characters of a service's name
_PLACEHOLDER = re.compile(r"\$\{(\w+)(?::(\w+))?\}")
_WORD = re.compile(r"[\w./-]{1,200}", re.ASCII)
Values = Mapping[str, Any]
Services = Mapping[str, str | Mapping[str, str]]  # service → its name or its labels in a system

UNITS: dict[str, Callable[[timedelta], int | str]] = {
    "s": lambda span: span // timedelta(seconds=1),
    "ms": lambda span: span // timedelta(milliseconds=1),
    "ms_text": lambda span: str(span // timedelta(milliseconds=1)),
    "us": lambda span: span // timedelta.resolution,
    "ns": lambda span: span // timedelta.resolution * 1_000,
}
TIMES: dict[str, Callable[[datetime], str]] = {
    "iso": lambda at: at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    "seconds": lambda at: at.isoformat(timespec="seconds").replace("+00:00", "Z"),
    "offset": lambda at: at.isoformat(timespec="seconds"),
    "date": lambda at: at.date().isoformat(),
}
RAW = "raw"  # the form of a setting that is a part of the query itself
PATHS: dict[str, Callable[[str], str]] = {
    "path": lambda text: quote(text.strip("/"), safe="/"),
    "jobs": lambda text: "".join(f"job/{quote(part, safe='')}/" for part in text.split("/") if part),  # of Jenkins
    "address": str,  # that a server itself gave
}


class Unaskable(ToolUnavailable):
    """A name that a request cannot hold, which no service has."""


@dataclass(frozen=True, slots=True)
class Language:
    """The strings of a query language: their quotes, and characters that have a meaning even in them.

    Without quotes, a string is a plain word.
    """

    quotes: str
    refused: str = ""

    def literal(self, text: str) -> str:
        """Return the string for a text. Raises Unaskable."""
        if not self.quotes and _WORD.fullmatch(text):
            return text
        if not self.quotes or not text.isprintable() or any(each in text for each in self.refused):
            raise Unaskable(text)
        escaped = text.replace("\\", "\\\\").replace(self.quotes, f"\\{self.quotes}")
        return f"{self.quotes}{escaped}{self.quotes}"


LANGUAGES = {
    "cloudwatch": Language('"', "\"'\\"),
    "datadog": Language('"'),
    "datadog_metrics": Language(""),
    "dql": Language('"'),
    "dynatrace": Language('"', '"~\\'),
    "kql": Language('"'),
    "logql": Language('"'),
    "logsql": Language('"'),
    "nrql": Language("'", "'\\"),
    "promql": Language('"'),
    "sentry": Language('"', "*"),
    "spl": Language('"', "*"),
    "traceql": Language('"'),
}


def names_in(template: Any) -> Iterator[tuple[str, str, bool]]:
    """Yield each placeholder of a template: its name, its form, and whether it is a whole text."""
    for text in _texts(template):
        for match in _PLACEHOLDER.finditer(text):
            yield match[1], match[2] or "", match[0] == text


def filled(template: Any, values: Values, language: Language | None = None) -> Any:
    """Return a template's JSON with its values; None for what has none. Raises Unaskable."""
    match template:
        case str():
            whole = _PLACEHOLDER.fullmatch(template)
            if whole is not None:
                return _formed(values.get(whole[1]), whole[2])
            return _PLACEHOLDER.sub(lambda match: _within(values.get(match[1]), match[2], language), template)
        case dict():
            members = cast("dict[str, Any]", template).items()
            parts = {name: filled(each, values, language) for name, each in members}
            return {name: each for name, each in parts.items() if each is not None}
        case list():
            parts = [filled(each, values, language) for each in cast("list[Any]", template)]
            return [each for each in parts if each is not None]
        case _:
            return template


def address(template: str, values: Values) -> str:
    """Return a template's path, each value one part of it or of a segment. Raises Unaskable."""
    path = _PLACEHOLDER.sub(lambda match: _in_path(match, values), template)
    if not {".", ".."}.isdisjoint(path.split("/")):
        raise Unaskable(path)
    return path


def expression(template: str, values: Values) -> str:
    """Return a regular expression with values as they stand in a path."""
    return _PLACEHOLDER.sub(lambda match: re.escape(_in_path(match, values)), template)


def _in_path(placeholder: re.Match[str], values: Values) -> str:
    value, form = values.get(placeholder[1]), placeholder[2]
    return PATHS[form](_text(value)) if form in PATHS else quote(_text(_formed(value, form)), safe="")


def parameters(template: Mapping[str, Any], values: Values, language: Language | None = None) -> dict[str, str]:
    """Return a template's parameters as texts. Raises Unaskable."""
    return {name: _text(each) for name, each in filled(dict(template), values, language).items()}


def is_name(service: str) -> bool:
    """Return whether a text may be a service's name."""
    return 0 < len(service) <= MAX_NAME and service.isprintable()


def _within(value: Any, form: str, language: Language | None) -> str:
    formed = _formed(value, form)
    if form == RAW or language is None or not isinstance(formed, str | Mapping):
        return _text(formed)
    if isinstance(formed, Mapping):
        labels = cast("Mapping[str, str]", formed)
        return ",".join(f"{label}={language.literal(each)}" for label, each in labels.items())
    return _text(formed) if isinstance(value, datetime) else language.literal(formed)


def _formed(value: Any, form: str) -> Any:
    if isinstance(value, datetime):
        return UNITS[form](value - EPOCH) if form in UNITS else TIMES[form or "iso"](value.astimezone(UTC))
    return UNITS[form or "s"](value) if isinstance(value, timedelta) else value


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _texts(template: Any) -> Iterator[str]:
    match template:
        case str():
            yield template
        case dict():
            for each in cast("dict[str, Any]", template).values():
                yield from _texts(each)
        case list():
            for each in cast("list[Any]", template):
                yield from _texts(each)
        case _:
            return


_UNITS = ((10**11, 10**6), (10**14, 10**3), (10**17, 1))
"""Numbers below the first of each count units of as many microseconds since 1970: seconds, milliseconds, microseconds."""

_APART = re.compile(
    r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9}+)?+) ?+([+-]\d\d:?\d\d)?+ ?+([A-Za-z][\w /+.-]{0,60})?"
)
"""A time with its zone apart: an offset, a name of Windows (India Standard Time) or of the zone database, or both."""


def moment(value: Any) -> datetime:
    """Return the time of a text with a zone, or of a number since 1970 whose size shows its unit.

    A text is in ISO 8601, with the zone perhaps apart from the time, or in RFC 5322 (Sat, 14 Mar 2026 09:30:00 GMT).
    Raises ValueError for anything else.
    """
    number = _number(value)
    try:
        if number is None:
            return in_utc(_written(value))
        unit = next((each for below, each in _UNITS if abs(number) < below), None)
        return in_utc(EPOCH + timedelta(microseconds=number * unit if unit is not None else number // 1_000))
    except (KeyError, OSError, OverflowError, TypeError, ValueError) as error:  # the first two for an unknown zone
        raise ValueError(f"{value!r} is not a time") from error


def _written(text: str) -> datetime:
    if apart := _APART.fullmatch(text):
        stamp, offset, name = apart.groups()
        if offset:
            return datetime.fromisoformat(stamp + offset)
        zone = (name or "").replace(" Daylight ", " Standard ")
        return datetime.fromisoformat(stamp).replace(tzinfo=UTC if zone == "Z" else ZoneInfo(win_tz.get(zone, zone)))
    at = parsedate_to_datetime(text) if text[:3].isalpha() else datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError("it has no zone")
    return at


def amount(value: Any) -> float:
    """Return a number; NaN for none. Raises ValueError for anything else."""
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{value!r} is not a number")  # noqa: TRY004  # of an answer, not of a caller
    try:
        return float(value)
    except OverflowError as error:
        raise ValueError(f"{value!r} is not a number") from error


def name_of(value: Any) -> str:
    """Return a name or an id; empty for none. Raises ValueError for what is no text."""
    if not isinstance(value, str | None):
        raise ValueError(f"{value!r} is not a name")  # noqa: TRY004  # of an answer, not of a caller
    return value or ""


def text_of(value: Any) -> str:
    """Return a value as text: an object or a list as JSON, nothing as an empty one."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def texts(paths: Iterable[Path], item: JsonItem) -> str:
    """Return the texts at some paths, of a path with wildcards all."""
    return " ".join(filter(None, lines_at(paths, item)))


def lines_at(paths: Iterable[Path], item: JsonItem) -> list[str]:
    """Return the texts at some paths, each by itself."""
    return [text_of(each).strip() for path in paths for each in path.all(item)]


def word_of(value: Any) -> str:
    """Return a text or a whole number as text; empty for none. Raises ValueError for anything else."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else name_of(value)


def first_word(paths: Iterable[Path], item: JsonItem, kind: Callable[[Any], str] = word_of) -> str:
    """Return the first text at some paths, or whole number; empty for none. Raises ValueError for anything else."""
    return next(filter(None, (kind(path.one(item)) for path in paths)), "")


def text_in(members: Any, name: str) -> str:
    """Return the text of a field: the one with that name, or `b` in the object `a` of `a.b`; empty if it has none."""
    while isinstance(members, dict):
        whole = cast("dict[str, Any]", members).get(name)
        if isinstance(whole, str):
            return whole.strip()
        outer, _, name = name.partition(".")
        members = cast("dict[str, Any]", members).get(outer)
    return ""


def strings(value: Any) -> dict[str, str]:
    """Return the members of an object as texts; none of anything else."""
    members = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    return {name: text_of(each) for name, each in members.items()}


def _number(value: Any) -> int | float | None:
    if isinstance(value, str):
        try:
            return int(value) if value.isascii() and value.isdecimal() else float(value)
        except ValueError:
            return None
    return None if isinstance(value, bool) or not isinstance(value, int | float) else value


class Samples(NamedTuple):
    """The samples of one metric with its labels: value by time, in seconds since 1970."""

    metric: str
    labels: Mapping[str, str]
    points: Mapping[float, float]


_OF_COUNTERS = {"_total": {"counter"}, "_count": {"histogram", "summary"}, "_sum": {"histogram", "summary"}}
"""The types by the suffix of a series that only grows; in OpenMetrics, the name of a metric lacks the suffix."""


def is_counter(metric: str, types: Mapping[str, AbstractSet[str]]) -> bool | None:
    """Return whether a metric is a counter by the types that a system gives it; None if it is not known."""
    if own := types.get(metric):
        return own == {"counter"} if own in ({"counter"}, {"gauge"}) else None
    for suffix, growing in _OF_COUNTERS.items():
        base = types.get(metric.removesuffix(suffix)) if metric.endswith(suffix) else None
        if base and base <= growing:
            return True
    return None


def joined(
    service: str, samples: Iterable[Samples], hidden: frozenset[str], counters: Mapping[str, bool | None]
) -> list[Series]:
    """Return the series, sorted by name: the sum of the rates of counters, and the average of anything else."""
    groups: defaultdict[tuple[str, bool | None], list[Mapping[float, float]]] = defaultdict(list)
    for each in samples:
        grows = counters.get(each.metric)
        groups[_shown(each, hidden, is_counter=bool(grows)), grows].append(_rate(each.points) if grows else each.points)
    return [
        replace(_combined(service, metric, group, is_sum=bool(grows)), is_counter=None if grows is None else False)
        for (metric, grows), group in sorted(groups.items(), key=lambda named: named[0][0])
        if any(group)
    ]


def _shown(samples: Samples, hidden: frozenset[str], *, is_counter: bool) -> str:
    name = samples.metric + ("/s" if is_counter else "")
    labels = ", ".join(f"{label}={value}" for label, value in sorted(samples.labels.items()) if label not in hidden)
    return f"{name}{{{labels}}}" if labels else name


def _rate(points: Mapping[float, float]) -> dict[float, float]:
    """Return the growth per second up to each point. After a restart, a counter starts at zero."""
    return {
        at: (value - before if value >= before else value) / (at - earlier)
        for (earlier, before), (at, value) in pairwise(sorted(points.items()))
        if math.isfinite(before) and math.isfinite(value)
    }


def _combined(service: str, metric: str, group: Sequence[Mapping[float, float]], *, is_sum: bool) -> Series:
    times = sorted({at for points in group for at in points})
    values = [_together([points[at] for points in group if at in points], is_sum=is_sum) for at in times]
    return Series(service, metric, tuple(datetime.fromtimestamp(at, UTC) for at in times), tuple(values))


def _together(values: Sequence[float], *, is_sum: bool) -> float:
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return math.nan
    return sum(finite) if is_sum else sum(finite) / len(finite)


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
        if (keys is None and isinstance(item.value, dict | list)) or self._outward:
            return self.all(item)
        value = _at(item.value, keys or ())
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


class Words(Path):
    """Words of a definition itself, in quotation marks where a path could be."""

    def all(self, item: JsonItem) -> list[Any]:
        return [self.text.strip("'")]


def _path(text: str, info: core_schema.ValidationInfo) -> Path:
    if text.startswith("'"):
        return Words(text)
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
