"""Recordings of Qwen2.5-Coder 1.5B Instruct (Q4_K_M) on our own data.

A recording holds no reply to a prompt that was changed: then it is made anew, by `--llm URL --record FILE` on the data that
the test writes.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from bot.evaluation.report import RecordedModel
from core.ports import LanguageModel

DATA = Path(__file__).parents[1] / "evaluation" / "data"


@asynccontextmanager
async def after_its_exam(model: LanguageModel, folder: Path) -> AsyncGenerator[RecordedModel]:
    """Open a model that replies as the recorded one does in the exam, which is asked first, and as `model` to the rest."""
    file = folder / "replies.jsonl"
    file.write_text((DATA / "exam-qwen2.5-coder-1.5b.jsonl").read_text("utf-8"), encoding="utf-8")
    yield RecordedModel(file, model)
