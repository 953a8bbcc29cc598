"""How well the privacy of documents holds, on lines that we labelled: names, addresses and secrets beside their doubles."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from adapters.secret_detector import SecretPatterns
from adapters.sources.chat_threads import ChatThreadSource
from adapters.sources.folder import FolderSource
from core.knowledge.redactor import Redactor, SensitiveKind, SensitiveSpan
from core.model.document import Document
from core.model.errors import MalformedInput
from tests.benchmarks.privacy import KINDS, load_cases, measured, run
from tests.fakes.documents import everything

CASES = Path(__file__).parent / "data" / "privacy.jsonl"
COMPANY = Path(__file__).parents[2] / "bot" / "sample_company"


@pytest.fixture(scope="module")
def figures() -> dict[str, Any]:
    return run(CASES)


def test_the_labelled_lines_are_enough_to_tell() -> None:
    people, cases = load_cases(CASES)
    assert len(cases) >= 200
    assert len(people) >= 30
    assert sum(not case.spans for case in cases) >= 100
    assert {kind for case in cases for _, _, kind in case.spans} == set(KINDS.values())


def test_hardly_anything_that_must_go_stays(figures: dict[str, Any]) -> None:
    assert figures["recall"] >= 0.98
    assert figures["results"]["secret"]["recall"] >= 0.98
    assert figures["results"]["e-mail"]["recall"] == 1.0
    assert figures["results"]["name"]["recall"] >= 0.97


def test_hardly_anything_goes_that_must_stay(figures: dict[str, Any]) -> None:
    assert figures["precision"] >= 0.97
    assert figures["untouched"] >= 0.98


def test_the_measure_counts_what_was_missed_and_what_was_destroyed(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    rows = ['{"people": [["Asha Brandt"]]}', '{"text": "ask ⟦n|Asha⟧ or ⟦n|Mateo⟧"}', '{"text": "run kubectl"}']
    path.write_text("\n".join(rows), encoding="utf-8")
    _, cases = load_cases(path)
    assert cases[0].text == "ask Asha or Mateo"
    found = [
        [SensitiveSpan(3, 8, SensitiveKind.NAME), SensitiveSpan(9, 14, SensitiveKind.NAME)],
        [SensitiveSpan(4, 11, SensitiveKind.SECRET)],
    ]
    figures = measured(cases, found)
    assert (figures["recall"], figures["untouched"]) == (0.5, 0.0)
    assert figures["results"]["name"]["precision"] == 0.5
    assert figures["results"]["secret"]["precision"] == 0.0


@pytest.mark.parametrize("content", ["", "{}", "not json", '{"people": []}\n{"line": "no text"}'])
def test_a_file_that_is_none_is_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(MalformedInput):
        load_cases(path)


async def test_the_handbook_of_the_sample_company_is_left_as_it_is() -> None:
    redactor = Redactor(SecretPatterns())
    source = FolderSource("handbook", COMPANY / "documents")
    documents = [found for found in await everything(source) if isinstance(found, Document)]
    assert len(documents) >= 50
    assert [document.id for document in documents if redactor(document) != document] == []


async def test_nobody_is_named_in_the_chat_of_the_sample_company_any_more() -> None:
    redactor = Redactor(SecretPatterns())
    source = ChatThreadSource("chat", COMPANY / "chat" / "threads.jsonl")
    threads = [document async for document in source.documents() if isinstance(document, Document)]
    names = {name for thread in threads for names in thread.people for name in names}
    words = {word for name in names for word in name.split() if word[0].isupper()}
    left = [
        thread.id for thread in map(redactor, threads) if words & set(re.findall(r"\w+", thread.title + thread.text))
    ]
    assert len(names) >= 8
    assert left == []
