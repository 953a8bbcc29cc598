from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.evaluation.report import recorded_model
from core.model.errors import MalformedInput
from core.ports import TimeWindow
from core.rca.tool_outputs import ToolOutput
from tests.benchmarks import simulated_rca
from tests.benchmarks.rca_baseline import beside, by_keyword
from tests.benchmarks.rca_engines import (
    NOT_RECORDED,
    EngineVerdict,
    Given,
    RecordedTools,
    by_each,
    by_evidence,
    holds,
    run,
    verdict_of,
)
from tests.fakes.general_servers import fake_model_server
from tests.fakes.investigation import call, finalise, verdicts
from tests.fakes.language_model import ScriptedModel

CASES = Path(__file__).parent / "data" / "rca_cases.jsonl"
NOW = datetime(2026, 3, 1, tzinfo=UTC)
LOG = "boot\nerror: open /data/tariffs.csv: permission denied\n"
GIVEN = Given("Why does shipping fail?", (ToolOutput("logs", {"pod_name": "shipping-0"}, LOG),))


async def test_the_evidence_engine_finds_more_causes_than_a_keyword_search() -> None:
    figures = await beside(await run(CASES), CASES)
    ours, keyword = figures["results"]["evidence"], figures["results"]["keyword"]
    assert figures["engine"] == "evidence"
    assert figures["evidence@3"] == ours["evidence@3"] >= keyword["evidence@3"]  # both read with the same phrases
    assert figures["stated"] == ours["stated"] > keyword["stated"]
    assert ours["stated"] >= 0.9
    assert ours["evidence@3"] >= 0.85
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


def scripted(evidence: str) -> ScriptedModel:
    """A model that reads the log and then reports a cause with this quote."""
    found = finalise("The tariffs cannot be read: permission denied.", "shipping", solution="", evidence=[evidence])
    replies = iter([call("logs", pod_name="shipping-0"), call("logs", pod_name="shipping-1"), found])
    return ScriptedModel(lambda request: verdicts(request) or next(replies, found), context=32_768)


async def concluded(model: ScriptedModel) -> Mapping[str, EngineVerdict]:
    outputs = (*GIVEN.outputs, ToolOutput("logs", {"pod_name": "shipping-1"}, "boot\n"))
    told = await by_each(GIVEN.question, outputs, (), model, None)
    return {name: verdict_of(each, GIVEN) for name, each in told.items()}


async def test_a_model_calls_the_recorded_tools_and_may_quote_only_what_they_returned() -> None:
    told = await concluded(scripted("error: open /data/tariffs.csv: permission denied"))
    assert told["model"] == EngineVerdict(
        "The tariffs cannot be read: permission denied.", ("error: open /data/tariffs.csv: permission denied",), 2
    )
    assert told["plumbline"].cause == (await by_evidence(GIVEN)).cause, "an unproven model is not asked"


async def test_a_cause_of_which_no_quote_is_left_is_none() -> None:
    assert (await concluded(scripted("the moon is made of cheese")))["model"].cause == ""


async def test_a_recorded_tool_returns_the_output_of_the_same_call_alone() -> None:
    listed = ToolOutput("get", {"kind": "pods", "name": ""}, "api-0\nweb-0")
    failed = ToolOutput("get", {"kind": "nodes", "name": "n-1"}, "", failed=True)
    outputs = (listed, failed, ToolOutput("describe", {"name": "api-0"}, "Status: Running"))
    get, describe = await RecordedTools(outputs).tools((), TimeWindow(NOW, NOW))
    assert [each.name for each in get.parameters] == ["kind", "name"]
    assert await get.call({"kind": "pods", "name": ""}) == "api-0\nweb-0"
    assert await get.call({"kind": "nodes", "name": "n-1"}) == "The call failed."
    assert await get.call({"kind": "pods", "name": "api-1"}) == NOT_RECORDED
    assert await describe.call({"name": "api-0"}) == "Status: Running"


async def test_a_file_of_another_form_is_refused(tmp_path: Path) -> None:
    wrong = tmp_path / "cases.jsonl"
    wrong.write_text('{"question": "why?"}\n', "utf-8")
    with pytest.raises(MalformedInput, match="observations"):
        await run(wrong)
    row = {"question": "", "observations": [3], "kind": "root_cause", "gradable": True, "keys": [], "evidence_keys": []}
    wrong.write_text(json.dumps(row), "utf-8")
    with pytest.raises(MalformedInput, match="is not in the format"):
        await run(wrong)


@pytest.mark.external  # seconds
async def test_a_simulated_model_that_is_more_often_right_states_more_causes() -> None:
    results = [(await simulated_rca.run(CASES, right))["results"] for right in (0.0, 1.0)]
    alone = [each["model"]["stated"] for each in results]
    assert alone == sorted(alone)
    assert alone[0] < alone[-1]
    assert all(each["plumbline"]["stated"] >= each["evidence"]["stated"] for each in results)
    assert all(each["plumbline"]["by_kind"]["healthy"]["right"] == 1.0 for each in results)


async def test_a_server_that_answers_nothing_sensible_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLUMBLINE_LLM_CONTEXT", "32768")
    few = tmp_path / "cases.jsonl"
    few.write_text("\n".join(CASES.read_text("utf-8").splitlines()[:2]), "utf-8")
    async with fake_model_server("bare", context=32_768) as server:
        figures = await run(few, recorded_model(llm=server.url, record=tmp_path / "replies.jsonl"))
    results = figures["results"]
    assert (results["model"]["abstained"], results["model"]["stated"]) == (1.0, 0.0)
    assert results["plumbline"]["stated"] == results["evidence"]["stated"]
    assert figures["paired"]["plumbline"] == {"gained": 0, "lost": 0}
    assert results["model"]["steps_mean"] > 2, "it was asked"
