"""The pages of answers that a definition describes, and the items in them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

from pydantic_core import from_json

from adapters.http import Http, HttpAnswer
from adapters.readers.definition import Paging, Reading, Request, Types
from adapters.readers.json_path import JsonItem, Path
from adapters.readers.template import LANGUAGES, Values, address, filled, parameters
from adapters.readers.values import Untimed, text_of
from adapters.tools.parts import answers, chosen
from core.model.errors import ToolUnavailable
from core.model.explanation import Gap, GapReason
from core.ports import gap_of

MAX_EACH = 20  # values for which a further request is sent
MAX_SAID = 300  # characters of a failure
MAX_FAILURES = 5  # of one answer, and records without a time, that are named
_NEXT = re.compile(r"<([^<>]{1,4000})>([^,<]{0,400})")
_IS_NEXT = re.compile(r'\brel="?next"?(?![\w-])')
_NO_MORE = re.compile(r'\bresults="false"')  # of Sentry, whose last page names a next one, too
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReadPage:
    """The items of one page and what of it could not be read.

    `following` has the values for the next one, if any; with `is_cut`, the next one is not read.
    """

    items: Sequence[JsonItem]
    gaps: Sequence[Gap] = ()
    following: Values | None = None
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class Pages:
    """Asks one system. `settings` are the values of the definition's settings, without empty ones."""

    http: Http
    settings: Mapping[str, str] = field(default_factory=dict[str, str])

    async def page(self, reading: Reading, values: Values) -> ReadPage:
        """Return one page. Raises ToolUnavailable, and Unaskable for a name that the request cannot hold."""
        size = reading.paging.size if reading.paging is not None else values.get("limit")
        parameter_values = {"limit": size, **_first(reading.paging), **values}
        if (limit := parameter_values.get("limit")) is not None and size is not None:
            parameter_values["limit"] = min(limit, size)
        answer = await self.send(reading.request, parameter_values)
        roots, gaps = [await self._read(reading, answer)], list[Gap]()
        following = _following(reading.paging, roots[0], answer, parameter_values)
        if reading.then is not None and reading.each is not None:
            roots, gaps = await self._each(reading, roots[0], parameter_values)
        items = list[JsonItem]()
        for root in roots:
            page_items, missing = await asyncio.to_thread(self._items, reading, root)
            items += page_items
            gaps += missing
        is_full = len(items) >= (parameter_values.get("limit") or 1)
        if reading.paging is not None and reading.paging.by in ("offset", "page") and reading.paging.more is None:
            following = following if is_full else None
        return ReadPage(items, gaps, following)

    async def every(self, reading: Reading, values: Values) -> AsyncIterator[ReadPage]:
        """Yield the pages in order, at most as many as `paging` allows."""
        most = reading.paging.most if reading.paging is not None else 1
        for number in range(1, most + 1):
            page = await self.page(reading, values)
            yield replace(page, is_cut=number == most and page.following is not None)
            if page.following is None:
                return
            values = {**values, **page.following}

    async def send(self, request: Request, values: Values) -> HttpAnswer:
        """Send one request and return its answer. Raises ToolUnavailable, and Unaskable."""
        all_values = {**self.settings, **values}
        if (link := all_values.get("link")) is not None:
            return await self.http.answer(link)
        language = LANGUAGES[request.language] if request.language is not None else None
        return await self.http.answer(
            address(request.path, all_values),
            parameters(request.query, all_values, language),
            form=None if request.form is None else parameters(request.form, all_values, language),
            value=filled(request.json_, all_values, language),
            headers={name: each for name, each in parameters(request.headers, all_values).items() if each},
        )

    def mapped(self, items: Sequence[JsonItem], made: Callable[[JsonItem], T | None]) -> tuple[list[T], list[Gap]]:
        """Return what is made of the items, without what is None, and gaps for those of an unexpected format.

        A gap quotes what has no time. Raises ToolUnavailable if all have an unexpected format.
        """
        results, untimed, odd = list[T](), list[str](), 0
        for item in items:
            try:
                each = made(item)
            except Untimed as error:
                untimed.append(" ".join(str(error).split())[:MAX_SAID])
                continue
            except ValueError:
                odd += 1
                continue
            if each is not None:
                results.append(each)
        if odd and odd == len(items):
            raise self._unexpected()
        without = f"the times of {len(untimed)} of {len(items)} cannot be read: {'; '.join(untimed[:MAX_FAILURES])}"
        return results, [*_odd(odd, len(items)), *([Gap("", GapReason.LEFT_OUT, without)] if untimed else [])]

    async def _each(self, reading: Reading, root: Any, values: Values) -> tuple[list[Any], list[Gap]]:
        assert reading.each is not None
        assert reading.then is not None
        then = reading.then
        if not isinstance(root, dict | list):
            raise self._unexpected()
        try:
            wanted = list(dict.fromkeys(map(text_of, reading.each.elements(JsonItem(root)))))
        except ValueError as error:
            raise self._unexpected() from error
        read = chosen(wanted, MAX_EACH, "", str)

        async def one(item: str) -> Any:
            return await self._read(reading, await self.send(then, {**values, "item": item}))

        given = await answers([(item, one(item)) for item in read])
        errors = [(item, each) for item, each in zip(read, given, strict=True) if isinstance(each, ToolUnavailable)]
        if errors and len(errors) == len(read):
            raise errors[0][1]
        gaps = [*(gap_of(item, error) for item, error in errors), *read.gaps]
        return [each for each in given if not isinstance(each, ToolUnavailable)], gaps

    async def types(self, types: Types, values: Values) -> Mapping[str, frozenset[str]]:
        """Return the types of metrics by name. Raises ToolUnavailable."""
        root = JsonItem(await self._read(types, await self.send(types.request, values)))
        given = next((each for path in types.items if isinstance(each := path.first(root), dict)), dict[str, Any]())
        return {name: frozenset(map(text_of, types.type.all(JsonItem(each)))) for name, each in given.items()}

    async def _read(self, reading: Reading, answer: HttpAnswer) -> Any:
        return await asyncio.to_thread(self._parsed, reading, answer.body)

    def _parsed(self, reading: Reading, body: bytes) -> Any:
        """Return the JSON of an answer; of lines, a list. A line that is none counts as an item of a wrong format."""
        if reading.format == "lines":
            lines = [_line(each) for each in body.splitlines() if each.strip()]
            if lines and not any(isinstance(each, dict) for each in lines):
                raise self._unexpected()
            return lines
        try:
            return from_json(body)
        except ValueError as error:
            raise self._unexpected() from error

    def _items(self, reading: Reading, root: Any) -> tuple[list[JsonItem], list[Gap]]:
        gaps = [*_failures(reading.failures, root), *_left_out(reading.left_out, root)]
        try:
            level = [JsonItem(root)]
            for path in reading.items:
                level, odd = _inside(path, level)
                gaps += odd
            if reading.columns is not None:
                level, odd = _rows(reading.columns, level)
                gaps += odd
        except ValueError as error:
            if gaps:
                raise ToolUnavailable(f"{self.http.system} answered: {gaps[0].detail}.") from error
            raise self._unexpected() from error
        return level, gaps

    def _unexpected(self) -> ToolUnavailable:
        return ToolUnavailable(f"{self.http.system} answered in an unexpected format.")


