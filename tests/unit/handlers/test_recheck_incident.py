"""Remarks about one incident share investigations."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import Mock

import pytest

from handlers.incidents import recheck_incident
from handlers.incidents.recheck_incident import MAX_ROUNDS, Rechecks


class Rounds:
    """Investigations that wait until they are let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.notes: list[Any] = []
        self.begun: list[str] = []
        self.read: list[int] = []
        self.go = asyncio.Event()
        monkeypatch.setattr(recheck_incident, "take_note", self._take)
        monkeypatch.setattr(recheck_incident, "reinvestigate", self._investigate)

    async def _take(self, _incident: str, note: Any, _ports: object) -> None:
        self.notes.append(note)

    async def _investigate(self, incident: str, _ports: object) -> None:
        self.begun.append(incident)
        self.read.append(len(self.notes))
        await self.go.wait()


async def test_sixty_remarks_are_read_by_two_investigations(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds, rechecks = Rounds(monkeypatch), Rechecks()
    running = [asyncio.create_task(rechecks.recheck("i", Mock(), Mock())) for _ in range(60)]
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

    working = recheck_incident.reinvestigate
    monkeypatch.setattr(recheck_incident, "reinvestigate", fail)
    with pytest.raises(RuntimeError):
        await rechecks.recheck("i", Mock(), Mock())
    monkeypatch.setattr(recheck_incident, "reinvestigate", working)
    await rechecks.recheck("i", Mock(), Mock())
    assert rounds.begun == ["i"]


async def test_remarks_in_many_threads_leave_the_processor_to_alerts(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds, rechecks = Rounds(monkeypatch), Rechecks()
    running = [asyncio.create_task(rechecks.recheck(str(number), Mock(), Mock())) for number in range(9)]
    await asyncio.sleep(0.01)
    assert len(rounds.begun) == MAX_ROUNDS
    rounds.go.set()
    await asyncio.gather(*running)
    assert len(rounds.begun) == 9
