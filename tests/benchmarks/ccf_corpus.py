"""The silver corpus of Evidence-Chain RAG: what is known of manuals from the questions that were asked about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

REPRESENTATIVE = 5  # questions named in a profile; the paper does not say how many


@dataclass(frozen=True, slots=True)
class Case:
    """A question and the manual family that answers it."""

    question: str
    family: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of evidence: the question that it was made from, or, in the profile of a family, its `tasks`."""

    id: str
    family: str
    text: str
    question: str = ""
    tasks: str = ""

    @property
    def profile(self) -> bool:
        return not self.question


def silver_corpus(cases: Sequence[Case], keywords: Mapping[str, Sequence[str]]) -> list[Chunk]:
    """A profile for each family and a chunk for each question (Evidence-Chain RAG, Method).

    `keywords` of a family stand in all its chunks. The question that is asked must not be among `cases`: neither its
    chunk nor its mention in a profile may be found.
    """
    families = sorted({case.family for case in cases})
    endings = {
        family: f"\nKeywords: {', '.join(keywords[family])}" if keywords.get(family) else "" for family in families
    }
    profiles = [_profile(family, cases, endings[family]) for family in families]
    return profiles + [
        Chunk(
            f"question-{number}",
            case.family,
            f"Manual: {case.family}\nQuestion: {case.question}{endings[case.family]}",
            case.question,
        )
        for number, case in enumerate(cases, start=1)
    ]


def _profile(family: str, cases: Sequence[Case], ending: str) -> Chunk:
    tasks = " ".join([case.question for case in cases if case.family == family][:REPRESENTATIVE])
    return Chunk(f"profile-{family}", family, f"Manual: {family}\nTasks: {tasks}{ending}", tasks=tasks)
