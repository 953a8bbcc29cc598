"""PagerDuty, Jira Service Management and Opsgenie, as far as their documentation says how they tell who is on call; and schedules in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from aiohttp import web

from core.model.errors import ToolUnavailable
from tests.fakes.tool_servers import FakeToolServer


@dataclass(frozen=True, slots=True)
class Shift:
    """Somebody on call from a time to another, on a level of the escalation; for ever without times."""

    person: str
    start: datetime | None = None
    end: datetime | None = None
    level: int = 1

    def covers(self, at: datetime) -> bool:
        return (self.start is None or self.start <= at) and (self.end is None or at < self.end)


class FakeOnCall:
    """An OnCall in memory; a `failure` is what it says instead."""

    def __init__(self, shifts: Mapping[str, Sequence[Shift]], name: str = "the rota", failure: str = "") -> None:
        self._shifts = shifts
        self.name = name
        self.failure = failure

    @property
    def teams(self) -> frozenset[str]:
        return frozenset(self._shifts)

    async def people(self, team_id: str, at: datetime) -> tuple[str, ...]:
        if self.failure:
            raise ToolUnavailable(self.failure)
        now = sorted((each for each in self._shifts.get(team_id, ()) if each.covers(at)), key=lambda each: each.level)
        return tuple(dict.fromkeys(each.person for each in now))


class FakePagerDuty(FakeToolServer):
    """On-calls by schedule or escalation policy, at most `most` in one answer."""

    def __init__(self, shifts: Mapping[str, Sequence[Shift]], most: int = 100) -> None:
        super().__init__()
        self._shifts = shifts
        self._most = most

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/oncalls", self._on_calls)]

    async def _on_calls(self, request: web.Request) -> web.Response:
        query = request.query
        asked = [*query.getall("schedule_ids[]", []), *query.getall("escalation_policy_ids[]", [])]
        since = datetime.fromisoformat(query["since"]) if "since" in query else None
        until = datetime.fromisoformat(query["until"]) if "until" in query else None
        found = [
            _entry(shift)
            for id_ in asked
            for shift in self._shifts.get(id_, ())
            if until is None or shift.start is None or shift.start < until
            if since is None or shift.end is None or shift.end > since
        ]
        offset, size = int(query.get("offset", "0")), min(int(query.get("limit", "25")), self._most)
        page = found[offset : offset + size]
        return web.json_response(
            {"oncalls": page, "limit": size, "offset": offset, "more": offset + size < len(found), "total": None}
        )


def _entry(shift: Shift) -> dict[str, Any]:
    return {
        "escalation_policy": {"id": "PANY", "type": "escalation_policy_reference", "summary": "Any"},
        "escalation_level": shift.level,
        "schedule": {"id": "PSCHED", "type": "schedule_reference", "summary": "Any"} if shift.start else None,
        "user": {"id": "PUSER", "type": "user_reference", "summary": shift.person},
        "start": shift.start.isoformat() if shift.start else None,
        "end": shift.end.isoformat() if shift.end else None,
    }


class FakeOpsgenie(FakeToolServer):
    """Schedules by name; flat answers only."""

    def __init__(self, shifts: Mapping[str, Sequence[Shift]]) -> None:
        super().__init__()
        self._shifts = shifts

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/v2/schedules", self._schedules), web.get("/v2/schedules/{name}/on-calls", self._on_calls)]

    async def _schedules(self, _: web.Request) -> web.Response:
        return web.json_response({"data": [{"name": name} for name in self._shifts], "took": 0.01, "requestId": "r"})

    async def _on_calls(self, request: web.Request) -> web.Response:
        query, name = request.query, request.match_info["name"]
        if query.get("scheduleIdentifierType") != "name" or query.get("flat") != "true" or name not in self._shifts:
            return web.json_response({"message": "Schedule does not exist"}, status=404)
        at = datetime.fromisoformat(query["date"])
        people = [shift.person for shift in self._shifts[name] if shift.covers(at)]
        data = {"_parent": {"id": "s", "name": name, "enabled": True}, "onCallRecipients": people}
        return web.json_response({"data": data, "took": 0.01, "requestId": "r"})


class FakeJiraServiceManagement(FakeToolServer):
    """Schedules by id in the site `c1`, as Atlassian's gateway shows them; its accounts have names in Jira alone."""

    def __init__(self, shifts: Mapping[str, Sequence[Shift]], nameless: frozenset[str] = frozenset()) -> None:
        super().__init__()
        self._shifts = shifts
        people = {shift.person for each in shifts.values() for shift in each} - nameless
        self._names = {f"712020:{sum(map(ord, person))}": person for person in sorted(people)}

    def routes(self) -> list[web.RouteDef]:
        base = "/jsm/ops/api/c1/v1/schedules/{id}"
        return [
            web.get(base, self._schedule),
            web.get(f"{base}/on-calls", self._on_calls),
            web.get("/ex/jira/c1/rest/api/3/user", self._user),
        ]

    async def _schedule(self, request: web.Request) -> web.Response:
        id_ = request.match_info["id"]
        if id_ not in self._shifts:
            return web.json_response({"message": "Schedule not found", "code": "NOT_FOUND"}, status=404)
        return web.json_response({"id": id_, "name": "Payments", "timezone": "Europe/Berlin", "enabled": True})

    async def _on_calls(self, request: web.Request) -> web.Response:
        if (shifts := self._shifts.get(request.match_info["id"])) is None:
            return web.json_response({"message": "Schedule not found", "code": "NOT_FOUND"}, status=404)
        at = datetime.fromisoformat(request.query["date"])
        on_call = [f"712020:{sum(map(ord, shift.person))}" for shift in shifts if shift.covers(at)]
        if request.query.get("flat") == "true":
            return web.json_response({"onCallUsers": on_call})
        return web.json_response({"onCallParticipants": [{"id": each, "type": "user"} for each in on_call]})

    async def _user(self, request: web.Request) -> web.Response:
        account = request.query["accountId"]
        return web.json_response({"accountId": account, "displayName": self._names.get(account, ""), "active": True})
