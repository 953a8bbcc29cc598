"""The pages of answers that a definition describes, the items in them, and the people on call that schedules name."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, cast

from pydantic_core import to_json

from adapters.http import Http, HttpAnswer, gaps_in, json_in, typed
from adapters.readers.definition import Definition, Details, Never, Paging, People, Reading, Request, Types
from adapters.readers.values import (
    LANGUAGES,
    JsonItem,
    Path,
    Values,
    address,
    amount,
    filled,
    moment,
    name_of,
    parameters,
    text_of,
    texts,
)
from adapters.tools.section import answers, chosen, kept
from core.model.errors import ToolUnavailable
from core.model.findings import Gap, GapReason
from core.ports import Partial, gap_of

MAX_EACH = 20  # values for which a further request is sent
MAX_QUOTE = 300  # characters of a failure, or of a record without a time, that are quoted
MAX_FAILURES = 5  # of one answer that are named
CUT = Gap("", GapReason.LEFT_OUT, "what is on further pages")
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
        root = await self._read(reading, answer)
        roots, gaps, following = Partial([root]), list[Gap](), None
        try:
            following = _following(reading.paging, root, answer, parameter_values)
        except ValueError:
            gaps.append(CUT)
        if reading.then is not None:
            gaps += await asyncio.to_thread(_failures, reading, root)
            roots = await self._each(reading, reading.then, root, parameter_values)
        items = list[JsonItem]()
        for each in roots:
            page_items = await asyncio.to_thread(self._items, reading, each)
            items += page_items
            gaps += (*gaps_in(each), *page_items.gaps)
        gaps += roots.gaps
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

    async def items(self, reading: Reading, values: Values, made: Callable[[JsonItem], T | None]) -> Partial[T]:
        """Return what is made of the items of all pages, with the gaps. Raises ToolUnavailable as `mapped` does."""
        results = Partial[T]()
        async for page in self.every(reading, values):
            items = await self.mapped(replace(page, gaps=(*page.gaps, CUT)) if page.is_cut else page, made)
            results += items
            results.gaps += items.gaps
        return results

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

    async def mapped(self, page: ReadPage, made: Callable[[JsonItem], T | None]) -> Partial[T]:
        """Return what is made of the items, without what is None, with the gaps of the page and one for odd items.

        Raises ToolUnavailable if the page has no gap, and nothing can be made of any item.
        """
        results = await asyncio.to_thread(typed, Partial(page.items, page.gaps), made)
        if results.gaps and not results and not page.gaps:
            raise ToolUnavailable(self.http.unexpected(b"", reason=results.gaps[-1].detail))
        return results

    async def detailed(self, reading: Reading, details: Details, item: JsonItem, values: Values) -> JsonItem:
        """Return an item with the answer to its further request as `details`. Raises ToolUnavailable."""
        id_ = text_of(details.of.first(item))
        if not id_:
            return item
        answer = await self._read(reading, await self.send(details.request, {**values, "item": id_}))
        return replace(item, value={**item.value, "details": answer})

    async def _each(self, reading: Reading, then: Request, root: Any, values: Values) -> Partial[Any]:
        lists, path = (reading.each[:-1], reading.each[-1]) if reading.each[1:] else (reading.each, Path("$"))
        try:
            wanted = typed(_within(lists, root), lambda item: _id_of(path.first(item)))
        except ValueError as error:
            raise self._unexpected(root) from error
        read = chosen(list(dict.fromkeys(wanted)), MAX_EACH, "", str)

        async def one(item: str) -> Any:
            return await self._read(reading, await self.send(then, {**values, "item": item}))

        given = await answers([(item, one(item)) for item in read])
        errors = [(item, each) for item, each in zip(read, given, strict=True) if isinstance(each, ToolUnavailable)]
        if errors and len(errors) == len(read):
            raise errors[0][1]
        gaps = [*wanted.gaps, *(gap_of(item, error) for item, error in errors), *read.gaps]
        return Partial((each for each in given if not isinstance(each, ToolUnavailable)), gaps)

    async def types(self, types: Types, values: Values) -> Mapping[str, frozenset[str]]:
        """Return the types of metrics by name. Raises ToolUnavailable."""
        root = JsonItem(await self._read(types, await self.send(types.request, values)))
        given = next((each for path in types.items if isinstance(each := path.first(root), dict)), dict[str, Any]())
        return {name: frozenset(map(text_of, types.type.all(JsonItem(each)))) for name, each in given.items()}

    async def _read(self, reading: Reading, answer: HttpAnswer) -> Any:
        return await asyncio.to_thread(self._parsed, reading, answer.body)

    def _parsed(self, reading: Reading, body: bytes) -> Any:
        """Return the JSON of an answer; of lines, the objects in them."""
        try:
            if reading.format == "json":
                return json_in(body)
            lines = [line for line in body.splitlines() if line.strip()]
            objects = typed(lines, _object_in)
        except ValueError as error:
            raise ToolUnavailable(self.http.unexpected(body, reason=str(error))) from error
        if lines and not objects:
            raise ToolUnavailable(self.http.unexpected(body))
        return objects

    def _items(self, reading: Reading, root: Any) -> Partial[JsonItem]:
        gaps = [*_failures(reading, root), *_left_out(reading.left_out, root)]
        try:
            level = _within(reading.items, root)
            if reading.columns is not None:
                level = _inside(level, reading.columns, _rows)
        except ValueError as error:
            if gaps:
                raise ToolUnavailable(f"{self.http.system} answered: {gaps[0].detail}.") from error
            raise self._unexpected(root) from error
        return Partial(level, (*gaps, *level.gaps))

    def _unexpected(self, root: Any) -> ToolUnavailable:
        return ToolUnavailable(self.http.unexpected(to_json(root)))


def _object_in(line: bytes) -> dict[str, Any]:
    value = json_in(line)
    if not isinstance(value, dict):
        raise ValueError("a line is no object")  # noqa: TRY004  # of an answer, not of a caller
    return cast("dict[str, Any]", value)


def _id_of(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise ValueError(f"{value!r} is not an id")
    return text_of(value)


def _within(lists: Sequence[Path], root: Any) -> Partial[JsonItem]:
    """Return the items of lists in lists. Raises ValueError if there is no list."""
    level = Partial([JsonItem(root)])
    for path in lists:
        level = _inside(level, path, list)
    return level


def _inside(level: Partial[JsonItem], path: Path, items: Callable[[list[Any]], list[Any]]) -> Partial[JsonItem]:
    """Return the items in each item, with a gap for those that hold no list. Raises ValueError if none does."""
    inner = typed(
        level, lambda item: [JsonItem(each, (item.value, *item.within)) for each in items(path.elements(item))]
    )
    if level and not inner:
        raise ValueError(f"there is no list at {path.text}")
    return Partial((each for inside in inner for each in inside), inner.gaps)


def _rows(columns: list[Any]) -> list[Any]:
    if not all(isinstance(each, list) for each in columns):
        raise ValueError("a column is not a list")
    return [list(row) for row in zip(*columns, strict=True)]


def _failures(reading: Reading, root: Any) -> list[Gap]:
    paths = () if isinstance(reading.partial, Never) else reading.partial
    values = [(path, value) for path in paths for value in path.all(JsonItem(root)) if value and value != "0"]
    reasons = dict.fromkeys(
        " ".join(each.split()) if isinstance(each, str) else f"an incomplete answer ({path.text}: {text_of(each)})"
        for path, each in values
    )
    return [Gap("", GapReason.FAILED, text[:MAX_QUOTE].rstrip(".")) for text in list(reasons)[:MAX_FAILURES]]


def _left_out(reasons: Mapping[str, Path], root: Any) -> list[Gap]:
    names = {why: ", ".join(dict.fromkeys(map(text_of, path.all(JsonItem(root))))) for why, path in reasons.items()}
    return [Gap("", GapReason.LEFT_OUT, f"{why}: {named}"[:MAX_QUOTE]) for why, named in names.items() if named]


def _first(paging: Paging | None) -> dict[str, int]:
    return {} if paging is None else {"offset": {"offset": 0}, "page": {"page": paging.first}}.get(paging.by, {})


def _following(paging: Paging | None, root: Any, answer: HttpAnswer, values: Values) -> Values | None:
    """Return the values that the next page needs; None if there is none. Raises ValueError if that is not known."""
    if paging is None or (paging.more is not None and not paging.more.one(JsonItem(root))):
        return None
    following = paging.next.one(JsonItem(root)) if paging.next is not None else None
    match paging.by:
        case "cursor":
            if not isinstance(following, str | int | list | None):
                raise ValueError("no position of a page")  # noqa: TRY004  # of an answer, not of a caller
            return None if following in (None, "", values.get("cursor")) else {"cursor": following}
        case "link":
            link = name_of(following) if paging.next is not None else _link(answer)
            return None if link in ("", values.get("link")) else {"link": link}
        case "offset":
            return {"offset": values["offset"] + paging.size}
        case "page":
            return {"page": values["page"] + 1}
        case "time":
            return None


def _link(answer: HttpAnswer) -> str:
    """Return the next page that the header Link names; empty for none. Sentry's last page names one without results."""
    links = [
        (
            url,
            {name.strip(): value.strip("\"' ") for name, _, value in (each.partition("=") for each in rest.split(";"))},
        )
        for url, _, rest in (
            each.strip(", ").partition(">") for each in answer.headers.get("Link", "")[:20_000].split("<")
        )
    ]
    following = (
        url for url, given in links if "next" in given.get("rel", "").split() and given.get("results") != "false"
    )
    return next(following, "")


