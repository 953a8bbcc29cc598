"""The contract of OnCall: the fake, plumbline.yaml, PagerDuty, Jira Service Management and Opsgenie say the same."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from adapters.http import Http
from adapters.readers.pages import Schedules
from core.model.errors import ToolUnavailable
from core.model.team import Rota, Team, TeamRotas
from core.ports import OnCall, Partial
from tests.fakes.on_call_servers import FakeJiraServiceManagement, FakeOnCall, FakeOpsgenie, FakePagerDuty, Shift
from tests.fakes.readers import schedules
from tests.fakes.tool_servers import FakeToolServer, reached

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
WEEK = timedelta(days=7)
TURNS = (Shift("Ines", START, START + WEEK), Shift("Tomas", START + WEEK, START + 2 * WEEK))


@asynccontextmanager
async def fake() -> AsyncIterator[OnCall]:
    yield FakeOnCall({"payments": TURNS})


@asynccontextmanager
async def rotas() -> AsyncIterator[OnCall]:
    rota = Rota(("Ines", "Tomas"), START, WEEK)
    yield TeamRotas([Team("payments", "Payments", on_call=rota.people, rota=rota), Team("fleet", "Fleet")])


@asynccontextmanager
async def pagerduty() -> AsyncIterator[OnCall]:
    async with reached(FakePagerDuty({"P1": TURNS})) as http:
        yield schedules("pagerduty", http, {"payments": ("P1",)})


@asynccontextmanager
async def opsgenie() -> AsyncIterator[OnCall]:
    async with reached(FakeOpsgenie({"Payments/night & day": TURNS})) as http:
        yield schedules("opsgenie", http, {"payments": ("Payments/night & day",)})


@asynccontextmanager
async def jira() -> AsyncIterator[OnCall]:
    async with reached(FakeJiraServiceManagement({"f8f2/a4": TURNS})) as http:
        yield schedules("jira_service_management", http, {"payments": ("f8f2/a4",)})


Opened = Callable[[], AbstractAsyncContextManager[OnCall]]


@pytest.mark.parametrize("opened", [fake, rotas, pagerduty, opsgenie, jira])
class TestOnCall:
    async def test_who_has_the_turn_is_on_call_until_the_next_one_begins(self, opened: Opened) -> None:
        async with opened() as schedule:
            assert tuple(await schedule.people("payments", START)) == ("Ines",)
            assert tuple(await schedule.people("payments", START + WEEK - timedelta(seconds=1))) == ("Ines",)
            assert tuple(await schedule.people("payments", START + WEEK)) == ("Tomas",)

    async def test_before_the_first_turn_nobody_is_on_call(self, opened: Opened) -> None:
        async with opened() as schedule:
            assert tuple(await schedule.people("payments", START - timedelta(days=1))) == ()

    async def test_it_knows_its_teams_and_of_others_nobody(self, opened: Opened) -> None:
        async with opened() as schedule:
            assert schedule.teams == {"payments"}
            assert tuple(await schedule.people("fleet", START)) == ()
            assert schedule.name

    async def test_the_time_may_be_in_any_zone(self, opened: Opened) -> None:
        at = datetime.fromisoformat("2026-03-09T10:59:00+02:00")
        async with opened() as schedule:
            assert tuple(await schedule.people("payments", at)) == ("Ines",)


def served_by(kind: str) -> Callable[[Http], Schedules]:
    return lambda http: schedules(kind, http, {"payments": ("P1",)})


SERVERS = {
    "pagerduty": lambda: FakePagerDuty({"P1": TURNS}),
    "opsgenie": lambda: FakeOpsgenie({"P1": TURNS}),
    "jira_service_management": lambda: FakeJiraServiceManagement({"P1": TURNS}),
}


@pytest.mark.parametrize("kind", SERVERS)
@pytest.mark.parametrize(("status", "sentence"), [(401, "refuses the token"), (429, "429"), (503, "503")])
async def test_a_refusal_says_that_it_is_not_known_and_the_next_answer_counts(
    kind: str, status: int, sentence: str
) -> None:
    server = SERVERS[kind]()
    server.refuse(status, {"Retry-After": "1"})
    async with reached(server) as http:
        schedule = served_by(kind)(http)
        with pytest.raises(ToolUnavailable, match=sentence):
            await schedule.people("payments", START)
        assert tuple(await schedule.people("payments", START)) == ("Ines",)


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_server_that_does_not_answer_is_not_waited_for(kind: str) -> None:
    silence = asyncio.Event()

    async def silent(_: web.Request) -> web.Response:
        await silence.wait()
        return web.Response()

    app = web.Application()
    app.router.add_get("/{path:.*}", silent)
    async with TestServer(app) as server, aiohttp.ClientSession() as session:
        schedule = served_by(kind)(Http("the server", str(server.make_url("")), session, timeout=0.05))
        with pytest.raises(ToolUnavailable, match="cannot be reached"):
            await schedule.people("payments", START)
        silence.set()


@pytest.mark.parametrize("kind", SERVERS)
async def test_an_answer_of_another_form_is_none(kind: str) -> None:
    async def nonsense(_: web.Request) -> web.Response:
        return web.json_response({"oncalls": [{"user": 7}], "data": []})

    app = web.Application()
    app.router.add_get("/{path:.*}", nonsense)
    async with TestServer(app) as server, aiohttp.ClientSession() as session:
        schedule = served_by(kind)(Http("the server", str(server.make_url("")), session))
        with pytest.raises(ToolUnavailable, match="in an unexpected format"):
            await schedule.people("payments", START)


async def test_times_of_pagerduty_without_a_zone_are_no_answer() -> None:
    async def without_zone(_: web.Request) -> web.Response:
        return web.json_response({"oncalls": [{"user": {"summary": "Ines"}, "start": "2026-01-05T09:00:00"}]})

    app = web.Application()
    app.router.add_get("/{path:.*}", without_zone)
    async with TestServer(app) as server, aiohttp.ClientSession() as session:
        schedule = served_by("pagerduty")(Http("the server", str(server.make_url("")), session))
        with pytest.raises(ToolUnavailable, match="in an unexpected format"):
            await schedule.people("payments", START)


async def test_pagerduty_is_read_to_its_last_page() -> None:
    crowd = [Shift(f"Person {number}", START, START + WEEK) for number in range(2 * 100 + 1)]
    server = FakePagerDuty({"P1": crowd})
    async with reached(server) as http:
        schedule = schedules("pagerduty", http, {"payments": ("P1",)})
        assert len(await schedule.people("payments", START)) == 2 * 100 + 1
    assert len(server.requests) == 3


async def test_pagerduty_endless_pages_are_not_read_for_ever() -> None:
    crowd = [Shift(f"Person {number}", START, START + WEEK) for number in range(10 * 100)]
    async with reached(FakePagerDuty({"P1": crowd})) as http:
        schedule = schedules("pagerduty", http, {"payments": ("P1",)})
        with pytest.raises(ToolUnavailable, match="more than 500 people"):
            await schedule.people("payments", START)


async def test_pagerduty_names_the_first_level_of_an_escalation_policy_first_and_each_person_once() -> None:
    policy = [Shift("Boss", level=2), Shift("Ines", START, START + WEEK), Shift("Ines", level=3)]
    async with reached(FakePagerDuty({"PPOL": policy})) as http:
        schedule = schedules("pagerduty", http, {"payments": ("PPOL",)}, "escalation_policies")
        assert tuple(await schedule.people("payments", START)) == ("Ines", "Boss")


@pytest.mark.parametrize(
    ("kind", "server"),
    [
        ("opsgenie", FakeOpsgenie({"other": TURNS})),
        ("jira_service_management", FakeJiraServiceManagement({"other": TURNS})),
    ],
)
async def test_a_schedule_that_there_is_not_is_unknown_and_not_nobody(kind: str, server: FakeToolServer) -> None:
    async with reached(server) as http:
        with pytest.raises(ToolUnavailable, match="404"):
            await served_by(kind)(http).people("payments", START)


@pytest.mark.parametrize("kind", ["opsgenie", "jira_service_management"])
async def test_one_schedule_of_two_that_is_gone_is_named_beside_the_people_of_the_other(kind: str) -> None:
    team = {"payments": ("P1", "gone")}
    async with reached(SERVERS[kind]()) as http:
        schedule = schedules(kind, http, team)
        people = await schedule.people("payments", START)
    assert isinstance(people, Partial)
    assert (list(people), [gap.tool for gap in people.gaps]) == (["Ines"], [f"{schedule.name}: gone"])


async def test_several_people_of_jira_are_named_in_calling_order() -> None:
    shifts = [Shift("Ines"), Shift("Tomas"), Shift("Ines")]
    async with reached(FakeJiraServiceManagement({"P1": shifts})) as http:
        assert tuple(await served_by("jira_service_management")(http).people("payments", START)) == ("Ines", "Tomas")


async def test_an_account_without_a_name_in_jira_is_unknown_and_not_nobody() -> None:
    server = FakeJiraServiceManagement({"P1": TURNS}, nameless=frozenset({"Ines"}))
    async with reached(server) as http:
        with pytest.raises(ToolUnavailable, match="in an unexpected format"):
            await served_by("jira_service_management")(http).people("payments", START)


async def test_a_team_without_a_rota_has_the_same_people_on_call_all_the_time() -> None:
    schedule = TeamRotas([Team("fleet", "Fleet", on_call=("Kofi", "Lena"))])
    assert tuple(await schedule.people("fleet", START)) == ("Kofi", "Lena")


async def test_turns_go_round() -> None:
    rota = Rota(("Ines", "Tomas", "Ruth"), START, timedelta(hours=12))
    turns = [rota.on_duty(START + timedelta(hours=12 * number)) for number in range(4)]
    assert turns == [("Ines",), ("Tomas",), ("Ruth",), ("Ines",)]


@pytest.mark.parametrize("kind", SERVERS)
async def test_the_check_tells_whether_the_token_is_right(kind: str) -> None:
    server = SERVERS[kind]()
    async with reached(server) as http:
        await served_by(kind)(http).check()
    async with reached(server, token="Bearer wrong") as http:
        with pytest.raises(ToolUnavailable, match="refuses the token"):
            await served_by(kind)(http).check()


def test_a_rota_changes_hands_at_the_same_time_of_the_clocks_in_winter_and_in_summer() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    rota = Rota(("Ines", "Tomas"), datetime(2026, 3, 23, 9, tzinfo=berlin), WEEK)
    in_summer = datetime(2026, 3, 30, 9, tzinfo=berlin).astimezone(UTC)
    assert rota.on_duty(in_summer - timedelta(minutes=1)) == ("Ines",)
    assert rota.on_duty(in_summer) == ("Tomas",)
