"""Recorded outputs as the tools of an investigation: a call returns what was recorded of it, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.ports import TimeWindow, Tool, ToolParameter
from core.rca.tool_outputs.clues import ToolOutput

NOT_RECORDED = "not available"
FEW = 40  # recorded values of a parameter up to which no other is allowed


@dataclass(frozen=True, slots=True)
class RecordedTool:
    """A tool with the recorded outputs of its calls. An empty argument is one that the call does not have."""

    name: str
    outputs: tuple[ToolOutput, ...]

    @property
    def description(self) -> str:
        return f"The output of {self.name} at the time of the incident. An argument that is not needed is empty."

    @property
    def parameters(self) -> tuple[ToolParameter, ...]:
        names = dict.fromkeys(name for output in self.outputs for name in output.arguments)
        return tuple(self._parameter(name) for name in names)

    def _parameter(self, name: str) -> ToolParameter:
        values = tuple(dict.fromkeys(output.arguments.get(name, "") for output in self.outputs))
        told = name.replace("_", " ")
        return ToolParameter(name, told, values) if len(values) <= FEW else ToolParameter(name, f"{told}, or nothing")

    async def call(self, arguments: Mapping[str, str]) -> str:
        given = _given(arguments)
        found = next((each for each in self.outputs if _given(each.arguments) == given), None)
        if found is None:
            return NOT_RECORDED
        return found.text or ("The call failed." if found.failed else "")


def _given(arguments: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in arguments.items() if value}


@dataclass(frozen=True, slots=True)
class RecordedTools:
    """Implements `core.ports.Toolbox` over recorded outputs."""

    outputs: Sequence[ToolOutput]
    name: str = "recorded"

    async def tools(self, services: Sequence[str], window: TimeWindow) -> list[Tool]:
        names = dict.fromkeys(output.tool for output in self.outputs)
        return [RecordedTool(name, tuple(each for each in self.outputs if each.tool == name)) for name in names]
