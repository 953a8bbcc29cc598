"""What a method of the Evidence-Chain table replies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.benchmarks.ccf_corpus import Chunk

CITED = 3  # chunks that a reply cites (Evidence-Chain RAG, Table III)


@dataclass(frozen=True, slots=True)
class Reply:
    """`ranking` is what was retrieved, best first; `family` what was answered, empty if nothing was.

    `probability` is the calibrated one that the answer is right; None where a method has none.
    """

    ranking: tuple[Chunk, ...]
    family: str
    cited: tuple[Chunk, ...]
    probability: float | None = None


Method = Callable[[str], Reply]
