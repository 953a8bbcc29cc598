"""A language model's replies are recorded once, and replayed without a server."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bot.cli import app
from bot.evaluation.report import RecordedModel
from core.answering.model_exam import FULL, TO_FIND, Marks, examined, skill_of
from core.model.errors import MalformedInput, ModelUnavailable
from core.model.language_model import ChatMessage, ModelRequest, Role
from tests.benchmarks.simulated import SimulatedModel, Truth
from tests.fakes.language_model import ScriptedModel

QUESTION = ModelRequest((ChatMessage(Role.USER, "Why is the checkout slow?"),), max_tokens=64)
DATA = Path(__file__).parents[1] / "evaluation" / "data"


async def test_every_call_is_replayed_as_it_was_recorded(tmp_path: Path) -> None:
    file, model = tmp_path / "replies.jsonl", ScriptedModel(lambda _: "The disk is full.", name="tiny")
    recorded = RecordedModel(file, model)
    schema = replace(QUESTION, schema={"enum": ["yes"]})
    told: list[object] = []
    for _ in range(2):  # what it holds is not asked again
        told = [
            await recorded.context_tokens(),
            await recorded.generate(QUESTION),
            await recorded.generate(schema),
            await recorded.sample(QUESTION, 2),
            await recorded.expect(QUESTION, ("yes", "no")),
        ]
    assert len(model.requests) == 5
    replayed = RecordedModel(file)
    assert told == [
        await replayed.context_tokens(),
        await replayed.generate(replace(QUESTION, deadline=1.0, requester="somebody else")),
        await replayed.generate(schema),
        await replayed.sample(QUESTION, 2),
        await replayed.expect(QUESTION, ("yes", "no")),
    ]
    assert replayed.name == "tiny"
    assert len(replayed.calls) == 4


@pytest.mark.parametrize(
    "request_",
    [
        replace(QUESTION, messages=(ChatMessage(Role.USER, "Why?"),)),
        replace(QUESTION, seed=1),
        replace(QUESTION, schema={"enum": ["no"]}),
        replace(QUESTION, max_tokens=3),
    ],
)
async def test_another_request_has_no_reply(tmp_path: Path, request_: ModelRequest) -> None:
    file = tmp_path / "replies.jsonl"
    await RecordedModel(file, ScriptedModel(lambda _: "The disk is full.")).generate(QUESTION)
    with pytest.raises(ModelUnavailable, match="record it again"):
        await RecordedModel(file).generate(request_)


@pytest.mark.parametrize("content", ["{", "[]", '{"value": 1}'])
def test_a_file_that_is_no_recording_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "f").write_text(content)
    with pytest.raises(MalformedInput):
        RecordedModel(tmp_path / "f")


async def test_the_exam_of_a_model_of_1_5_b_is_replayed_and_it_is_not_asked() -> None:
    model = RecordedModel(DATA / "exam-qwen2.5-coder-1.5b.jsonl")
    marks = await examined(model, QUESTION)
    assert (marks, skill_of(marks)) == (Marks(7, 0, 0), None)
    read = sum(call.prompt_tokens for call in model.calls)
    assert read < TO_FIND * 2 * 500
    assert sum(call.cached_tokens for call in model.calls) > 0.7 * read


def test_an_evaluation_prints_both_engines_paired_with_what_the_model_costs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = {
        "drain": "# Drain\n\nDraining a runner takes 45 minutes.",
        "mend": "# Repair\n\nA runner is repaired in 30 minutes.",
    }
    corpus, questions, file = (tmp_path / name for name in ("corpus.jsonl", "questions.jsonl", "replies.jsonl"))
    corpus.write_text("".join(json.dumps({"path": f"{name}.md", "text": text}) + "\n" for name, text in pages.items()))
    asked = {"question": "How long does a runner take?", "key": "30 minutes"}
    questions.write_text(json.dumps(asked) + "\n")
    truth = Truth(asked["question"], lambda text: asked["key"] in text)
    monkeypatch.setattr("bot.evaluation.report.llama_server", lambda *_, **__: SimulatedModel([truth], 1.0))
    command = ["eval", "answers", "--questions", str(questions), "--corpus", str(corpus), "--json", str(tmp_path / "f")]
    recorded = CliRunner().invoke(app, [*command, "--llm", "http://127.0.0.1:9", "--record", str(file)])
    assert recorded.exit_code == 0, recorded.output
    monkeypatch.setattr("bot.evaluation.report.llama_server", None)
    replayed = CliRunner().invoke(app, [*command, "--replay", str(file)])
    assert replayed.exit_code == 0, replayed.output
    figures = json.loads((tmp_path / "f").read_text())
    assert {"evidence", "model", "plumbline"} == set(figures["results"])
    assert (figures["model"], figures["exam"]) == ("simulated-1", str(FULL))
    assert figures["results"]["model"]["states"] == 1.0
    assert figures["calls"] <= 4
    assert set(figures["paired"]) == {"model", "plumbline"}
