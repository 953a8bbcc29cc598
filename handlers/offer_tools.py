"""What a language model may ask beyond what was observed: code, and the toolboxes of outside systems."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from core.errors import ToolUnavailable
from core.ports import CodeReader, TimeWindow, Tool, Toolbox
from core.rca.code_expert import CodeExpert
from core.rca.observations import LOOK_BACK, Observations

DEADLINE = 8.0  # seconds for a system to say which tools it has


async def offer_tools(
    code: Sequence[CodeReader], toolboxes: Sequence[Toolbox], observations: Observations
) -> tuple[tuple[Tool, ...], tuple[str, ...]]:
    """The tools, each name once, and a line for each system that could not be asked. They look at the incident's time."""
    window = TimeWindow(observations.incident.started_at - LOOK_BACK, observations.until)
    found, unavailable = await open_toolboxes(toolboxes, observations.services, window)
    experts: list[Tool] = [CodeExpert(each) for each in code]
    return tuple({tool.name: tool for tool in reversed([*experts, *found])}.values())[::-1], unavailable


async def open_toolboxes(
    toolboxes: Sequence[Toolbox], services: Sequence[str], window: TimeWindow
) -> tuple[tuple[Tool, ...], tuple[str, ...]]:
    """The tools of every toolbox in order, and a line for each one that could not be asked."""
    unavailable: list[str] = []

    async def opened(toolbox: Toolbox) -> list[Tool]:
        try:
            async with asyncio.timeout(DEADLINE):
                return await toolbox.tools(services, window)
        except ToolUnavailable as error:
            unavailable.append(f"{toolbox.name}: {error}")
        except TimeoutError:
            unavailable.append(f"{toolbox.name}: no answer within {DEADLINE:.0f} s.")
        return []

    found = await asyncio.gather(*(opened(toolbox) for toolbox in toolboxes))
    return tuple(tool for tools in found for tool in tools), tuple(sorted(unavailable))
