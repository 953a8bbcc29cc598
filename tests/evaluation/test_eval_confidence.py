from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bot.evaluation.answers import cases_of
from core.model.badge import RCE_ALONE
from core.model.errors import MalformedInput, ModelUnavailable
from tests.benchmarks.asked_model import AskedModel, truth_of
from tests.benchmarks.confidence import METHODS, OPTIMISED, UNIFORM_ALONE, Scores, measured, probabilities, run, uniform
from tests.benchmarks.simulated import SimulatedModel

QUESTIONS = 24


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Return questions about pages of two services each; of every second one, the page lacks the number."""
    questions, corpus = tmp_path / "questions.jsonl", tmp_path / "corpus.jsonl"
    rows = [
        {"question": f"What is the retry limit of service{number}?", "key": rf"limit of service{number} is {number} "}
        for number in range(QUESTIONS)
    ]
    said = "The retry limit of service{0} is {0} attempts. Ask its owner to raise it."
    silent = "The retry limit of service{0} is set by its owner. Ask before you raise it."
    pages = [
        {
            "path": f"service{number}.md",
            "text": f"# service{number}\n\n{(silent if number % 2 else said).format(number)}",
        }
        for number in range(QUESTIONS)
    ]
    questions.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    corpus.write_text("\n".join(map(json.dumps, pages)), "utf-8")
    return questions, corpus


def test_table_2_is_the_same_from_the_recorded_replies_as_from_the_model(
    files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions, corpus = files
    recording = tmp_path / "replies.jsonl"
    model = SimulatedModel(map(truth_of, cases_of(questions)), 1.0)
    monkeypatch.setattr("bot.evaluation.report.llama_server", lambda *_: model)
    asked = run(questions, [corpus], None, AskedModel(llm="http://localhost", record=recording))
    monkeypatch.undo()
    replayed = run(questions, [corpus], None, AskedModel(replay=recording))
    assert replayed == asked
    assert set(asked["results"]) == set(METHODS)
    assert (asked["cases"], asked["right"]) == (QUESTIONS, 0.5)
    assert asked["results"][OPTIMISED]["auroc"] == 1.0


def test_a_recording_of_other_replies_is_not_used(files: tuple[Path, Path], tmp_path: Path) -> None:
    recording = tmp_path / "replies.jsonl"
    told = [{"key": "context", "value": 8_192}, {"key": "model", "value": "other"}]
    costs = {"seconds": 0.0, "prompt_tokens": 0, "cached_tokens": 0, "generated_tokens": 0}
    recording.write_text("\n".join(json.dumps(each | costs) for each in told), "utf-8")
    with pytest.raises(ModelUnavailable):
        run(files[0], [files[1]], None, AskedModel(replay=recording))


def test_without_a_model_there_is_nothing_to_measure(files: tuple[Path, Path]) -> None:
    with pytest.raises(MalformedInput, match="language model"):
        run(files[0], [files[1]], None, AskedModel())


def test_uniform_categories_say_their_own_middle() -> None:
    scores = Scores(np.ones(5), np.array([0.0, 0.1, 0.11, 0.8, 1.0]), np.ones(5))
    assert probabilities(uniform(RCE_ALONE), scores) == pytest.approx([0.05, 0.05, 0.15, 0.75, 0.95])


def test_scores_that_overstate_are_corrected_on_claims_that_were_not_seen() -> None:
    generator = np.random.default_rng(1)
    rce = generator.random(400)
    scores = Scores(np.ones(400), rce, (generator.random(400) < rce**3).astype(float))
    found = measured(scores)
    assert (found[OPTIMISED]["ece"] or 1.0) < 0.5 * (found[UNIFORM_ALONE]["ece"] or 0.0)
