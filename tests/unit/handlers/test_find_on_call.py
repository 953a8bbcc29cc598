from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from core.model.team import Team
from handlers.incidents import ping_owner as module
from handlers.incidents.ping_owner import find_on_call
from tests.fakes.on_call_servers import FakeOnCall, Shift

AT = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
PAYMENTS = Team("payments", "Payments", on_call=("Ada",))


async def test_the_first_schedule_that_has_the_team_says_who() -> None:
    schedules = [FakeOnCall({"fleet": [Shift("Kofi")]}), FakeOnCall({"payments": [Shift("Ines")]})]
    assert await find_on_call(PAYMENTS, schedules, AT) == (("Ines",), "")


async def test_where_no_schedule_has_the_team_its_own_people_are_called() -> None:
    assert await find_on_call(PAYMENTS, [], AT) == (("Ada",), "")


async def test_a_schedule_that_fails_is_named_and_nobody_is_made_up() -> None:
    schedules = [FakeOnCall({"payments": [Shift("Ines")]}, "PagerDuty", "it refuses the token")]
    assert await find_on_call(PAYMENTS, schedules, AT) == ((), "PagerDuty")


async def test_a_schedule_that_takes_too_long_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(FakeOnCall):
        async def people(self, team_id: str, at: datetime) -> tuple[str, ...]:
            await asyncio.Event().wait()
            return ()

    monkeypatch.setattr(module, "DEADLINE", 0.01)
    assert await find_on_call(PAYMENTS, [Slow({"payments": []}, "Opsgenie")], AT) == ((), "Opsgenie")
