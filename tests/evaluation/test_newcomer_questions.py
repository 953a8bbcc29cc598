"""The questions that a newcomer to the sample company asks: how many are answered right, and which are not.

A row of `data/newcomer_questions.jsonl` names a question, the channel that it is asked in and the question that it follows.
`key` is a regular expression of the text that states the answer, null where the answer is stated nowhere; what matches
`must_not` is wrong whatever else is said. Letter case is ignored, and `.` matches line ends.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Any

import pytest

from bot.commands.demo import SAMPLE_COMPANY, stage
from bot.config.settings import EMBEDDED, load_settings
from bot.config.workspace import load_workspace
from bot.wiring.application import Core, ingest, open_core
from bot.wiring.ports import question_ports
from core.model.answer import Answer
from core.model.conversation import PUBLIC, Audience, Person, Place, Platform, Question, Speaker, Turn
from handlers.common.post_message import Poster
from handlers.questions.answer_question import prepare_answer

QUESTIONS = [
    json.loads(line)
    for line in Path(__file__).with_name("data").joinpath("newcomer_questions.jsonl").read_text("utf-8").splitlines()
]
LEAST_RIGHT = 0.78  # of all questions: the level that was reached; the aim is 0.8
REPLAYED = re.compile(r"\b(?:today|yesterday)\b")  # presuppose that the recorded incident happens now


@dataclass(frozen=True)
class Judged:
    """A question with its answer; `unhedged` where it is shown as certain."""

    row: Mapping[str, Any]
    answer: Answer

    @property
    def unhedged(self) -> bool:
        return not (self.answer.abstained or self.answer.tentative)

    @property
    def right(self) -> bool:
        if self.row["must_not"] and _holds(self.row["must_not"], self.answer.text):
            return False
        if self.row["key"] is None:
            return self.answer.abstained
        return _holds(self.row["key"], self.answer.text)

    def __str__(self) -> str:
        how = "abstained" if self.answer.abstained else "unhedged" if self.unhedged else "tentative"
        return f"{self.row['kind']} {self.row['id']} {self.row['question']!r}: {how}: {self.answer.text[:300]!r}"


def _holds(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE | re.DOTALL) is not None


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> list[Judged]:
    return asyncio.run(_judged(tmp_path_factory.mktemp("newcomer")))


async def _judged(folder: Path) -> list[Judged]:
    company = folder / "company"
    copytree(SAMPLE_COMPANY, company, ignore=ignore_patterns("__pycache__"))
    settings = load_settings(data_dir=folder / "data", database_url="", qdrant_url="", embeddings=EMBEDDED)
    answers: dict[str, Answer] = {}
    async with open_core(settings, load_workspace(company / "plumbline.yaml")) as core:
        await ingest(core)
        for row in sorted(QUESTIONS, key=lambda row: bool(REPLAYED.search(row["question"]))):
            if REPLAYED.search(row["question"]):
                stage(
                    SAMPLE_COMPANY / "live" / "connection-pool", company / "live" / "connection-pool", datetime.now(UTC)
                )
            answers[row["id"]] = await _answer(core, row, answers)
    return [Judged(row, answers[row["id"]]) for row in QUESTIONS]


async def _answer(core: Core, row: Mapping[str, Any], answers: Mapping[str, Answer]) -> Answer:
    before = answers.get(row["after"] or "")
    history = (Turn(Speaker.PERSON, before.question), Turn(Speaker.PLUMBLINE, before.text)) if before else ()
    question = Question(
        row["id"],
        row["question"],
        Person(Platform.TERMINAL, "newcomer"),
        Place(Platform.TERMINAL, row["channel"], row["id"]),
        Audience(frozenset({PUBLIC, f"channel:{row['channel']}"})),
        core.clock.now(),
        history,
    )
    return await prepare_answer(
        question,
        question_ports(core, Poster(core.store, {})),
    )


def test_most_questions_of_a_newcomer_are_answered_right(judged: list[Judged]) -> None:
    wrong = sorted((each for each in judged if not each.right), key=lambda each: each.row["kind"])
    asked = Counter(each.row["kind"] for each in judged)
    missed = Counter(each.row["kind"] for each in wrong)
    lines = [f"{len(judged) - len(wrong)} of {len(judged)} right"]
    lines += [f"{kind}: {count - missed[kind]} of {count}" for kind, count in sorted(asked.items())]
    sys.stdout.write("\n".join(["", *lines, *map(str, wrong), ""]))
    assert len(wrong) <= (1 - LEAST_RIGHT) * len(judged)


def test_no_wrong_answer_is_shown_without_a_hedge(judged: list[Judged]) -> None:
    assert [each.row["question"] for each in judged if each.unhedged and not each.right] == []


def test_nothing_wrong_is_read_out_of_the_records(judged: list[Judged]) -> None:
    assert [str(each) for each in judged if each.answer.engine == "records" and not each.right] == []
