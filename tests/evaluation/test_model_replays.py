"""Evaluations with a language model, replayed from recordings of Qwen2.5-Coder 1.5B Instruct (Q4_K_M) on our own data.

A recording holds no reply to a prompt that was changed: then it is to be made anew, by `--llm URL --record FILE` on the data
that the test writes.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from bot.evaluation import incidents, triage
from bot.evaluation.recorded import Recorded
from bot.evaluation.triage_baselines import inverted_index
from tests.evaluation.test_eval_triage import TICKETS, written

DATA = Path(__file__).with_name("data")


def replayed(name: str, folder: Path) -> Recorded:
    """Return a recording together with that of the exam, which all of them begin with."""
    file = folder / "replay.jsonl"
    parts = ("exam-qwen2.5-coder-1.5b.jsonl", f"{name}-qwen2.5-coder-1.5b.jsonl")
    file.write_text("".join((DATA / part).read_text("utf-8") for part in parts), encoding="utf-8")
    return Recorded(replay=file)


def test_the_causes_of_generated_incidents_are_paired(tmp_path: Path) -> None:
    with incidents.invented(8, 3) as folder:
        figures = incidents.run(folder, llm=replayed("incidents", tmp_path))
    assert figures["results"].keys() == {"evidence", "model", "plumbline"}
    assert (figures["asked"], figures["calls"]) == (4, 1)
    assert figures["exam"] == "7 of 12"
    assert figures["tokens"] > 500
    assert figures["first"] == figures["results"]["evidence"]["first"], "a model that failed its exam changes nothing"
    assert figures["paired"]["plumbline"] == {"gained": 0, "lost": 0}
    with (tmp_path / "table.txt").open("w") as out:
        incidents.print_table(figures, Console(file=out, width=200))
    assert "the evidence engine has wrong" in (tmp_path / "table.txt").read_text()


def test_the_owners_of_tickets_are_paired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triage, "installed", lambda: {"inverted_index": inverted_index})
    tickets = written(tmp_path / "tickets.jsonl", TICKETS)
    figures = triage.run(tickets, folds=2, llm=replayed("triage", tmp_path), sample=18)
    assert figures["cases"] == 18
    assert (figures["asked"], figures["calls"]) == (4, 1)
    assert figures["paired"] == {"model": {"gained": 1, "lost": 0}, "plumbline": {"gained": 0, "lost": 0}}
    assert figures["results"]["model"]["hop@1"] > figures["results"]["evidence"]["hop@1"]
