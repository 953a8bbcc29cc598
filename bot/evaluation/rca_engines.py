"""The engines of `plumbline eval rca`: the evidence engine, a keyword search, and a language model with every recorded output as a tool."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from core.model.language_model import ModelRequest, Urgency
from core.ports import LanguageModel, Tool, ToolParameter
from core.rca.agent.budget import Limits, MeteredModel
from core.rca.agent.controller import Investigation
from core.rca.agent.grounding import matched
from core.rca.agent.log_expert import LogExpert
from core.rca.failures import CAUSE, COMPLAINT, phrases
from core.rca.tool_outputs.clues import ToolOutput
from core.rca.tool_outputs.conclusion import conclude

MAX_WORDS = 60  # of a stated cause
MAX_QUOTES = 3
MAX_QUOTE = 300  # characters

_KEYWORDS = (phrases(CAUSE), phrases(COMPLAINT))


@dataclass(frozen=True, slots=True)
class Given:
    """The input of an engine."""

    question: str
    outputs: tuple[ToolOutput, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of an engine. An empty `cause` means none was found; `steps` is the number of outputs read."""

    cause: str
    quotes: tuple[str, ...]
    steps: int


Engine = Callable[[Given], Awaitable[Verdict]]


async def by_evidence(given: Given) -> Verdict:
    found = conclude(given.question, given.outputs)
    return Verdict(found.cause, tuple(evidence.quote for evidence in found.evidence), len(given.outputs))


async def by_keyword(given: Given) -> Verdict:
    """Return the distinct lines with the most distinct keywords, earlier ones first, as a baseline."""
    lines = dict.fromkeys(line.strip() for output in given.outputs for line in output.text.splitlines())
    counts = {line: len({word.lower() for pattern in _KEYWORDS for word in pattern.findall(line)}) for line in lines}
    ranked = sorted((line for line, count in counts.items() if count), key=lambda line: -counts[line])
    return Verdict(ranked[0] if ranked else "", tuple(ranked[:MAX_QUOTES]), len(given.outputs))


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
        return f"The output of {self.output.source}."

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
        metered = MeteredModel(model, Limits(samples=0, seconds=DEADLINE * Limits().steps))
        trajectory = await Investigation(metered, [*tools, LogExpert(metered, request)], (), request).run(
            given.question
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
