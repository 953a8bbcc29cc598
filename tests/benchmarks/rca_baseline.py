"""The baseline of `rca`: a search for words of failures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.rca.failures import WORDS, PhraseRole
from tests.benchmarks.rca_engines import MAX_QUOTES, EngineVerdict, Given, cases_of, figures_of, graded

_KEYWORDS = (WORDS[PhraseRole.CAUSE], WORDS[PhraseRole.COMPLAINT])


async def beside(figures: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Return the figures of `rca`, with those of the baseline for the same cases."""
    keyword = figures_of([await graded(by_keyword, case) for case in cases_of(path)])
    return {**figures, "results": {"keyword": keyword, **figures["results"]}}


async def by_keyword(given: Given) -> EngineVerdict:
    """Return the distinct lines with the most distinct keywords, earlier ones first."""
    lines = dict.fromkeys(line.strip() for output in given.outputs for line in output.text.splitlines())
    counts = {line: len({word.lower() for pattern in _KEYWORDS for word in pattern.findall(line)}) for line in lines}
    ranked = sorted((line for line, count in counts.items() if count), key=lambda line: -counts[line])
    return EngineVerdict(ranked[0] if ranked else "", tuple(ranked[:MAX_QUOTES]), len(given.outputs))
