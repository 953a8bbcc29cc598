"""How fast, large and quickly ready the embedded index is, beside rank-bm25 in the same run.

    python -m tests.benchmarks retrieval [--passages 100000] [--questions 200] [--folder DIR [--build]] [--json FILE]

The corpus is made up: pages of one passage in words drawn by Zipf's law, in families, each readable by everybody or by one
of many channels. It is ingested and embedded as any source is. Then a fresh process opens the index and asks every question
as a member of a few channels: encoding and both searches with the audience filter. The other side scores all passages with
rank-bm25, and compares the question with every vector in numpy, which also says how much of the nearest the search found.

Vectors are made up, too, a topic and noise for each chunk, because a model would read a hundred thousand passages for an
hour: its time is not in these figures, and `python -m tests.benchmarks search` measures what it finds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rank_bm25 import BM25Okapi

from adapters.model_formats import ENCODER, ArrayFile
from adapters.qdrant_edge import EdgeIndex
from core.knowledge.passages import unpacked
from core.knowledge.retriever import CANDIDATES, READ, Retriever
from core.knowledge.terms import Encoder, terms
from core.model.conversation import PUBLIC, Audience
from core.model.document import Document, Passage
from handlers.knowledge.ingest_knowledge import IngestProgress, embed_passages, ingest_knowledge
from tests.benchmarks.machine import machine

SEED = 1
VOCABULARY = 50_000  # distinct words
ZIPF = 1.1  # exponent of the words' frequencies
SECTIONS = 4  # of a page
WORDS = (50, 120)  # of a section, least and most
HEADING = 4  # words
FAMILIES = 12
CHANNELS = 200
PUBLIC_SHARE = 0.5  # of the pages
MEMBERSHIPS = 5  # channels that the asker may read
BASELINE_QUESTIONS = 20  # the other side takes about a second for each
DIMENSIONS = 384  # as of the embedded model
TOPICS = 300
NOISE = 1.5  # of a chunk's vector, beside its topic
SYLLABLES = [consonant + vowel for consonant in "bcdfghjklmnprstvwz" for vowel in "aeiou"]


@dataclass(frozen=True, slots=True)
class MadeUpSource:
    """Pages of one passage each."""

    pages: int
    name: str = "made-up"

    async def documents(self) -> AsyncIterator[Document]:
        generator = np.random.default_rng(SEED)
        for number in range(self.pages):
            yield page(number, generator)


def word(rank: int) -> str:
    """A pronounceable word for each frequency rank."""
    size = len(SYLLABLES)
    return SYLLABLES[rank % size] + SYLLABLES[rank // size % size] + SYLLABLES[rank // size**2 % size]


def text(count: int, generator: np.random.Generator) -> str:
    ranks = generator.zipf(ZIPF, 4 * count)
    return " ".join(word(int(rank)) for rank in ranks[ranks <= VOCABULARY][:count])


def page(number: int, generator: np.random.Generator) -> Document:
    sections = [
        f"## {text(HEADING, generator)}\n\n{text(int(generator.integers(*WORDS)), generator)}." for _ in range(SECTIONS)
    ]
    family = f"family-{generator.integers(FAMILIES)}"
    public = generator.random() < PUBLIC_SHARE
    readers = frozenset({PUBLIC if public else f"channel-{generator.integers(CHANNELS)}"})
    return Document(
        f"made-up/{number}", "made-up", family, text(HEADING, generator), "\n\n".join(sections), readers=readers
    )


class MadeUpEmbedder:
    """An Embedder of a topic and noise, drawn by a digest of the text."""

    name = "made-up"
    dimensions = DIMENSIONS

    def __init__(self) -> None:
        self._topics = np.random.default_rng(SEED).standard_normal((TOPICS, DIMENSIONS))

    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.array([self._vector(text) for text in texts], np.float32).reshape(-1, DIMENSIONS)

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        return self._vector(text).astype(np.float32)

    def _vector(self, text: str) -> NDArray[np.float64]:
        generator = np.random.default_rng(zlib.crc32(text.encode()))
        vector = self._topics[generator.integers(TOPICS)] + NOISE * generator.standard_normal(DIMENSIONS)
        return vector / np.linalg.norm(vector)


def questions(count: int) -> list[str]:
    generator = np.random.default_rng(SEED + 1)
    return [text(int(generator.integers(4, 12)), generator) for _ in range(count)]


def audience() -> Audience:
    return Audience(frozenset({PUBLIC, *(f"channel-{number}" for number in range(MEMBERSHIPS))}))


def megabytes(field: str) -> float:
    """A line of this process's status: RssAnon, its own memory, or RssFile, the parts of files that are mapped into it.

    The latter are the system's cache: it takes them back when memory is wanted.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


