"""People on call, from the schedules of a system that a definition describes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from adapters.readers.definition import Definition, People
from adapters.readers.json_path import JsonItem
from adapters.readers.pages import Pages
from adapters.readers.values import amount, moment, texts
from adapters.tools.parts import kept
from core.model.errors import ToolUnavailable
from core.ports import Partial

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