MOMENT = timedelta(minutes=1)  # length of the requested range, which must not be empty
Ids = Mapping[str, tuple[str, ...]]  # of the schedules of each team
_Ranked = tuple[float, str]


@dataclass(frozen=True, slots=True)
class Schedules:
    """Implements `core.ports.OnCall`. `ids` are those of each kind of schedules in the definition; they are read in order."""

    name: str
    pages: Pages
    definition: Definition
    ids: Mapping[str, Ids]

    @property
    def teams(self) -> frozenset[str]:
        return frozenset(team for of_team in self.ids.values() for team in of_team)

    async def people(self, team_id: str, at: datetime) -> Sequence[str]:
        given = [(people, each) for people, of_team in self._kinds() for each in of_team.get(team_id, ())]
        people_read = await kept(self.name, [(each, self._on_duty(people, each, at)) for people, each in given])
        ranked = sorted(people_read, key=lambda person: person[0])
        return Partial(dict.fromkeys(name for _, name in ranked), people_read.gaps)

    async def check(self) -> None:
        """Raise ToolUnavailable if the token, its permissions, a schedule's id or the connection are wrong."""
        if self.definition.check is not None:
            await self.pages.send(self.definition.check, {})
            return
        for people, of_team in self._kinds():
            for each in dict.fromkeys(each for ids in of_team.values() for each in ids):
                await self._on_duty(people, each, datetime.now(UTC))

    def _kinds(self) -> Iterator[tuple[People, Ids]]:
        return ((people, self.ids.get(kind, {})) for kind, people in self.definition.people.items())

    async def _on_duty(self, people: People, schedule: str, at: datetime) -> list[_Ranked]:
        on_duty = Partial[_Ranked]()
        async for page in self.pages.every(people, {"schedule": schedule, "start": at, "end": at + MOMENT}):
            persons = await self.pages.mapped(page, lambda item: _person(people, item, at))
            on_duty += persons
            on_duty.gaps += persons.gaps
            if page.is_cut:
                raise ToolUnavailable(f"{self.name} has more than {len(on_duty)} people on call for one team.")
        return on_duty


def _person(people: People, item: JsonItem, at: datetime) -> _Ranked | None:
    start = people.start.first(item) if people.start is not None else None
    end = people.end.first(item) if people.end is not None else None
    if (start is not None and at < moment(start)) or (end is not None and at >= moment(end)):
        return None
    name = texts(people.name, item)
    if not name:
        raise ValueError("a person has no name")
    return (amount(people.rank.first(item)) if people.rank is not None else 0.0), name
