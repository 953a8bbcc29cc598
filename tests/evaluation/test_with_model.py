"""`make benchmarks LLM=URL` against a server whose model is scripted."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from core.model.errors import InvalidReply
from core.model.language_model import ChatMessage, ModelRequest, Role
from core.model_calls.judge import SourceVerdict
from tests.benchmarks import with_model
from tests.benchmarks.checker import SAMPLE, cases_in
from tests.benchmarks.simulated import SimulatedModel
from tests.fakes.general_servers import fake_model_server

pytestmark = pytest.mark.external  # each measures all subjects, for seconds

STATEMENT = re.compile(r"^\d+\. (.*?) ?(?:\[\d+\])*\n   Nearest:", re.MULTILINE)
TRUE = {
    *(each.sentence for each in cases_in(SAMPLE) if each.faithful),
    *(json.loads(line)["faithful"] for line in with_model.FINDINGS.read_text("utf-8").splitlines()),
}


def knowing(right: float) -> Any:
    """The script of a server whose model passes the exam with this skill, and knows all true sentences if it has any."""
    model = SimulatedModel((), right)

    def reply(body: dict[str, Any]) -> str:
        messages = tuple(ChatMessage(Role(each["role"]), each["content"]) for each in body["messages"])
        schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
        request = ModelRequest(messages, schema=schema)
        stated = STATEMENT.findall(messages[-1].text)
        if stated and "How are releases, backups and shifts run here?" not in messages[-1].text:
            said = (SourceVerdict.SAID if right and each in TRUE else SourceVerdict.CHANGED for each in stated)
            return json.dumps({str(number): verdict for number, verdict in enumerate(said, start=1)})
        if schema is not None and "enum" in schema:
            return json.dumps(model._chosen(request, schema["enum"]) if schema["enum"][1:] else schema["enum"][0])
        if schema is None and "Passages of documents" not in messages[-1].text:
            return "Hello."
        try:
            return model._replied(request)
        except InvalidReply:
            return "?"

    return reply


async def measured(right: float, folder: Path) -> Mapping[str, Any]:
    async with fake_model_server("vllm", context=32_768) as fake:
        fake.script = knowing(right)
        record = folder / f"replies-{right}.jsonl"
        return await asyncio.to_thread(with_model.measured, fake.url, folder, 6, record)


@pytest.fixture
def few_cases(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    cases = tmp_path / "cases.jsonl"
    cases.write_text("\n".join(with_model.CASES.read_text("utf-8").splitlines()[:2]), "utf-8")
    monkeypatch.setattr(with_model, "CASES", cases)
    (tmp_path / "real-qa-3").mkdir()
    (tmp_path / "itsm-tickets").mkdir()
    page = {"path": "runner.md", "text": "# Runners\n\n## Drain a runner\n\nTo drain the runner, run `drain --now`."}
    question = {"id": "1", "question": "how do I drain the runner?", "key": r"drain\W+now", "kind": "howto"}
    (tmp_path / "real-qa-3" / "questions.jsonl").write_text(json.dumps(question), "utf-8")
    tickets = [
        {"title": f"{what} fails in building {number}", "body": f"The {what} has stopped again.", "owner": owner}
        for number in range(150)
        for what, owner in (("printer", "print"), ("badge reader", "doors"), ("mail box", "mail"))
    ]
    for name, rows in (("real-qa-3/corpus-cicd", [page]), ("itsm-tickets/tickets", tickets)):
        with gzip.open(tmp_path / f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.write("\n".join(map(json.dumps, rows)))
    return tmp_path


async def test_every_row_says_what_a_model_adds_and_costs_and_which_it_is(few_cases: Path) -> None:
    figures = await measured(1.0, few_cases)
    assert (figures["model"], figures["quantisation"]) == ("tiny", "not told")
    assert figures["server"].startswith("OpenAI's interface, 32,768 tokens")
    rows = {row["measure"]: row for row in figures["rows"]}
    subjects = {"exam", "answers", "causes", "owners", "checker of answers", "checker of causes"}
    assert {name.partition(":")[0] for name in rows} == subjects
    with_model.print_table(figures, Console(file=io.StringIO()))
    assert rows["exam: judge"]["with_model"] == 1.0
    for subject in ("answers", "causes"):
        true, false = rows[f"checker of {subject}: true ones shown"], rows[f"checker of {subject}: false ones shown"]
        assert true["with_model"] >= 0.9
        assert false["with_model"] == 0.0
        assert true["calls"] == 1
        assert true["tokens"] > 100


async def test_a_model_that_judges_nothing_shows_nothing_of_its_own(few_cases: Path) -> None:
    rows = {row["measure"]: row["with_model"] for row in (await measured(0.0, few_cases))["rows"]}
    assert rows["checker of causes: false ones shown"] == 0.0
    assert rows["exam: find"] <= 0.2
