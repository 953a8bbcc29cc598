from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from bot.commands.llm_commands import LEAST_CONTEXT, check_model, consequences, run_check
from bot.config.settings import load_settings
from bot.wiring.application import KeptExam
from core.answering.model_exam import FULL, QUESTIONS, Marks, skill_of
from core.model.errors import ModelUnavailable
from core.model.language_model import Abilities, ModelReply, ModelRequest, OnText, ignore_text
from core.model_calls.choice import VOUCHED, Skill, Use
from handlers.common.examine_model import ExaminedModel
from tests.cases import every_case
from tests.fakes.general_servers import MODEL, FakeOllamaServer
from tests.fakes.language_model import ScriptedModel
from tests.fakes.llama_server import an_answer, served


def reply(request: ModelRequest) -> str:
    return json.dumps({"answer": "yes", "score": 4}) if request.schema else f"three\ntimes {request.seed}"


class ServerLike(ScriptedModel):
    """Answers and streams as a server does, and has computed what it saw before."""

    async def generate(self, request: ModelRequest, on_text: OnText = ignore_text) -> ModelReply:
        seen = bool(self.requests)
        whole = await super().generate(request)
        cached = whole.prompt_tokens - 5 if seen else 0
        return ModelReply(whole.text, whole.prompt_tokens, cached, whole.generated_tokens, whole.complete)


async def works(model: ScriptedModel) -> dict[str, bool]:
    return {ability.name: ability.works async for ability in check_model(model)}


def right(request: ModelRequest, choices: Sequence[str]) -> dict[str, float]:
    """Pass the exam, and say yes to everything else."""
    return {next((name for text, name, _ in QUESTIONS if text in request.messages[-1].text), choices[0]): 1.0}


async def test_a_server_that_can_do_everything_is_found_to() -> None:
    found = await works(ServerLike(reply, odds=right))
    assert found == dict.fromkeys(found, True)
    assert set(found) >= {"JSON", "schemas", "probabilities", "prompt cache", "exam", "speed"}


async def test_a_small_context_is_found_missing() -> None:
    assert not (await works(ServerLike(reply, context=LEAST_CONTEXT - 1)))["context"]


async def test_a_model_that_gives_no_json_is_found_out() -> None:
    found = await works(ServerLike(lambda _: "certainly"))
    assert not found["JSON"]
    assert found["answers"]


async def test_what_a_server_lacks_is_marked_and_no_reason_to_fail() -> None:
    lacking = ServerLike(reply, odds=right, able=Abilities(odds=False, schemas=False, counts=False))
    found = [ability async for ability in check_model(lacking)]
    assert {ability.name for ability in found if not ability.works} == {"schemas", "tokenizer", "probabilities"}
    assert not any(ability.needed and not ability.works for ability in found)


NOTHING = Abilities(odds=False, schemas=False, counts=False)
EVERYTHING = Abilities(parallel=4)
FINDER, WRITER = skill_of(Marks(FULL.find, 0, 0)), skill_of(FULL)


@every_case(
    ("skill", "able", "said"),
    [
        (None, NOTHING, ["not used"]),
        (FINDER, EVERYTHING, ["chooses among excerpts", "ranks them", "decides on them"]),
        (WRITER, EVERYTHING, ["writes them, and", "investigates with tools", "plays the managers"]),
        (VOUCHED, EVERYTHING, ["writes them, also where the evidence engine is certain", "investigates", "managers"]),
        (
            FINDER,
            NOTHING,
            ["chooses", "ranks", "decides", "16 short replies", "asked for again", "estimated"],
        ),
    ],
)
def test_it_says_what_the_bot_will_do(skill: Skill | None, able: Abilities, said: list[str]) -> None:
    lines = list(consequences(dict.fromkeys(Use, skill), able))
    assert len(lines) == len(said)
    assert not [(words, line) for words, line in zip(said, lines, strict=True) if words not in line]


def verdict(body: dict[str, Any]) -> str:
    """Reply as to a request without a schema, or with one of labels, or of a verdict."""
    shape = body.get("response_format", {}).get("json_schema", {}).get("schema", {})
    return an_answer(body) if "properties" not in shape else json.dumps({"answer": "yes", "score": 4})


async def test_a_check_of_a_server_with_less_says_so_and_succeeds(tmp_path: Path) -> None:
    written = io.StringIO()
    async with served(FakeOllamaServer(context=LEAST_CONTEXT, script=verdict, odds_told=True)) as server:
        settings = load_settings(llm_url=server.url, llm_use="always", data_dir=tmp_path)
        assert await run_check(settings, "", Console(file=written, width=200)) == 0
    said = written.getvalue()
    assert f"{MODEL}:latest at {server.url.rstrip('/')}" in said
    assert "Answers: it writes them, also where the evidence engine is certain" in said
    assert "Without a tokenizer, lengths are estimated" in said


async def test_a_server_that_computes_every_prompt_anew_is_found_out() -> None:
    assert not (await works(ScriptedModel(reply)))["prompt cache"]


async def test_probabilities_that_change_from_one_time_to_the_next_are_found_out() -> None:
    odds = iter(range(1, 20))
    found = await works(ServerLike(reply, odds=lambda _, choices: {choices[0]: float(next(odds)), choices[1]: 1.0}))
    assert not found["probabilities"]


async def test_a_model_that_fails_its_exam_is_found_out() -> None:
    assert not (await works(ServerLike(reply)))["exam"]


async def test_every_check_is_made_though_the_server_is_down_and_says_what_it_heard() -> None:
    def down(_: ModelRequest) -> str:
        raise ModelUnavailable("The model server cannot be reached.")

    abilities = {ability.name: ability async for ability in check_model(ScriptedModel(down))}
    assert (abilities["answers"].works, abilities["answers"].needed) == (False, True)
    assert abilities["speed"].found == "The model server cannot be reached."


async def test_the_exam_of_a_check_is_not_held_again_when_the_bot_starts(tmp_path: Path) -> None:
    model = ServerLike(reply, odds=right)
    kept = KeptExam(tmp_path / "data" / "exam.json", model)
    assert [each async for each in check_model(model, kept.save)]
    asked = len(model.requests)
    started = ExaminedModel(model, kept.load)
    await started.recall()
    assert started.skill(Use.ANSWERS) == skill_of(Marks(FULL.find, 0, 0))
    assert len(model.requests) == asked
