"""The language model of a benchmark: a server, the replies of one, or a simulated model of known skill."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bot.evaluation.answers import KeyedQuestion
from bot.evaluation.report import OpenedModel, RecordedModel, add_to_call, recorded_model
from core.model.language_model import Abilities
from tests.benchmarks.simulated import SimulatedModel, Truth
from tests.benchmarks.simulated_agent import Cause
from tests.benchmarks.simulated_teams import SimulatedTeams

SLOTS = 4  # of a simulated server


@dataclass(frozen=True, slots=True)
class AskedModel:
    """The model options of a command, as `recorded_model` takes them; none: no model.

    `simulate` is the probability that a simulated model is right.
    """

    llm: str = ""
    record: Path | None = None
    replay: Path | None = None
    simulate: float | None = None

    def opened(self, truths: Iterable[Truth] = (), causes: Sequence[Cause] = ()) -> OpenedModel:
        """Open the model; None without one. A simulated one knows the `truths` and the `causes`, which may grow."""
        if self.simulate is None:
            return recorded_model(self.llm, self.record, self.replay)
        return _counted(SimulatedModel(truths, self.simulate, causes, abilities=Abilities(parallel=SLOTS)))


def simulated_teams(owners: Mapping[str, str], right: float) -> OpenedModel:
    """Open a simulated model that knows the owners of incidents by their text."""
    return _counted(SimulatedTeams(owners, right))


@asynccontextmanager
async def _counted(simulated: SimulatedModel) -> AsyncGenerator[RecordedModel]:
    with TemporaryDirectory(prefix="plumbline-eval-") as folder:
        model = RecordedModel(Path(folder) / "replies.jsonl", simulated)
        simulated.on_reply = add_to_call
        await model.context_tokens()
        yield model


def truth_of(case: KeyedQuestion) -> Truth:
    """Return what a simulated model knows of a question."""
    return Truth(" ".join([*case.before, case.question]), case.stated_in if case.keys else None)
