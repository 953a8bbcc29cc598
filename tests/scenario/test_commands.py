"""The commands as somebody at a terminal gives them: what they print, and the code that they end with."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import structlog

from adapters.qdrant_edge import EdgeIndex
from bot import cli
from bot.telemetry import configure_logging
from core.incidents.readable import NONE_OPEN
from handlers.incidents.explain_incident import LOOKS_CLOSER
from tests.fakes.llama_server import fake_llama_server
from tests.fakes.monitoring_systems.home_made import HomeMade
from tests.fakes.monitoring_systems.system import encoded
from tests.folders import copy_folder
from tests.scenario.company import SECRET_WORD, write_company
from tests.scenario.webhooks import alert, delivery

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a company and its corpus, to be copied."""
    folder = tmp_path_factory.mktemp("indexed")
    with pytest.MonkeyPatch.context() as monkeypatch:
        _set_up(monkeypatch, folder)
        monkeypatch.setattr(sys, "argv", ["plumbline", "ingest"])
        with pytest.raises(SystemExit) as ended:
            cli.main()
    assert not ended.value.code
    return folder


@pytest.fixture
def folder(indexed: Path, tmp_path: Path) -> Path:
    copy_folder(indexed, tmp_path)
    return tmp_path


@pytest.fixture
def plumbline(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command; returns its exit code, what it printed, and what it complained of."""
    _set_up(monkeypatch, folder)

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["plumbline", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        printed = capsys.readouterr()
        return int(ended.value.code or 0), printed.out, printed.err

    return run


def _set_up(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("PLUMBLINE_CONFIG", str(folder / "company/plumbline.yaml"))
    monkeypatch.setenv("PLUMBLINE_DATA_DIR", str(folder / "data"))
    if not (folder / "company").exists():
        write_company(folder / "company")
    monkeypatch.setattr(cli, "configure_logging", lambda *_: None)  # it is for a whole process


def complaint(error: str) -> str:
    """The one sentence on standard error, whatever the width of the terminal."""
    sentence = " ".join(error.split())
    assert re.fullmatch(r"plumbline: \S.*\.", sentence)
    return sentence.removeprefix("plumbline: ")


def test_a_question_is_answered_with_its_source(plumbline: Command) -> None:
    code, printed, _ = plumbline("ask", "How do I roll back a canary?")
    assert code == 0
    assert "slip rollback SERVICE" in printed
    assert "Rolling back a canary" in printed
    assert "●" not in printed, "nobody has judged an answer"


def test_an_answer_as_json_is_nothing_but_json(plumbline: Command) -> None:
    code, printed, _ = plumbline("ask", "How do I roll back a canary?", "--json")
    assert code == 0
    assert json.loads(printed)["citations"][0]["document_id"] == "handbook/release/canary.md"


def test_a_channel_is_answered_with_what_it_may_read(plumbline: Command) -> None:
    asked = "Where is the master key kept?"
    assert SECRET_WORD not in plumbline("ask", asked)[1]
    assert SECRET_WORD in plumbline("ask", asked, "--channel", "vault")[1]


def test_a_channel_that_is_none_is_refused(plumbline: Command) -> None:
    code, _, error = plumbline("ask", "what?", "--channel", "nowhere")
    assert (code, complaint(error)) == (1, "There is no channel nowhere in plumbline.yaml.")


def test_a_recorded_alert_is_worked_on_and_nothing_of_it_is_kept(plumbline: Command, folder: Path) -> None:
    recorded = folder / "alert.json"
    raised = alert()
    raised["annotations"]["runbook_url"] = "https://wiki.example/runbooks/till-latency"
    recorded.write_text(json.dumps(delivery("group", raised)))
    for _ in range(2):
        code, printed, _ = plumbline("replay", str(recorded), "--json")
        assert code == 0
        incident = json.loads(printed)
        assert incident["owner"]["owner"]["team_id"] == "payments"
        assert incident["stage"] == "done"
        assert incident["runbook"]["citation"]["title"], "the documents are the real ones"
    code, printed, _ = plumbline("replay", str(recorded))
    assert code == 0
    assert "Payments" in printed
    assert "restore the old value" in printed


@pytest.mark.parametrize(("use", "is_asked"), [("always", True), ("measured", False)])
async def test_a_replay_asks_the_language_model_or_says_that_it_does_not(
    use: str, is_asked: bool, plumbline: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = folder / "alert.json"
    recorded.write_text(json.dumps(delivery("group", alert())))
    async with fake_llama_server(context=200_000) as server:
        server.script = lambda _: "?"
        monkeypatch.setenv("PLUMBLINE_LLM_URL", server.url)
        monkeypatch.setenv("PLUMBLINE_LLM_USE", use)
        code, printed, error = await asyncio.to_thread(plumbline, "replay", str(recorded))
    assert (code, "Payments" in printed) == (0, True)
    about = [body for body in server.bodies if "production incident" in json.dumps(body)]
    assert bool(about) is is_asked
    assert ("Without the language model" in error) is not is_asked
    assert (LOOKS_CLOSER in printed) is is_asked


async def test_a_recorded_alert_is_worked_on_without_the_documents_while_another_process_has_them(
    plumbline: Command, folder: Path
) -> None:
    recorded = folder / "alert.json"
    recorded.write_text(json.dumps(delivery("group", alert())))
    index = EdgeIndex(folder / "data" / "index")
    code, printed, error = await asyncio.to_thread(plumbline, "replay", str(recorded))
    await index.close()
    assert (code, "Payments" in printed) == (0, True)
    assert error.startswith("Without documents: ")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{", "The Alertmanager webhook is not valid: "),
        (json.dumps(delivery("group", alert(resolved=True))).encode(), "contains no firing alert"),
    ],
)
def test_a_recording_that_makes_no_incident_is_refused(
    plumbline: Command, folder: Path, content: bytes, said: str
) -> None:
    recorded = folder / "alert.json"
    recorded.write_bytes(content)
    code, printed, error = plumbline("replay", str(recorded))
    assert (code, printed) == (1, "")
    assert said in complaint(error)


def test_a_recording_that_is_not_there_or_of_no_known_kind_is_refused(plumbline: Command, folder: Path) -> None:
    code, _, error = plumbline("replay", str(folder / "none.json"))
    assert code == 1
    assert complaint(error).endswith("cannot be read: No such file or directory.")
    code, _, error = plumbline("replay", str(folder / "none.json"), "--source", "fax")
    assert code == 1
    assert complaint(error).startswith("There is no webhook format fax: use one of alertmanager")


def test_a_webhook_check_says_what_would_be_understood_and_where_it_would_be_posted(
    plumbline: Command, folder: Path
) -> None:
    tool = HomeMade("7")
    recorded = folder / "webhook.json"
    for payload, said in (
        (tool.fire(), ["Charges wait for a connection", "firing, info", "posted in console incidents"]),
        (tool.acknowledge(), ["acknowledged by Ada Quist", "service till"]),
        (tool.resolve(), ["resolved", "nothing new"]),
        (tool.test(), ["no new alert"]),
    ):
        recorded.write_bytes(encoded(payload))
        code, printed, _ = plumbline("webhook-check", str(recorded), "--source", "generic")
        assert code == 0
        assert [words for words in said if words not in " ".join(printed.split())] == []
    recorded.write_bytes(encoded(tool.fire()))
    code, printed, _ = plumbline("webhook-check", str(recorded), "--source", "generic", "--json")
    assert json.loads(printed)["delivery"]["alerts"][0]["service"] == "till"
    recorded.write_bytes(encoded(tool.event("sideways")))
    code, printed, error = plumbline("webhook-check", str(recorded), "--source", "generic")
    assert (code, printed) == (1, "")
    assert "'sideways'" in complaint(error)


def test_webhook_check_names_parts_that_would_be_left_out(plumbline: Command, folder: Path) -> None:
    odd = {name: value for name, value in alert("b2").items() if name != "status"}
    recorded = folder / "webhook.json"
    recorded.write_text(json.dumps(delivery("odd", alert()) | {"alerts": [alert(), odd]}))
    code, printed, _ = plumbline("webhook-check", str(recorded), "--source", "alertmanager")
    assert code == 0
    assert "left out  alerts.1 (status: Field required)" in printed


def test_an_ingestion_reads_only_what_changed(plumbline: Command, folder: Path) -> None:
    (folder / "company/documents/release/freeze.md").unlink()
    (folder / "company/documents/release/canary.md").write_text("# Rolling back a canary\n\nAsk the duty manager.\n")
    code, printed, _ = plumbline("ingest")
    assert code == 0
    assert "0 documents added, 1 changed, 1 removed, 9 unchanged." in " ".join(printed.split())


def test_an_ingestion_that_fails_in_part_says_so_and_ends_with_1(plumbline: Command, folder: Path) -> None:
    shutil.rmtree(folder / "company/documents")
    code, printed, _ = plumbline("ingest", "handbook")
    assert code == 1
    assert "handbook could not be read: " in printed


def test_the_status_tells_what_is_open_and_what_was_read(plumbline: Command) -> None:
    code, printed, _ = plumbline("status")
    assert code == 0
    assert printed.splitlines()[0] == NONE_OPEN
    assert "• handbook: 5 documents, read " in printed


def test_a_log_that_is_redirected_has_no_colours(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(structlog, "configure", lambda **_: None)
    root = logging.getLogger()
    before = root.handlers, root.level
    try:
        configure_logging("console")
        logging.getLogger("bot").warning("the pool is small")
    finally:
        root.handlers, root.level = before
    written = capsys.readouterr().err
    assert "the pool is small" in written
    assert "\x1b" not in written


def test_a_source_that_is_none_is_refused(plumbline: Command) -> None:
    code, _, error = plumbline("ingest", "nowhere")
    assert (code, complaint(error)) == (
        1,
        "There is no source called nowhere: plumbline.yaml has handbook, incidents.",
    )


def test_a_setting_that_cannot_be_used_is_named(plumbline: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLUMBLINE_PORT", "eighty")
    code, _, error = plumbline("ask", "what?")
    assert code == 1
    assert "PLUMBLINE_PORT: " in complaint(error)


@pytest.mark.parametrize("url", ["nonsense", "mysql://user:hidden@host/name", "sqlite//x"])
def test_a_database_that_is_none_is_named_without_its_password(
    plumbline: Command, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("PLUMBLINE_DATABASE_URL", url)
    code, _, error = plumbline("ask", "what?")
    assert code == 1
    assert "PLUMBLINE_DATABASE_URL is not the address of a database" in complaint(error)
    assert "hidden" not in error


def test_wrong_usage_ends_with_2(plumbline: Command) -> None:
    assert plumbline("sing")[0] == 2
    assert plumbline("ask")[0] == 2