def held() -> dict[str, float]:
    return {"memory_mb": round(megabytes("RssAnon")), "mapped_mb": round(megabytes("RssFile"))}


def opened(folder: Path) -> tuple[EdgeIndex, ArrayFile[Encoder]]:
    return EdgeIndex(folder / "index"), ArrayFile(folder / "encoder.npz", ENCODER)


async def build(folder: Path, passages: int) -> dict[str, float]:
    index, encoders = opened(folder)
    started, spent, memory = time.perf_counter(), cpu_seconds(), list[float]()

    def on_progress(_: IngestProgress) -> None:
        memory.append(megabytes("RssAnon"))

    embedder = MadeUpEmbedder()
    await ingest_knowledge([MadeUpSource(passages)], index, encoders, embedder, on_progress)
    by_words = time.perf_counter() - started, cpu_seconds() - spent
    await embed_passages(index, encoders, embedder, on_progress)
    figures = {
        "passages": await index.count(),
        "by_words_s": round(by_words[0], 1),
        "by_words_cpu_s": round(by_words[1], 1),
        "build_s": round(time.perf_counter() - started, 1),
        "build_cpu_s": round(cpu_seconds() - spent, 1),
        "build_peak_mb": round(max(memory)),
        "fit_peak_mb": round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024),
    }
    await index.close()
    return {**figures, "disk_mb": round(disk_megabytes(folder))}


