from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest

from core.model.errors import MalformedInput
from tests.benchmarks.ci_logs import find, run


def log(number: int) -> str:
    steps = "\n".join(f"step {index} took {index * number} ms" for index in range(30))
    return f"{steps}\n>> verdict\n\x1b[31mplum {number} was sour\x1b[0m\n\n  see basket {number}\n<< verdict\n{steps}"


def rows() -> list[dict[str, str]]:
    return [{"project": "fruit", "log": log(n), "chunk": f"plum {n} was sour\n\n  see basket {n}"} for n in range(3, 6)]


@pytest.mark.parametrize("name", ["cases.jsonl", "cases.jsonl.xz"])
def test_a_known_failure_of_the_repository_leads_to_the_next(tmp_path: Path, name: str) -> None:
    lines = "".join(json.dumps(row) + "\n" for row in [*rows(), {"project": "x", "log": "fine", "chunk": "elsewhere"}])
    content = lines.encode()
    (tmp_path / name).write_bytes(lzma.compress(content) if name.endswith(".xz") else content)
    figures = run(tmp_path / name)
    assert (figures["cases"], figures["not_found"]) == (3, 1)
    assert list(figures["results"]) == ["0", "1", "2", "5", "all"]
    assert figures["results"]["1"]["exact"] == figures["results"]["all"]["line_f1"] == 1.0
    assert figures["baselines"]["template_vote"]["all"]["line_recall"] == 1.0
    assert figures["baselines"]["keyword"]["0"]["line_recall"] == 0.0
    assert figures["lines_per_s"] > 0


def test_a_chunk_is_found_without_its_numbers_colours_and_blank_lines() -> None:
    assert find(log(7), "plum 12 was sour\nsee basket 1") == (31, 33)


def test_a_chunk_may_begin_and_end_in_the_middle_of_a_line() -> None:
    assert find("a\nb c\nd\ne f\n", "c\nd\ne") == (1, 2, 3)
    assert find("a\nb c\nd\n", "x\nd") == ()


def test_the_first_place_of_a_chunk_counts() -> None:
    assert find("oops\nfine\noops", "oops") == (0,)


def test_a_file_of_another_form_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cases.jsonl").write_text('{"project": "fruit"}\n', "utf-8")
    with pytest.raises(MalformedInput, match="`project`, `log` and `chunk`"):
        run(tmp_path / "cases.jsonl")
