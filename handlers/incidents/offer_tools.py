"""Tools beyond the collected observations for a language model: code readers and external toolboxes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from core.model.errors import ToolRefused, ToolUnavailable
from core.model.incident import Gap, GapReason
from core.ports import CodeReader, TimeWindow, Tool, Toolbox
from core.rca.code_expert import CodeExpert
from core.rca.observations import LOOK_BACK, Observations

DEADLINE = 8.0  # seconds for a system to list its tools


async def offer_tools(
    code: Sequence[CodeReader], toolboxes: Sequence[Toolbox], observations: Observations
) -> tuple[tuple[Tool, ...], tuple[Gap, ...]]:
    """Return the tools, unique by name, and a gap for each system that could not list its tools.

    The tools read the incident's time window.
    """
    window = TimeWindow(observations.incident.started_at - LOOK_BACK, observations.until)
    found, gaps = await open_toolboxes(toolboxes, observations.services, window)
    experts: list[Tool] = [CodeExpert(each) for each in code]
    return tuple({tool.name: tool for tool in reversed([*experts, *found])}.values())[::-1], gaps


async def open_toolboxes(
    toolboxes: Sequence[Toolbox], services: Sequence[str], window: TimeWindow
) -> tuple[tuple[Tool, ...], tuple[Gap, ...]]:
    """Return the tools of every toolbox in order, and a gap for each one that could not be asked."""
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
    """Return the gap that an error leaves."""
    if isinstance(error, ToolRefused):
        reason = GapReason.REFUSED
    else:
        reason = GapReason.TIMED_OUT if isinstance(error.__cause__, TimeoutError) else GapReason.FAILED
    return Gap(tool, reason, str(error).rstrip("."))
