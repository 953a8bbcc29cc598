"""Plumbline on the silver corpus: what it ingests, and how it searches and chooses an evidence chain, as it always does.

Of its own the measure has only the protocol: how far a family must lead, and what probability a lead stands for, come from
questions that were asked of corpora without them, in the same way as the tested question.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from adapters.model_formats import ENCODER, ArrayFile
from adapters.qdrant_edge import EdgeIndex
from core.answering.excerpts import Candidate, candidates
from core.answering.find import RETRIEVED
from core.confidence.calibrator import Label, fit
from core.knowledge.retriever import Lexicon as Families
from core.knowledge.retriever import Retriever
from core.model.badge import Calibrator, Evaluation
from core.model.conversation import Audience
from core.model.document import Document
from handlers.knowledge.ingest_knowledge import ingest_knowledge
from tests.benchmarks.ccf_corpus import Case, Chunk, silver_corpus
from tests.benchmarks.ccf_lexicon import Keywords, Lexicon
from tests.benchmarks.ccf_reply import CITED, Reply

BLOCKS = 10  # of the questions: of each two, a corpus is made without both, and both are asked of it
SELECTED = 0.78  # share of those questions that the selective threshold answers: 0.70 is asked for, the rest is room for chance

FITTED_AT = datetime(2000, 1, 1, tzinfo=UTC)  # no part of any figure
_SOURCE = "ccf"


@dataclass(frozen=True, slots=True)
class Trial:
    """What the chain for a question was like that its corpus did not hold, and whether it was the right one."""

    lead: float
    support: float
    correct: bool


@dataclass(frozen=True, slots=True)
class Choices:
    """What is chosen for a question by others: the lead that the selective method asks for, and the calibrator."""

    threshold: float
    calibrator: Calibrator | None

    @classmethod
    def from_trials(cls, trials: Sequence[Trial]) -> Choices:
        threshold = float(np.quantile([trial.lead for trial in trials], 1 - SELECTED))
        labels = [Label(_evaluation(trial.lead, trial.support), trial.correct) for trial in trials]
        return cls(threshold, fit(labels, "eval", FITTED_AT))


@dataclass(frozen=True, slots=True)
class Chain:
    """The family of the best excerpt and its chunks, best first.

    `support` is its score as a share of the best scores of all families, `lead` by how much the second family's best
    excerpt falls behind.
    """

    family: str
    support: float
    lead: float
    cited: tuple[Chunk, ...]


class Plumbline:
    """The product, after it has ingested the silver corpus."""

    def __init__(self, chunks: Sequence[Chunk], retriever: Retriever, runner: asyncio.Runner, choices: Choices) -> None:
        self._chunks = {f"{_SOURCE}/{chunk.id}": chunk for chunk in chunks}
        self._retriever = retriever
        self._runner = runner
        self._choices = choices

    def reply(self, question: str) -> Reply:
        """Answer from the chain of the likeliest family."""
        return self._answered(*self._chunks_of(question))

    def selective_reply(self, question: str) -> Reply:
        """The same, but nothing where no family leads far enough."""
        ranking, chain = self._chunks_of(question)
        surely = chain is not None and chain.lead >= self._choices.threshold
        return self._answered(ranking, chain) if surely else Reply(ranking, "", ())

    def trial(self, case: Case) -> Trial:
        _, chain = self._chunks_of(case.question)
        return Trial(chain.lead, chain.support, chain.family == case.family) if chain else Trial(0.0, 0.0, False)

    def _chunks_of(self, question: str) -> tuple[tuple[Chunk, ...], Chain | None]:
        # Runner.run would prepare for Ctrl-C each time, a millisecond that is no question's.
        loop = self._runner.get_loop()
        retrieval = loop.run_until_complete(self._retriever.search(question, Audience(), RETRIEVED))
        ranked = candidates(question, retrieval)
        documents = tuple(dict.fromkeys(each.passage.document_id for each in ranked))
        best: dict[str, float] = {}
        for each in ranked:
            best.setdefault(each.passage.family, each.score)
        ranking = tuple(self._chunks[document] for document in documents)
        if not best:
            return ranking, None
        (family, first), *others = best.items()
        second = others[0][1] if others else 0.0
        cited = tuple(
            chunk for document, chunk in zip(documents, ranking, strict=True) if _family(ranked, document) == family
        )
        return ranking, Chain(family, first / sum(best.values()), 1 - second / first if first > 0 else 0.0, cited)

    def _answered(self, ranking: tuple[Chunk, ...], chain: Chain | None) -> Reply:
        if chain is None:
            return Reply(ranking, "", ())
        calibrator = self._choices.calibrator
        probability = calibrator.probability(_evaluation(chain.lead, chain.support)) if calibrator else None
        return Reply(ranking, chain.family, chain.cited[:CITED], probability)


def _family(ranked: Sequence[Candidate], document_id: str) -> str:
    return next(each.passage.family for each in ranked if each.passage.document_id == document_id)


@contextmanager
def ingested(cases: Sequence[Case], lexicon: Lexicon, choices: Choices) -> Generator[Plumbline]:
    """The product with the silver corpus of these cases."""
    keywords = Keywords.chosen(lexicon, cases).lists()
    chunks = silver_corpus(cases, keywords)
    manuals = Families({chunk.family: keywords.get(chunk.family, ()) for chunk in chunks})
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="plumbline-eval-")))
        runner = stack.enter_context(asyncio.Runner())
        index, encoders = EdgeIndex(folder / "index"), ArrayFile(folder / "encoder.npz", ENCODER)
        stack.callback(lambda: runner.run(index.close()))
        runner.run(ingest_knowledge([_SilverCorpus(chunks, keywords)], index, encoders))
        plumbline = Plumbline(chunks, Retriever(index, encoders, None, manuals), runner, choices)
        plumbline.reply(cases[0].question)  # the first search reads what was stored: that is no question's time
        yield plumbline


def chosen(cases: Sequence[Case], lexicon: Lexicon) -> list[Choices]:
    """What is chosen for each case: by the cases of the other blocks, asked of corpora without their block and its own."""
    trials: dict[int, list[Trial]] = {block: [] for block in range(BLOCKS)}
    nothing = Choices(0.0, None)
    for first in range(BLOCKS):
        for second in range(first + 1, BLOCKS):
            held_out = {block: cases[block::BLOCKS] for block in (first, second)}
            rest = [case for spot, case in enumerate(cases) if spot % BLOCKS not in held_out]
            with ingested(rest, lexicon, nothing) as plumbline:
                trials[first] += [plumbline.trial(case) for case in held_out[second]]
                trials[second] += [plumbline.trial(case) for case in held_out[first]]
    choices = {block: Choices.from_trials(outcomes) for block, outcomes in trials.items()}
    return [choices[spot % BLOCKS] for spot in range(len(cases))]


@dataclass(frozen=True, slots=True)
class _SilverCorpus:
    """The chunks as pages of the manuals; the keywords of a manual stand in its profile, one a line."""

    chunks: Sequence[Chunk]
    keywords: Mapping[str, Sequence[str]]
    name: str = _SOURCE

    async def documents(self) -> AsyncIterator[Document]:
        for chunk in self.chunks:
            yield Document(f"{_SOURCE}/{chunk.id}", _SOURCE, chunk.family, chunk.family, self._text(chunk))

    def _text(self, chunk: Chunk) -> str:
        words = self.keywords.get(chunk.family, ()) if chunk.profile else ()
        return "\n\n".join([chunk.question or chunk.tasks, *(f"- {word}" for word in words)])


def _evaluation(lead: float, support: float) -> Evaluation:
    """How far the families are apart, and how far the evidence is on the side of the chosen one."""
    return Evaluation(coe=min(max(lead, 0.0), 1.0), rce=min(max(support, 0.0), 1.0))
