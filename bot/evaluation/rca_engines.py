"""The engines of `plumbline eval rca`: the evidence engine, a language model, and the product with one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from bot.evaluation.recorded_model import DEADLINE
from core.incidents.folding import open_from
from core.model.alert import Alert, AlertDelivery, AlertStatus, Severity
from core.model.conversation import Place, Platform
from core.model.explanation import Explanation
from core.model_calls.choice import VOUCHED, Skill
from core.ports import LanguageModel, TimeWindow, Tool, ToolParameter
from core.rca.agent.budget import Limits
from core.rca.explain import explain
from core.rca.incident_signals import survey
from core.rca.observations import Observations
from core.rca.records import latest_time
from core.rca.tool_outputs.clues import ToolOutput
from handlers.common.ports import Readers
from handlers.incidents.investigate_with_model import ClaimedExplanation, asks_model, investigate_with_model
from handlers.incidents.investigate_with_model import by_evidence as by_evidence_engine

MAX_WORDS = 60  # of a stated cause
MAX_QUOTES = 3
MAX_QUOTE = 300  # characters
NOT_RECORDED = "not available"
FEW = 40  # recorded values of a parameter up to which no other is allowed
LIMITS = Limits(seconds=DEADLINE)
SOME_TIME = datetime(2026, 1, 1, tzinfo=UTC)  # of a case that tells none
NOTHING = ClaimedExplanation(Explanation((), (), (), ()), None)


@dataclass(frozen=True, slots=True)
class Given:
    """The input of an engine."""

    question: str
    outputs: tuple[ToolOutput, ...]


@dataclass(frozen=True, slots=True)
class EngineVerdict:
    """The result of an engine. An empty `cause` means none was found; `steps` is the number of outputs read."""

    cause: str
    quotes: tuple[str, ...]
    steps: int


Engine = Callable[[Given], Awaitable[EngineVerdict]]


async def by_evidence(given: Given) -> EngineVerdict:
    explanation, _ = explain(observed(given.question, given.outputs))
    first = explanation.cause
    quotes = tuple(evidence.quote for evidence in first.evidence) if first else ()
    return EngineVerdict(first.cause if first else "", quotes, len(given.outputs))


def verdict_of(conclusion: ClaimedExplanation, given: Given) -> EngineVerdict:
    """Return the first cause of a conclusion, and its quotes."""
    steps = (
        len(conclusion.explanation.trajectory.steps)
        if conclusion.explanation.trajectory is not None
        else len(given.outputs)
    )
    first = conclusion.explanation.cause
    return (
        EngineVerdict(first.cause, tuple(each.quote for each in first.evidence), steps)
        if first
        else EngineVerdict("", (), steps)
    )


async def by_each(
    question: str, outputs: Sequence[ToolOutput], services: Sequence[str], model: LanguageModel, skill: Skill | None
) -> Mapping[str, ClaimedExplanation]:
    """Return the conclusions of a model: `model` with nothing but its tools, and `plumbline`, which is what people read.

    Its tools return the recorded outputs. `plumbline` asks a model of this skill where the evidence is not strong, and
    merges what it finds with the causes of the evidence engine; None: the model is not used. `services` are the possible
    places of a cause; if there are none, any text is.
    """
    observations = observed(question, outputs, services)
    by_rules = by_evidence_engine(*explain(observations))

    async def investigated(before: ClaimedExplanation, trusted: Skill) -> ClaimedExplanation:
        return await investigate_with_model(
            before,
            observations,
            survey(observations),
            model=model,
            skill=trusted,
            progress=_ignore,
            limits=LIMITS,
            readers=Readers(toolboxes=[RecordedTools(outputs)]),
        )

    is_asked = skill is not None and asks_model(skill, by_rules)
    return {
        "model": await investigated(NOTHING, VOUCHED),
        "plumbline": await investigated(by_rules, skill) if skill is not None and is_asked else by_rules,
    }


def observed(question: str, outputs: Sequence[ToolOutput], services: Sequence[str] = ()) -> Observations:
    """Return recorded outputs as the observations of an incident that is as late as the latest time that they tell."""
    at = latest_time(outputs) or SOME_TIME
    alert = Alert("recorded", question, AlertStatus.FIRING, Severity.WARNING, at, summary=question)
    delivery = AlertDelivery("recorded", "recorded", "recorded", (alert,), at)
    incident = open_from(delivery, "recorded", Place(Platform.CONSOLE, "incidents"))
    return Observations(incident, at, tuple(services), (), (), (), {}, outputs=tuple(outputs))


async def _ignore(_: str) -> None:
    """Show no progress."""


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
        description = name.replace("_", " ")
        return (
            ToolParameter(name, description, values)
            if len(values) <= FEW
            else ToolParameter(name, f"{description}, or nothing")
        )

    async def call(self, arguments: Mapping[str, str]) -> str:
        given = _given(arguments)
        output = next((each for each in self.outputs if _given(each.arguments) == given), None)
        return NOT_RECORDED if output is None else output.text or ("The call failed." if output.failed else "")


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
