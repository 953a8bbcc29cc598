"""`python -m tests.benchmarks checker`: which sentences about real documentation the checker of written answers lets pass.

`checker_sentences.jsonl` has sentences as a language model writes them, half of them faithful to a page of a public
project's documentation, half of them wrong in one respect (`kind`). The pages themselves are not in the repository:
`corpus` and `path` name them in `corpus-NAME.jsonl.gz` of a folder in the data. A verbatim sentence is the page's text
between the two places of its `span`.

A sentence cites the passage of its page with which it has the most terms in common, and the second one if that has at
least SECOND times as many.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from adapters.sources.folder import FolderSource
from bot.commands.demo import SAMPLE_COMPANY
from bot.evaluation.answers import CorpusFile
from bot.evaluation.report import cell, print_rows, wilson_interval
from core.answering.claims import by_rules
from core.answering.evidence import NumberedPassages
from core.answering.reply import claims
from core.knowledge.passages import passages_of
from core.knowledge.terms import distinct_terms
from core.model.document import Document, Passage
from core.model.errors import MalformedInput
from tests.fakes.documents import everything

SENTENCES = Path(__file__).parent / "checker_sentences.jsonl"
SECOND = 0.5
OPEN = "left to the judge"

HELD_OUT = Path(__file__).parent / "checker_held_out.jsonl"
SAMPLE = (
    Path(__file__).parent / "checker_sample.jsonl"
)  # about pages of the sample company, which are in the repository

HALVES = ("dev", "test")  # rules are improved on the first and measured on the second
BOTH = "both"
OTHERS = {"held-out": HELD_OUT, "sample": SAMPLE}


@dataclass(frozen=True, slots=True)
class Case:
    """A sentence about a page."""

    id: str
    corpus: str
    path: str
    question: str
    faithful: bool
    kind: str
    sentence: str = ""
    span: Sequence[int] = ()

    @property
    def half(self) -> str:
        return HALVES[zlib.crc32(self.id.encode()) % 2]

    def says(self, document: Document) -> str:
        """Return the sentence in one line."""
        return self.sentence or " ".join(document.text[slice(*self.span)].split())

    def fault(self, document: Document) -> str:
        """Return the first fault that the rules find; OPEN if they leave the sentence to the judge, empty if it passes."""
        sentence = self.says(document)
        cited = nearest(sentence, passages_of(document))
        evidence = NumberedPassages(dict(enumerate(cited, start=1)))
        marks = "".join(f"[{number}]" for number in evidence.passages)
        verdicts = by_rules(claims(f"{sentence} {marks}"), self.question, evidence).verdicts
        fault = next((str(each.fault) for each in verdicts if each.fault is not None), "")
        return fault or (OPEN if any(each.is_open for each in verdicts) else "")


def run(data: Path, half: str, judge: float | None = None) -> dict[str, Any]:
    """Return the figures: the share that passes by the rules alone, that the rules refuse, and, `with_model`, that passes if a
    model judges rightly with the probability `judge` what the rules leave open.

    Raises MalformedInput if the data lacks the corpus or the page of a sentence.
    """
    cases = [case for case in cases_in(OTHERS.get(half, SENTENCES)) if half in (BOTH, case.half, *OTHERS)]
    files = {case.corpus: [*data.glob(f"*/corpus-{case.corpus}.jsonl.gz")] for case in cases}
    documents = asyncio.run(documents_of(files, cases))
    rows = [(case, case.says(document), case.fault(document)) for case, document in zip(cases, documents, strict=True)]
    return {
        "measure": "checker",
        "half": half,
        "rows": [_row(name, group, judge) for name, group in _groups([(case, fault) for case, _, fault in rows])],
        "wrong": [
            {"id": case.id, "kind": case.kind, "fault": fault or "passed", "sentence": sentence}
            for case, sentence, fault in rows
            if (fault not in ("", OPEN) if case.faithful else not fault)
        ],
    }


def print_table(figures: dict[str, Any], console: Console) -> None:
    """Print the shares that pass, then the sentences that are judged wrongly."""
    names = ("passed", "refused", "with_model")
    rows = [(row["name"], str(row["cases"]), *(cell(row, name) for name in names)) for row in figures["rows"]]
    heads = ("sentences", "cases", "passed", "refused", "with a model")
    print_rows(console, heads, rows, f"Half: {figures['half']}")
    for row in figures["wrong"]:
        console.print(f"{row['id']} {row['kind']} → {row['fault']}: {row['sentence']}", markup=False, highlight=False)


def nearest(sentence: str, passages: Sequence[Passage]) -> list[Passage]:
    """Return the passage, or the two passages, that have the most terms in common with a sentence."""
    words = distinct_terms(sentence)
    shared = {each.number: len(words & distinct_terms(each.text)) for each in passages}
    ranked = sorted(passages, key=lambda each: -shared[each.number])[:2]
    return [each for each in ranked if shared[each.number] >= SECOND * shared[ranked[0].number]]


def cases_in(file: Path) -> list[Case]:
    """Return the cases of a file."""
    return [Case(**json.loads(line)) for line in file.read_text("utf-8").splitlines()]


async def documents_of(files: Mapping[str, Sequence[Path]], cases: Sequence[Case]) -> list[Document]:
    """Return the page of each case. Raises MalformedInput if one is missing."""
    pages = {("sample", each.id): each async for each in _sample_pages()}
    for corpus, file in ((corpus, file) for corpus, each in files.items() for file in each):
        async for document in CorpusFile(corpus, file).documents():
            pages[corpus, document.id.partition("/")[2]] = document
    try:
        return [pages[case.corpus, case.path] for case in cases]
    except KeyError as error:
        raise MalformedInput(f"The data lacks the page {error}.") from error


async def _sample_pages() -> AsyncIterator[Document]:
    """Yield the documents of the sample company, with their paths as ids."""
    for each in await everything(FolderSource("sample", SAMPLE_COMPANY / "documents")):
        if isinstance(each, Document):
            yield replace(each, id=each.id.partition("/")[2])


def _groups(judged: Sequence[tuple[Case, str]]) -> Iterator[tuple[str, list[tuple[Case, str]]]]:
    for name, faithful in (("faithful", True), ("unfaithful", False)):
        group = [each for each in judged if each[0].faithful is faithful]
        yield name, group
        for kind in sorted({case.kind for case, _ in group}):
            yield f"  {kind}", [each for each in group if each[0].kind == kind]


def _row(name: str, judged: Sequence[tuple[Case, str]], judge: float | None) -> dict[str, Any]:
    passed = [not fault for _, fault in judged]
    refused = [fault not in ("", OPEN) for _, fault in judged]
    row = {
        "name": name,
        "cases": len(judged),
        "passed": round(sum(passed) / len(passed), 4) if passed else None,
        "passed_ci": wilson_interval(passed) if passed else None,
        "refused": round(sum(refused) / len(refused), 4) if refused else None,
    }
    if judge is None or not judged:
        return row
    agrees = judge if judged[0][0].faithful else 1.0 - judge
    still_open = len(judged) - sum(passed) - sum(refused)
    return row | {"with_model": round((sum(passed) + still_open * agrees) / len(judged), 4)}
