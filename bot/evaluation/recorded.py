"""The language model of an evaluation: a server whose replies are recorded, or a recording of one."""

from __future__ import annotations

import statistics
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp
from rich.console import Console

from adapters.recorded_model import Call, RecordedModel
from bot.config.settings import load_settings
from bot.evaluation.simulated import SimulatedModel, Truth
from bot.evaluation.simulated_agent import Cause
from bot.evaluation.simulated_teams import SimulatedTeams
from bot.wiring.models import llama_server
from core.model.language_model import Abilities, ModelReply, ModelRequest

DEADLINE = 1_800.0  # seconds for one reply; long, so that a slow server can be measured
SLOTS = 4  # of a simulated server
ASKING = ModelRequest((), requester="eval", deadline=DEADLINE)


@dataclass(frozen=True, slots=True)
class Recorded:
    """The model options of a command: `llm` is the address of a server, `record` and `replay` are files; none: no model.

    `simulate` is the probability that a simulated model is right. Replies that are already recorded are reused, so that an
    interrupted measurement can continue.
    """

    llm: str = ""
    record: Path | None = None
    replay: Path | None = None
    simulate: float | None = None

    @asynccontextmanager
    async def opened(
        self, truths: Sequence[Truth] = (), causes: Sequence[Cause] = (), owners: Mapping[str, str] | None = None
    ) -> AsyncGenerator[RecordedModel | None]:
        """Open the model; None without one.

        A simulated one knows the `truths` and the `causes`, which may grow, or instead the `owners` of incidents by their
        text.

        Raises MalformedInput if a file is not a recording.
        """
        if self.simulate is not None:
            with TemporaryDirectory(prefix="plumbline-eval-") as folder:
                known = SimulatedModel(truths, self.simulate, causes, abilities=Abilities(parallel=SLOTS))
                knows = SimulatedTeams(owners, self.simulate) if owners else known
                model = RecordedModel(Path(folder) / "replies.jsonl", knows)
                await model.context_tokens()
                yield model
        elif self.replay is not None:
            model = RecordedModel(self.replay)
            await model.context_tokens()
            yield model
        elif self.llm:
            async with aiohttp.ClientSession() as session:
                with TemporaryDirectory(prefix="plumbline-eval-") as folder:
                    counted: list[RecordedModel] = []

                    def add(reply: ModelReply) -> None:
                        counted[0].add(reply)

                    file = self.record or Path(folder) / "replies.jsonl"
                    counted.append(RecordedModel(file, llama_server(self.llm, load_settings(), session, add)))
                    await counted[0].context_tokens()
                    yield counted[0]
        else:
            yield None


NO_MODEL = Recorded()


def costs(asked: Sequence[Sequence[Call]]) -> dict[str, float]:
    """Return the medians over the cases that a model was asked about, each with its calls."""
    totals = [
        (
            sum(call.seconds for call in calls),
            sum(call.prompt_tokens for call in calls),
            sum(call.cached_tokens for call in calls),
            len(calls),
        )
        for calls in asked
    ] or [(0.0, 0, 0, 0)]
    seconds, tokens, cached, calls = (statistics.median(each) for each in zip(*totals, strict=True))
    return {"asked": len(asked), "seconds": seconds, "tokens": tokens, "cached_tokens": cached, "calls": calls}


def paired(pairs: Iterable[tuple[bool, bool]]) -> dict[str, int]:
    """Return how many cases a model gets right and the evidence engine does not, and the other way round."""
    found = list(pairs)
    return {
        "gained": sum(ours and not theirs for ours, theirs in found),
        "lost": sum(theirs and not ours for ours, theirs in found),
    }


def print_model(figures: Mapping[str, Any], console: Console) -> None:
    """Print the gains, losses and costs of the model; nothing without one."""
    if "paired" not in figures:
        return
    for name, row in figures["paired"].items():
        console.print(f"{name}: {row['gained']} right that the evidence engine has wrong, {row['lost']} the other way.")
    console.print(
        f"{figures['model']}: {figures['exam']} in its exam; asked about {figures['asked']} cases, with a median of "
        f"{figures['calls']:.0f} calls, {figures['tokens']:.0f} tokens read ({figures['cached_tokens']:.0f} cached), "
        f"{figures['seconds']:.1f} s."
    )
