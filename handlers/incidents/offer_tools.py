"""Tools that a language model may call for more than was observed: code, and the toolboxes of outside systems."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from core.model.errors import ToolRefused, ToolUnavailable
from core.model.incident import Gap, GapReason
from core.ports import CodeReader, TimeWindow, Tool, Toolbox
from core.rca.code_expert import CodeExpert
from core.rca.observations import LOOK_BACK, Observations

DEADLINE = 8.0  # seconds for a system to say which tools it has


async def offer_tools(
    code: Sequence[CodeReader], toolboxes: Sequence[Toolbox], observations: Observations
) -> tuple[tuple[Tool, ...], tuple[Gap, ...]]:
    """The tools, each name once, and each system that could not be asked. They look at the incident's time."""
    window = TimeWindow(observations.incident.started_at - LOOK_BACK, observations.until)
    found, gaps = await open_toolboxes(toolboxes, observations.services, window)
    experts: list[Tool] = [CodeExpert(each) for each in code]
    return tuple({tool.name: tool for tool in reversed([*experts, *found])}.values())[::-1], gaps


async def open_toolboxes(
    toolboxes: Sequence[Toolbox], services: Sequence[str], window: TimeWindow
) -> tuple[tuple[Tool, ...], tuple[Gap, ...]]:
    """The tools of every toolbox in order, and each one that could not be asked."""
    gaps: list[Gap] = []

    async def opened(toolbox: Toolbox) -> list[Tool]:
        try:
            async with asyncio.timeout(DEADLINE):
                return await toolbox.tools(services, window)
        except ToolUnavailable as error:
            gaps.append(gap_of(toolbox.name, error))
        except TimeoutError:
            gaps.append(Gap(toolbox.name, GapReason.TIMED_OUT, f"no answer within {DEADLINE:.0f} s"))
        return []

    found = await asyncio.gather(*(opened(toolbox) for toolbox in toolboxes))
    return tuple(tool for tools in found for tool in tools), tuple(sorted(gaps, key=lambda gap: gap.text))


def gap_of(tool: str, error: ToolUnavailable) -> Gap:
    """Return what could not be read because of this error."""
    if isinstance(error, ToolRefused):
        reason = GapReason.REFUSED
    else:
        reason = GapReason.TIMED_OUT if isinstance(error.__cause__, TimeoutError) else GapReason.FAILED
    return Gap(tool, reason, str(error).rstrip("."))
