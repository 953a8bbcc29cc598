"""Templates of requests. A value cannot leave the place where it stands, whatever it holds.

`${name}` is replaced with a value, `${start:ms}` with a time in a unit. A member that is nothing but a placeholder has
its value as it is, and is left out without one. Within a longer text, a name becomes a whole string of the request's
query language, with its quotes, so `{app=${service}}` is written without any.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from urllib.parse import quote

from core.model.errors import ToolUnavailable

MAX_NAME = 128  # characters of a service's name
_PLACEHOLDER = re.compile(r"\$\{(\w+)(?::(\w+))?\}")
_WORD = re.compile(r"[\w./-]{1,200}", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
Values = Mapping[str, Any]
Services = Mapping[str, str | Mapping[str, str]]  # service → its name or its labels in a system

UNITS: dict[str, Callable[[timedelta], int | str]] = {
    "s": lambda span: span // timedelta(seconds=1),
    "ms": lambda span: span // timedelta(milliseconds=1),
    "ms_text": lambda span: str(span // timedelta(milliseconds=1)),
    "us": lambda span: span // _MICROSECOND,
    "ns": lambda span: span // _MICROSECOND * 1_000,
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
        return UNITS[form](value - _EPOCH) if form in UNITS else TIMES[form or "iso"](value.astimezone(UTC))
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
