"""A tool that somebody adds: a fax machine, whose journal says what happened to a service."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from typing import Literal

from pydantic import AwareDatetime, BaseModel, TypeAdapter

from adapters.http import Http
from adapters.section import EnvironmentName, Host, Url
from adapters.tools.section import Named, Tools, ToolSection, open_http
from core.ports import LogLine, TimeWindow


class _Entry(BaseModel):
    at: AwareDatetime
    text: str


_ENTRIES = TypeAdapter(list[_Entry])


@dataclass(frozen=True, slots=True)
class FaxJournal:
    name: str
    http: Http
    lines_of: dict[str, str]

    async def lines(self, service: str, window: TimeWindow, limit: int) -> list[LogLine]:
        if service not in self.lines_of:
            return []
        entries = await self.http.parsed(f"lines/{self.lines_of[service]}/journal", _ENTRIES)
        within = (each for each in entries if window.start <= each.at < window.end)
        return [LogLine(service, each.at.astimezone(UTC), "INFO", each.text) for each in within][-limit:]

    async def check(self) -> None:
        for line in self.lines_of.values():
            await self.http.parsed(f"lines/{line}/journal", _ENTRIES)


class FaxTool(ToolSection):
    """A fax machine. `services` maps a service to its line."""

    kind: Literal["fax"]
    name: str = "fax"
    url: Url
    services: Named
    token_env: EnvironmentName

    def open(self, host: Host) -> Tools:
        return Tools(logs=(FaxJournal(self.name, open_http(self.name, self.url, self.token_env, host), self.services),))
