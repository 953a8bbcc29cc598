"""A tool that takes a service and nothing else (RCAgent, section 3.2.1), answered by an outside system."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from core.ports import ToolParameter

MAX_ANSWER = 200_000  # characters of one answer


@dataclass(frozen=True, slots=True)
class ServiceTool:
    """`ask` gets one of the services and may raise ToolUnavailable."""

    name: str
    description: str
    services: tuple[str, ...]
    ask: Callable[[str], Awaitable[str]]

    @property
    def parameters(self) -> tuple[ToolParameter, ...]:
        return (ToolParameter("service", "the name of a service", self.services),)

    async def call(self, arguments: Mapping[str, str]) -> str:
        return (await self.ask(arguments["service"]))[:MAX_ANSWER]