def _line(text: bytes) -> Any:
    try:
        return from_json(text)
    except ValueError:
        return None


def _rows(path: Path, level: Sequence[JsonItem]) -> tuple[list[JsonItem], list[Gap]]:
    """Return the rows of the columns in each item, with a gap for those whose columns are no lists of one length.

    Raises ValueError if there are no others.
    """
    return _each(path, level, lambda columns: [list(row) for row in zip(*map(_column, columns), strict=True)])


def _column(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("a column is not a list")  # noqa: TRY004 -- like every other unexpected format
    return cast("list[Any]", value)


def _inside(path: Path, level: Sequence[JsonItem]) -> tuple[list[JsonItem], list[Gap]]:
    """Return the items within others, with a gap for those that hold no list. Raises ValueError if none does."""
    return _each(path, level, list)


def _each(
    path: Path, level: Sequence[JsonItem], values: Callable[[Iterable[Any]], list[Any]]
) -> tuple[list[JsonItem], list[Gap]]:
    inner, odd = list[JsonItem](), 0
    for item in level:
        try:
            inner += [JsonItem(each, (item.value, *item.within)) for each in values(path.elements(item))]
        except ValueError:
            odd += 1
    if odd and odd == len(level):
        raise ValueError(f"there is no list at {path.text}")
    return inner, _odd(odd, len(level))


def _odd(odd: int, every: int) -> list[Gap]:
    return [Gap("", GapReason.LEFT_OUT, f"{odd} of {every} in an unexpected format")] if odd else []


def _failures(paths: Sequence[Path], root: Any) -> list[Gap]:
    values = [
        value for path in paths for value in path.all(JsonItem(root)) if value not in (None, False, "", 0, [], {})
    ]
    reasons = dict.fromkeys(
        "an incomplete answer" if each is True else " ".join(text_of(each).split()) for each in values
    )
    return [Gap("", GapReason.FAILED, text[:MAX_SAID].rstrip(".")) for text in list(reasons)[:MAX_FAILURES]]


def _left_out(reasons: Mapping[str, Path], root: Any) -> list[Gap]:
    names = {why: ", ".join(dict.fromkeys(map(text_of, path.all(JsonItem(root))))) for why, path in reasons.items()}
    return [Gap("", GapReason.LEFT_OUT, f"{why}: {named}"[:MAX_SAID]) for why, named in names.items() if named]


def _first(paging: Paging | None) -> dict[str, int]:
    if paging is None:
        return {}
    return {"offset": {"offset": 0}, "page": {"page": paging.first}}.get(paging.by, {})


def _following(paging: Paging | None, root: Any, answer: HttpAnswer, values: Values) -> Values | None:
    """Return the values that the next page needs; None if there is none."""
    if paging is None or (paging.more is not None and not paging.more.first(JsonItem(root))):
        return None
    match paging.by:
        case "cursor":
            cursor = paging.next.first(JsonItem(root)) if paging.next is not None else None
            return None if cursor in (None, "", values.get("cursor")) else {"cursor": cursor}
        case "link":
            link = paging.next.first(JsonItem(root)) if paging.next is not None else _link(answer)
            return None if not isinstance(link, str) or link in ("", values.get("link")) else {"link": link}
        case "offset":
            return {"offset": values["offset"] + paging.size}
        case "page":
            return {"page": values["page"] + 1}
        case "time":
            return None


def _link(answer: HttpAnswer) -> str:
    """Return the next page that the header Link names; empty for none."""
    links = _NEXT.findall(answer.headers.get("Link", "")[:20_000])
    return next((url for url, rest in links if _IS_NEXT.search(rest) and not _NO_MORE.search(rest)), "")
