"""`rca` with a simulated model, which knows of each case what it is about when it is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from core.rca.agent.conclusion import situation
from tests.benchmarks import rca_engines
from tests.benchmarks.asked_model import AskedModel
from tests.benchmarks.rca_engines import observed
from tests.benchmarks.simulated_agent import Cause, calls_of


async def run(path: Path, right: float) -> dict[str, Any]:
    """Return the figures with a model that is right with this probability. Raises MalformedInput for an invalid file."""
    causes: list[Cause] = []

    def remember(number: int, case: rca_engines.RecordedCase) -> None:
        causes[:] = [_cause(number, case)]

    return await rca_engines.run(path, AskedModel(simulate=right).opened(causes=causes), remember)


def _cause(number: int, case: rca_engines.RecordedCase) -> Cause:
    """Return what a simulated model knows of a case: what it states, and the lines that show it."""
    keys = () if case.kind == rca_engines.HEALTHY else (*case.evidence_keys, *case.keys)
    alternatives = [rca_engines.normalised(alternative) for group in keys for alternative in group]

    def shows(line: str) -> bool:
        text = rca_engines.normalised(line)
        return any(each in text for each in alternatives)

    return Cause(
        situation(observed(case.given.question, case.given.outputs)),
        "",
        frozenset(),
        shows,
        "; ".join(group[0] for group in case.keys if group),
        case=str(number),
        calls=calls_of(case.given.outputs, shows),
    )