def cpu_seconds() -> float:
    """Of this process and of those that it started and that have ended, on all cores."""
    own, ended = (resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime


def disk_megabytes(folder: Path) -> float:
    """What its files take, without the holes in them."""
    return sum(file.stat().st_blocks * 512 for file in folder.rglob("*") if file.is_file()) / 2**20


async def answer(folder: Path, questions: Sequence[str]) -> dict[str, float]:
    """In a process that was just started."""
    started = time.perf_counter()
    index, encoders = opened(folder)
    retriever = Retriever(index, encoders, MadeUpEmbedder())
    await retriever.retrieve("ready", audience(), READ)
    ready = time.perf_counter() - started
    taken = Durations()
    for question in questions:
        with taken.timed():
            await retriever.retrieve(question, audience(), READ)
    await index.close()
    return {"open_s": round(ready, 2), **taken.percentiles(), **held()}


@dataclass(slots=True)
class Durations:
    """Milliseconds by the clock, and of this process on all cores: a busy machine changes only the former."""

    clock: list[float] = field(default_factory=list[float])
    cpu: list[float] = field(default_factory=list[float])

    @contextmanager
    def timed(self) -> Iterator[None]:
        clock, cpu = time.perf_counter(), time.process_time()
        yield
        self.clock.append(1000 * (time.perf_counter() - clock))
        self.cpu.append(1000 * (time.process_time() - cpu))

    def percentiles(self) -> dict[str, float]:
        if not self.clock:
            return {}
        return {
            f"{name}p{share}_ms": round(float(np.percentile(durations, share)), 1)
            for name, durations in (("", self.clock), ("cpu_", self.cpu))
            for share in (50, 95)
        }


async def baseline(folder: Path, questions: Sequence[str]) -> dict[str, float]:
    """rank-bm25 over all passages, as it is used by its manual, and numpy over all vectors."""
    index, _ = opened(folder)
    passages = [passage async for passage in index.scan()]
    readable = np.array([not passage.readers.isdisjoint(audience().readers) for passage in passages])
    dense = await compared(index, passages, readable, questions)
    await index.close()
    started = time.perf_counter()
    lexical = BM25Okapi([terms(passage.indexed_text) for passage in passages])
    built = time.perf_counter() - started
    taken = Durations()
    for question in questions:
        with taken.timed():
            scores = np.where(readable, lexical.get_scores(terms(question)), 0.0)
            np.argpartition(-scores, CANDIDATES)
    return {"build_s": round(built, 1), **taken.percentiles(), **held(), **dense}


async def compared(
    index: EdgeIndex, passages: Sequence[Passage], readable: NDArray[np.bool_], questions: Sequence[str]
) -> dict[str, float]:
    """How much of the nearest readable passages the index finds, and its time beside that of a product in numpy."""
    counts = [len(passage.meaning) // DIMENSIONS for passage in passages]
    vectors = np.concatenate([unpacked(passage, DIMENSIONS) for passage in passages])
    starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
    embedder, ours, product, recall = MadeUpEmbedder(), Durations(), Durations(), list[float]()
    for question in questions:
        query = await embedder.embed_query(question)
        with ours.timed():
            hits = await index.search_dense(query, audience().readers, CANDIDATES)
        with product.timed():
            scores = np.where(readable, np.maximum.reduceat(vectors @ query, starts), -np.inf)
            nearest = np.argpartition(-scores, CANDIDATES)[:CANDIDATES]
        best = {passages[number].id for number in nearest}
        recall.append(len(best.intersection(hit.passage_id for hit in hits)) / len(best))
    return {
        "vectors": len(vectors),
        f"dense_recall@{CANDIDATES}": round(float(np.mean(recall)), 4),
        **{f"dense_{name}": value for name, value in ours.percentiles().items()},
        **{f"numpy_{name}": value for name, value in product.percentiles().items()},
    }


def in_a_fresh_process(part: str, folder: Path, count: int) -> tuple[dict[str, Any], float]:
    """The part's figures, and the seconds that the whole process took."""
    command = [
        sys.executable,
        "-m",
        "tests.benchmarks",
        "retrieval",
        "--part",
        part,
        "--folder",
        str(folder),
        "--questions",
        str(count),
    ]
    started = time.perf_counter()
    # As the installed command does: the repository and not this folder is where packages are found.
    ended = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    return json.loads(ended.stdout), time.perf_counter() - started


def built(folder: Path, passages: int) -> dict[str, float]:
    """How the index in this folder was built, now or before."""
    kept = folder / "built.json"
    if not kept.exists():
        kept.write_text(json.dumps(asyncio.run(build(folder, passages))), encoding="utf-8")
    return json.loads(kept.read_text(encoding="utf-8"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--part", choices=["answer", "baseline"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help="Where the index is kept; one that already exists is used.")
    parser.add_argument("--build", action="store_true", help="Only build it, to be measured later.")
    arguments = parser.parse_args()
    if arguments.part:
        measure = {"answer": answer, "baseline": baseline}[arguments.part]
        print(json.dumps(asyncio.run(measure(arguments.folder, questions(arguments.questions)))))
        return
    with tempfile.TemporaryDirectory(prefix="plumbline-retrieval-") as temporary:
        folder = arguments.folder or Path(temporary)
        figures: dict[str, Any] = {
            "measure": "retrieval at scale",
            "machine": machine(),
            "seed": SEED,
            "built": built(folder, arguments.passages),
        }
        if arguments.build:
            print(json.dumps(figures, indent=2))
            return
        _, ready = in_a_fresh_process("answer", folder, 0)
        figures["plumbline"], _ = in_a_fresh_process("answer", folder, arguments.questions)
        figures["plumbline"]["ready_s"] = round(ready, 2)
        figures["rank_bm25_and_numpy"], _ = in_a_fresh_process("baseline", folder, BASELINE_QUESTIONS)
    figures["times_faster"] = {
        key: round(figures["rank_bm25_and_numpy"][key] / figures["plumbline"][key], 1)
        for key in ("p50_ms", "p95_ms", "cpu_p50_ms", "cpu_p95_ms")
    }
    print(json.dumps(figures, indent=2))
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
