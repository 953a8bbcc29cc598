"""Remarks about one incident share investigations."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any
from unittest.mock import Mock

import pytest

from core.model.conversation import PUBLIC, Audience, Person, Place, Platform, Question
from handlers.incidents import investigate_incident
from handlers.incidents.investigate_incident import MAX_ROUNDS, Rechecks


def said(person: str = "Ines") -> Question:
    place, at = Place(Platform.SLACK, "C1"), datetime(2026, 3, 14, tzinfo=UTC)
    return Question("r", "it is the pool", Person(Platform.SLACK, person), place, Audience(frozenset({PUBLIC})), at)


class Rounds:
    """Investigations that wait until they are let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.notes: list[Any] = []
        self.begun: list[str] = []
        self.read: list[int] = []
        self.go = asyncio.Event()
        monkeypatch.setattr(investigate_incident, "take_note", self._take)
        monkeypatch.setattr(investigate_incident, "reinvestigate", self._investigate)

    async def _take(self, _incident: str, note: Any, _ports: object) -> None:
        self.notes.append(note)

    async def _investigate(self, incident: str, _ports: object) -> None:
        self.begun.append(incident)
        self.read.append(len(self.notes))
        await self.go.wait()


async def test_sixty_remarks_are_read_by_two_investigations(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds, rechecks = Rounds(monkeypatch), Rechecks()
    running = [asyncio.create_task(rechecks.recheck("i", said(), Mock())) for _ in range(60)]
    await asyncio.sleep(0.01)
    assert len(rounds.notes) == 60, "each is recorded at once"
    assert rounds.begun == ["i"]
    rounds.go.set()
    await asyncio.gather(*running)
    assert rounds.begun == ["i", "i"]
    assert rounds.read[-1] == 60


async def test_a_remark_after_a_failed_investigation_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds, rechecks = Rounds(monkeypatch), Rechecks()
    rounds.go.set()

    async def fail(*_: object) -> None:
        raise RuntimeError

    working = investigate_incident.reinvestigate
    monkeypatch.setattr(investigate_incident, "reinvestigate", fail)
    with pytest.raises(RuntimeError):
        await rechecks.recheck("i", said(), Mock())
    monkeypatch.setattr(investigate_incident, "reinvestigate", working)
    await rechecks.recheck("i", said(), Mock())
    assert rounds.begun == ["i"]


async def test_remarks_in_many_threads_leave_the_processor_to_alerts(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds, rechecks = Rounds(monkeypatch), Rechecks()
    running = [asyncio.create_task(rechecks.recheck(str(number), said(str(number)), Mock())) for number in range(9)]
    await asyncio.sleep(0.01)
    assert len(rounds.begun) == MAX_ROUNDS
    rounds.go.set()
    await asyncio.gather(*running)
    assert len(rounds.begun) == 9


async def test_one_persons_remarks_in_many_threads_wait_behind_each_other_and_not_before_another_persons(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rounds, rechecks = Rounds(monkeypatch), Rechecks()
    flood = [asyncio.create_task(rechecks.recheck(str(number % 6), said(), Mock())) for number in range(60)]
    await asyncio.sleep(0.01)
    other = asyncio.create_task(rechecks.recheck("5", said("Priya"), Mock()))
    await asyncio.sleep(0.01)
    assert rounds.begun == ["0", "5"]
    rounds.go.set()
    await asyncio.gather(*flood, other)
    assert len(rounds.begun) <= 7, "one for each incident, which reads all its remarks"


async def test_another_person_need_not_wait_for_remarks_about_the_same_incident_that_wait_for_their_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rounds, rechecks = Rounds(monkeypatch), Rechecks()
    running = [asyncio.create_task(rechecks.recheck(each, said(), Mock())) for each in ("a", "b", "b", "c")]
    await asyncio.sleep(0.01)
    running.append(asyncio.create_task(rechecks.recheck("b", said("Priya"), Mock())))
    await asyncio.sleep(0.01)
    assert rounds.begun == ["a", "b"]
    rounds.go.set()
    await asyncio.gather(*running)
    assert rounds.begun == ["a", "b", "c"], "the others' remarks were read by then"


async def test_nothing_is_kept_of_remarks_that_were_read(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds, rechecks = Rounds(monkeypatch), Rechecks()
    rounds.go.set()
    for number in range(5):
        await rechecks.recheck(str(number), said(str(number)), Mock())
    assert not rechecks._remarks
    assert not rechecks._people
