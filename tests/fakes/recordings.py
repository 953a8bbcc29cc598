"""Recordings of Qwen2.5-Coder 1.5B Instruct (Q4_K_M) on our own data.

A recording holds no reply to a prompt that was changed: then it is made anew, by `--llm URL --record FILE` on the data that
the test writes.
"""

from __future__ import annotations

from pathlib import Path

from bot.evaluation.report import OpenedModel, recorded_model

DATA = Path(__file__).parents[1] / "evaluation" / "data"


def replayed(name: str, folder: Path) -> OpenedModel:
    """Return a recording together with that of the exam, which all of them begin with."""
    file = folder / "replay.jsonl"
    parts = ("exam-qwen2.5-coder-1.5b.jsonl", f"{name}-qwen2.5-coder-1.5b.jsonl")
    file.write_text("".join((DATA / part).read_text("utf-8") for part in parts), encoding="utf-8")
    return recorded_model(replay=file)
