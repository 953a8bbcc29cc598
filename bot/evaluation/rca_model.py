"""The language model engine of `plumbline eval rca`: every recorded output is a tool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bot.evaluation.rca_engines import Engine, Given, Verdict
from core.model.language_model import ModelRequest, Urgency
from core.ports import LanguageModel, Tool, ToolParameter
from core.rca.controller import Investigation, investigate
from core.rca.grounding import matched
from core.rca.observation_tools import LogExpert
from core.rca.tool_outputs.clues import ToolOutput

DEADLINE = 120.0  # seconds per reply


@dataclass(frozen=True, slots=True)
class Recorded:
    """A tool that returns one recorded output."""

    number: int
    output: ToolOutput

    @property
    def name(self) -> str:
        return f"{self.output.tool}_{self.number}"

    @property
    def description(self) -> str:
        return f"What {self.output.source} returned."

    @property
    def parameters(self) -> tuple[ToolParameter, ...]:
        return ()

    async def call(self, arguments: Mapping[str, str]) -> str:
        return self.output.text or ("The call failed." if self.output.failed else "")


def by_model(model: LanguageModel) -> Engine:
    """Return an engine that investigates the recorded outputs, with one greedy trajectory.

    Quotes that appear in no output are dropped; a cause without quotes counts as none.
    """

    async def verdict(given: Given) -> Verdict:
        tools: list[Tool] = [Recorded(number, output) for number, output in enumerate(given.outputs, start=1)]
        request = ModelRequest((), urgency=Urgency.INCIDENT, deadline=DEADLINE)
        trajectory = await investigate(
            Investigation(model, [*tools, LogExpert()], (), request), given.question, samples=0
        )
        finding, steps = trajectory.finding, len(trajectory.steps) + 1
        if finding is None:
            return Verdict("", (), steps)
        texts = [output.text for output in given.outputs]
        quotes = tuple(
            found
            for quote in finding.evidence
            if (found := next((m for text in texts if (m := matched(quote, text))), ""))
        )
        return Verdict(finding.root_cause if quotes else "", quotes, steps)

    return verdict
