"""Answers that a system gave, played back with one value replaced by an odd one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

import adapters.http
from adapters.http import HttpAnswer

EARLIEST, LATEST = "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-12:00"  # no times of UTC
DEEP: Any = "bottom"
for _ in range(300):
    DEEP = [DEEP]
ODD: Sequence[Any] = (
    None,
    True,
    False,
    0,
    -1,
    1e308,
    10**40,
    float("nan"),
    "",
    " ",
    "x",
    "NaN",
    "Infinity",
    "9" * 400,
    "\x00",
    "\ud800",
    "b'\\xff\\x00'",
    "y" * 100_000,
    EARLIEST,
    LATEST,
    "2026-03-14T09:30:00+24:00",
    "2026-03-14T09:30:00",
    "99999999999999-01-01T00:00:00Z",
    "mailto:a@b",
    "http://[::1",
    "javascript:alert(1)",
    "//\u2028@:99999/%ff",
    [],
    {},
    [[]],
    ["x"],
    [None],
    {"x": None},
    {"": [{}]},
    DEEP,
)
Place = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """An odd value in a place of the answer with this number. `was` is the value that it replaces."""

    answer: int
    place: Place
    was: Any
    odd: Any

    def __str__(self) -> str:
        return f"answer {self.answer}: {'.'.join(map(str, self.place)) or 'all'} = {json.dumps(self.odd)[:60]}"


@dataclass(slots=True)
class Tape:
    """The answers to the requests that were made, in order, and then these again, by request."""

    answers: list[tuple[str, HttpAnswer]] = field(default_factory=list[tuple[str, HttpAnswer]])
    _play: dict[str, HttpAnswer] | None = None

    def install(self, patch: pytest.MonkeyPatch) -> None:
        real = adapters.http.exchange

        async def exchange(_: Any, method: str, url: Any, **options: Any) -> HttpAnswer:
            page = f"{method} {url}".partition("?")[0]
            request = f"{page}\n{url} {options.get('data')!r}"
            if self._play is None:
                answer = await real(_, method, url, **options)
                self.answers.append((request, answer))
                return answer
            like = (answer for asked, answer in self._play.items() if asked.partition("\n")[0] == page)
            return self._play.get(request) or next(like, HttpAnswer(404, {}, b"{}"))

        patch.setattr(adapters.http, "exchange", exchange)

    def replay(self, change: Change | None = None) -> None:
        """Answer from now on as before, but for the change."""
        self._play = dict(self.answers)
        if change is not None:
            request, answer = self.answers[change.answer]
            body = replaced(_parsed(answer.body), change.place, change.odd)
            self._play[request] = replace(answer, body=_written(body, answer.body))

    def changes(self) -> Iterator[Change]:
        """Yield every change of one value."""
        for number, (_, answer) in enumerate(self.answers):
            for place, was in places(_parsed(answer.body)):
                yield from (Change(number, place, was, odd) for odd in ODD)


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        pass
    try:
        return [json.loads(line) for line in body.splitlines()]
    except ValueError:
        return None


def _written(value: Any, before: bytes) -> bytes:
    try:
        json.loads(before)
    except ValueError:
        return b"\n".join(json.dumps(each).encode() for each in (value if isinstance(value, list) else [value]))
    return json.dumps(value).encode()


def places(value: Any, at: Place = ()) -> Iterator[tuple[Place, Any]]:
    yield at, value
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, each in members:
        yield from places(each, (*at, name))


def replaced(value: Any, place: Place, odd: Any) -> Any:
    if not place:
        return odd
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[place[0]] = replaced(copy[place[0]], place[1:], odd)
    return copy
