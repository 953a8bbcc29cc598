from __future__ import annotations

import json
from pathlib import Path

import pytest

from bot.evaluation.rca import holds, run
from bot.evaluation.rca_engines import Given, by_evidence, by_keyword, by_model
from bot.evaluation.recorded import Recorded
from core.model.errors import MalformedInput
from core.rca.tool_outputs.clues import ToolOutput
from tests.fakes.language_model import ScriptedModel

CASES = Path(__file__).parent / "data" / "rca_cases.jsonl"
LOG = "boot\nerror: open /data/tariffs.csv: permission denied\n"
GIVEN = Given("Why does shipping fail?", (ToolOutput("logs", {"pod_name": "shipping-0"}, LOG),))


async def test_the_evidence_engine_finds_more_causes_than_a_keyword_search() -> None:
    figures = await run(CASES)
    ours, keyword = figures["results"]["evidence"], figures["results"]["keyword"]
    assert figures["engine"] == "evidence"
    assert figures["evidence@3"] == ours["evidence@3"] > keyword["evidence@3"]
    assert figures["stated"] == ours["stated"] > keyword["stated"]
    assert ours["stated"] >= 0.9
    assert ours["evidence@3"] >= 0.9
    assert figures["stated_ci"][0] <= figures["stated"] <= figures["stated_ci"][1]


async def test_no_cause_is_made_up_for_what_is_well() -> None:
    figures = await run(CASES)
    assert figures["results"]["evidence"]["by_kind"]["healthy"]["right"] == 1.0


async def test_an_engine_sees_nothing_but_the_question_and_what_was_observed(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in CASES.read_text("utf-8").splitlines()]
    blind = tmp_path / "cases.jsonl"
    for row in rows:
        row |= {"id": "x", "expected": [], "tags": [], "keys": [["no such key"]], "evidence_keys": [["no such key"]]}
    blind.write_text("\n".join(json.dumps(row) for row in rows), "utf-8")
    figures, seen = await run(blind), await run(CASES)
    assert figures["stated"] == figures["evidence@3"] == 0.0
    assert figures["abstained"] == seen["abstained"]


def test_every_group_needs_one_of_its_alternatives() -> None:
    assert holds("Out of   memory at the\u2011limit", (("out of memory", "OOMKilled"), ("the-limit",)))
    assert not holds("Out of memory", (("out of memory",), ("limit",)))


async def test_both_engines_quote_what_stands_in_the_outputs() -> None:
    for engine in (by_evidence, by_keyword):
        verdict = await engine(GIVEN)
        assert verdict.quotes
        assert all(quote in LOG for quote in verdict.quotes)


async def test_a_model_asks_for_the_recorded_outputs_and_may_quote_only_those() -> None:
    finding = {
        "tool": "finalize",
        "root_cause": "The tariffs cannot be read: permission denied.",
        "solution": "",
        "service": "shipping",
        "responsibility": "platform",
        "evidence": ["error: open /data/tariffs.csv: permission denied", "the moon is made of cheese"],
    }
    replies = iter([{"tool": "logs_1"}, finding])
    model = ScriptedModel(lambda _: json.dumps({"thought": "", "action": next(replies, finding)}))
    verdict = await by_model(model)(GIVEN)
    assert verdict.cause == finding["root_cause"]
    assert verdict.quotes == ("error: open /data/tariffs.csv: permission denied",)
    assert verdict.steps >= 2


async def test_a_cause_of_which_no_quote_is_left_is_none() -> None:
    finding = {
        "tool": "finalize",
        "root_cause": "The moon.",
        "solution": "",
        "service": "moon",
        "responsibility": "user",
        "evidence": ["the moon is made of cheese"],
    }
    replies = iter([{"tool": "logs_1"}, finding])
    model = ScriptedModel(lambda _: json.dumps({"thought": "", "action": next(replies, finding)}))
    assert (await by_model(model)(GIVEN)).cause == ""


async def test_a_file_of_another_form_is_refused(tmp_path: Path) -> None:
    wrong = tmp_path / "cases.jsonl"
    wrong.write_text('{"question": "why?"}\n', "utf-8")
    with pytest.raises(MalformedInput, match="observations"):
        await run(wrong)
    row = {"question": "", "observations": [3], "kind": "root_cause", "gradable": True, "keys": [], "evidence_keys": []}
    wrong.write_text(json.dumps(row), "utf-8")
    with pytest.raises(MalformedInput, match="is not in the format"):
        await run(wrong)


async def test_a_simulated_model_that_is_more_often_right_states_more_causes() -> None:
    stated = [(await run(CASES, Recorded(simulate=right)))["stated"] for right in (0.0, 0.5, 1.0)]
    assert stated == sorted(stated)
    assert stated[0] < stated[-1]
