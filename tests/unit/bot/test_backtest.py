"""A backtest: exports of several systems, replayed as of their times, resumed, asked about, and written as a page."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bot.backtest import replay
from bot.backtest.exports import read_export
from bot.backtest.questions import question_figures
from bot.backtest.replay import Result, figures_of, page_of, run_backtest
from bot.config.settings import Settings
from core.model.conversation import PUBLIC, Audience
from core.model.document import SOURCE
from core.model.errors import ConfigurationError, MalformedInput
from handlers.common.ports import Ports
from tests.contract.passages import encoded
from tests.fakes.passage_index import FakePassageIndex

TILL = {
    "title": "The till is slow",
    "service": "till",
    "severity": "P1",
    "started_at": "2026-03-14T09:26:00+00:00",
    "owner": "Payments",
}

PAGERDUTY = {
    "incidents": [
        {
            "id": "Q1",
            "incident_number": 7,
            "title": TILL["title"],
            "created_at": "2026-03-14T09:26:00Z",
            "urgency": "high",
            "priority": {"summary": "P1"},
            "service": {"summary": "till"},
            "teams": [{"summary": "Payments"}],
            "html_url": "https://x.example/Q1",
        }
    ],
    "more": False,
}
JIRA = {
    "issues": [
        {
            "key": "OPS-7",
            "fields": {
                "summary": TILL["title"],
                "created": "2026-03-14T10:26:00.000+0100",
                "priority": {"name": "P1"},
                "components": [{"name": "till"}],
                "team": {"name": "Payments"},
            },
        }
    ]
}
INCIDENT_IO = {
    "incidents": [
        {
            "id": "01A",
            "reference": "INC-7",
            "name": TILL["title"],
            "created_at": "2026-03-14T09:26:00Z",
            "severity": {"name": "P1"},
            "team": "Payments",
            "custom_field_entries": [
                {
                    "custom_field": {"name": "Affected service"},
                    "values": [{"value_catalog_entry": {"name": "till"}}],
                }
            ],
        }
    ]
}
CSV = "Incident Number,Description,Service Name,Urgency,Created On,Team\n7,The till is slow,till,P1,2026-03-14 09:26:00,Payments\n"
EXPORTS = {
    "pagerduty.json": json.dumps(PAGERDUTY),
    "jira.json": json.dumps(JIRA),
    "incident_io.json": json.dumps(INCIDENT_IO),
    "table.csv": CSV,
    "own.jsonl": json.dumps({"id": "1", **TILL}) + "\nno JSON\n",
    "list.json": json.dumps([{"id": "1", **TILL}]),
}


@pytest.mark.parametrize("name", EXPORTS)
def test_the_exports_of_every_system_say_the_same(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(EXPORTS[name])
    (one,), left_out = read_export(tmp_path / name)
    assert one.id
    said = one.model_dump(mode="json")
    assert {key: said[key] for key in TILL if key != "started_at"} == {
        k: v for k, v in TILL.items() if k != "started_at"
    }
    assert one.started_at.isoformat() == TILL["started_at"]
    assert len(left_out) == (name == "own.jsonl")


@pytest.mark.parametrize("content", ["", "[]", '{"incidents": [{"id": "1"}]}', "no JSON"])
def test_a_file_without_an_incident_is_refused_with_a_reason(content: str, tmp_path: Path) -> None:
    (tmp_path / "export.json").write_text(content)
    with pytest.raises(MalformedInput, match="has no incident that can be read"):
        read_export(tmp_path / "export.json")


def bot_message(ts: str, text: str, colour: str, **more: Any) -> dict[str, Any]:
    sender = {"type": "message", "subtype": "bot_message", "bot_id": "B0MON", "app_id": "A0MON", "username": "Monitor"}
    return sender | {"ts": ts, "attachments": [{"title": text, "color": colour}]} | more


SLACK_DAY = [
    bot_message("1773480360.000001", "[FIRING:1] TillSlow (till critical)", "a30200"),
    {
        "type": "message",
        "user": "U0ADA",
        "ts": "1773480400.000001",
        "thread_ts": "1773480360.000001",
        "text": "looking",
    },
    {
        "type": "message",
        "user": "U0ADA",
        "ts": "1773480500.000001",
        "thread_ts": "1773480360.000001",
        "text": "root cause: a full disk; owner: Payments",
    },
    {"type": "message", "user": "U0ADA", "ts": "1773480510.000001", "text": "Who is at lunch? TillSlow is firing :)"},
    bot_message("1773480960.000001", "[RESOLVED] TillSlow (till critical)", "2eb886"),
    bot_message("1773484560.000001", "[FIRING:1] TillSlow (till critical)", "a30200"),
    bot_message(
        "1773488160.000001",
        "[RESOLVED] WebDown (web critical)",
        "2eb886",
        edited={"user": "B0MON", "ts": "1773488760.000001"},
    ),
    bot_message("1773489000.000001", "[RESOLVED] DiskFull (web critical)", "2eb886"),
]


def slack_export(folder: Path, *messages: dict[str, Any]) -> Path:
    (folder / "alerts").mkdir(parents=True)
    (folder / "channels.json").write_text(json.dumps([{"id": "C0ALERTS", "name": "alerts"}]))
    (folder / "alerts" / "2026-03-14.json").write_text(json.dumps(messages))
    return folder


def test_each_alert_of_a_slack_export_is_an_incident_with_what_its_thread_says(tmp_path: Path) -> None:
    first, again, edited = read_export(slack_export(tmp_path / "export", *SLACK_DAY))[0]
    assert (first.owner, first.root_cause) == ("Payments", "a full disk")
    assert "TillSlow" in first.title
    assert again.title == first.title
    assert (again.owner, again.resolved_at) == ("", None)
    assert "WebDown" in edited.title
    spans = [each.resolved_at - each.started_at for each in (first, edited) if each.resolved_at is not None]
    assert [span.total_seconds() for span in spans] == [600, 600]


@pytest.mark.parametrize("messages", [(), SLACK_DAY[-1:], SLACK_DAY[1:4]])
def test_a_slack_export_without_an_alert_is_refused_with_a_reason(
    messages: Sequence[dict[str, Any]], tmp_path: Path
) -> None:
    with pytest.raises(MalformedInput, match="has no incident that can be read"):
        read_export(slack_export(tmp_path / "export", *messages))
    with pytest.raises(MalformedInput, match="cannot be read"):
        read_export(tmp_path / "missing.zip")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "plumbline.yaml").write_text(
        "teams:\n"
        "  - {id: payments, name: Payments, services: [till]}\n"
        "  - {id: storefront, name: Storefront, services: [web]}\n"
    )
    given = {"PLUMBLINE_CONFIG": tmp_path / "plumbline.yaml", "PLUMBLINE_DATA_DIR": tmp_path / "data"}
    return Settings.model_validate(given | {"PLUMBLINE_EMBEDDINGS": "none"})


def exported(tmp_path: Path, *incidents: dict[str, Any]) -> Path:
    file = tmp_path / "export.jsonl"
    file.write_text("".join(f"{json.dumps(each)}\n" for each in incidents))
    return file


def message(ts: str, user: str, text: str, root: str = "") -> dict[str, Any]:
    return {"type": "message", "user": user, "ts": ts, "thread_ts": root or ts, "text": text}


ROOT, OTHER = "1773480600.000001", "1773480700.000001"
TALK = (
    message(ROOT, "U0ADA", "How do I drain the till before a restart?"),
    message("1773480610.000001", "U0BEN", "<@U0ADA> run tillctl drain, then wait for zero", ROOT),
    message("1773480620.000001", "U0ADA", "thanks?", ROOT),
    message(OTHER, "U0ADA", "Who moved the kettle?"),
    message("1773480710.000001", "U0ADA", "found it", OTHER),
    message("1773480800.000001", "U0BEN", "No question here"),
    message("1773480810.000001", "U0ADA", "nor an answer?", "1773480800.000001"),
    bot_message("1773480900.000001", "Is that an alert?", "2eb886"),
)


async def test_a_question_of_a_channel_is_asked_again_as_of_its_time_beside_what_people_answered(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export, documents = slack_export(tmp_path / "export", *TALK), tmp_path / "documents"
    (export / "users.json").write_text(json.dumps([{"id": "U0ADA", "profile": {"display_name": "ada"}}]))
    documents.mkdir()
    (documents / "till.md").write_text(
        "# Till\n\n## Restart\n\nTo **drain** the till before a restart, run `tillctl drain`.\n"
    )
    with (tmp_path / "plumbline.yaml").open("a") as opened:
        opened.write(
            f"sources:\n  - {{kind: folder, name: docs, path: {documents}}}\n"
            f"  - {{kind: slack_export, name: talk, path: {export}}}\n"
        )
    page, out = tmp_path / "page.html", Console(file=io.StringIO())
    typed = iter(["1"])  # it is asked once
    monkeypatch.setattr("bot.backtest.questions.Prompt.ask", lambda *_, **__: next(typed))
    for asks, right in ((False, None), (True, 1), (True, 1)):
        results, (answer,) = await run_backtest(settings, export, 50, page, out, asks=asks)
        assert results == []
        assert answer.question == "How do I drain the till before a restart?"
        assert [each.replace("@", "") for each in answer.people] == ["ada run tillctl drain, then wait for zero"]
        assert "tillctl drain" in answer.shown[0]
        assert "tillctl drain" in answer.message
        assert not any("wait for zero" in each for each in answer.shown), "nobody had said so then"
        assert answer.right == right
        assert question_figures([answer])["among_three"] == bool(right)
    assert "People answered" in page.read_text()
    assert "<strong>drain</strong> the till before a restart, run <code>tillctl drain</code>" in page.read_text()
    assert len(page.with_suffix(".backtest.jsonl").read_text().splitlines()) == 2


async def test_a_question_about_incidents_sees_those_that_were_open_when_it_was_asked_and_everybody_may_read(
    settings: Settings, tmp_path: Path
) -> None:
    def question(minute: int) -> tuple[dict[str, Any], dict[str, Any]]:
        asked, answered = (f"{1773480000 + 60 * minute + second}.000001" for second in (0, 1))
        return message(asked, "U0ADA", "Is the till down?"), message(answered, "U0BEN", "I look", asked)

    field = [{"title": "Service", "value": "till"}]
    alerts = [
        {**each, "attachments": [{**each["attachments"][0], "fields": field}]} for each in (SLACK_DAY[0], SLACK_DAY[4])
    ]
    talk = [each for minute in (1, 10, 30) for each in question(minute)]
    export = slack_export(tmp_path / "export", *alerts, *talk)
    hidden = {
        **alerts[0],
        "attachments": [{**alerts[0]["attachments"][0], "title": "[FIRING:1] TillRobbed (till critical)"}],
    }
    (export / "vault").mkdir()
    (export / "vault" / "2026-03-14.json").write_text(json.dumps([{**hidden, "ts": "1773480300.000001"}]))
    (export / "groups.json").write_text(json.dumps([{"id": "G0VAULT", "name": "vault"}]))
    page, out = tmp_path / "page.html", Console(file=io.StringIO())
    kept = page.with_suffix(".backtest.jsonl")
    messages: list[list[str]] = []
    for _ in range(2):
        _, answers = await run_backtest(settings, export, 50, page, out, asks=False)
        messages.append([each.message for each in answers])
        incidents = [each for each in kept.read_text().splitlines(keepends=True) if '"findings"' in each]
        assert len(incidents) == 2
        kept.write_text("".join(incidents))  # as if it was broken off before its questions
    before, during, after = messages[0]
    assert ("TillSlow" in before, "TillSlow" in during, "TillSlow" in after) == (False, True, False)
    assert "Payments" in during
    assert not any("TillRobbed" in each for each in messages[0]), "it is of a private channel"
    assert messages[1] == messages[0]


@pytest.mark.parametrize(
    ("document_id", "taught", "is_read"),
    [(f"{SOURCE}/1", 2, True), (f"{SOURCE}/1", 4, False), ("docs/till.md", 4, True)],
)
async def test_an_answer_that_people_taught_later_is_not_read_but_a_page_is(
    document_id: str, taught: int, is_read: bool
) -> None:
    point, index = encoded(document_id, 1, {}, []), FakePassageIndex()
    taught_at = datetime(2026, 3, taught, tzinfo=UTC)
    await index.upsert([replace(point, passage=replace(point.passage, updated_at=taught_at))])
    then = replay._IndexAsOf(index, datetime(2026, 3, 3, tzinfo=UTC))
    assert bool(await then.passages_of(document_id, point.passage.readers)) == is_read


async def test_neither_the_page_nor_what_is_kept_holds_a_secret_that_somebody_wrote_in_a_channel(
    settings: Settings, tmp_path: Path
) -> None:
    talk = (
        message(ROOT, "U0ADA", "How do I drain the till with password=canary-of-ada-1?"),
        message("1773480610.000001", "U0BEN", "with password=canary-of-ben-1", ROOT),
    )
    page, export = tmp_path / "page.html", slack_export(tmp_path / "export", *talk)
    _, (answer,) = await run_backtest(settings, export, 50, page, Console(file=io.StringIO()), asks=False)
    assert "password" in answer.question
    assert "canary" not in f"{answer}{page.read_text()}{page.with_suffix('.backtest.jsonl').read_text()}"


async def replayed(settings: Settings, export: Path, *, asks: bool = False) -> list[Result]:
    page, out = export.with_suffix(".html"), Console(file=io.StringIO())
    return (await run_backtest(settings, export, 50, page, out, asks=asks))[0]


async def test_neither_the_page_nor_what_is_kept_holds_a_secret_in_a_title(settings: Settings, tmp_path: Path) -> None:
    export = exported(tmp_path, {**TILL, "id": "1", "title": "The till refuses password=canary-of-till-1"})
    (result,) = await replayed(settings, export)
    page = export.with_suffix(".html")
    assert "The till refuses" in result.title
    assert "canary" not in f"{result}{page.read_text()}{page.with_suffix('.backtest.jsonl').read_text()}"


async def test_incidents_are_replayed_as_of_their_times_and_written_as_a_page(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before: list[list[str]] = []
    as_of = replay._as_of

    def noted(at: Any, earlier: Any, core: Any) -> Any:
        before.append([each.id for each in earlier])
        return as_of(at, earlier, core)

    monkeypatch.setattr(replay, "_as_of", noted)
    later = {
        **TILL,
        "id": "2",
        "service": "web",
        "started_at": "2026-03-15T09:00:00Z",
        "resolved_at": "2026-03-16T09:00:00Z",
    }
    export = exported(
        tmp_path,
        {**TILL, "id": "1", "resolved_at": "2026-03-14T10:00:00Z", "title": "The till is <slow>"},
        later,
        {**later, "id": "3", "started_at": "2026-03-15T12:00:00Z"},
    )
    results = await replayed(settings, export)
    assert before == [[]] * 2 + [["1"]] * 4, "what was not over yet, as 1 begins and ends, and 2 and 3 do, is not known"
    assert [(each.owner, each.known_owner, each.right_owner) for each in results] == [
        ("Payments", "Payments", True),
        ("", "Payments", False),  # its service is Storefront's, but what it says was Payments' before
        ("", "Payments", False),
    ]
    assert all("Payments" in each.asked for each in results[1:])
    page = export.with_suffix(".html").read_text()
    assert "1 of 1" in page
    assert "The till is &lt;slow&gt;" in page


async def test_a_team_that_the_export_calls_by_its_name_is_known_from_earlier_incidents(
    settings: Settings, tmp_path: Path
) -> None:
    with (tmp_path / "plumbline.yaml").open("a") as opened:
        opened.write("  - {id: desk, name: Service Desk}\n")
    kiosk = {"title": "The card reader of the kiosk is stuck again", "owner": "Service Desk"}
    times = [(f"2026-03-{day:02}T09:00:00Z", f"2026-03-{day:02}T10:00:00Z") for day in range(1, 7)]
    incidents = [
        {**kiosk, "id": str(number), "started_at": began, "resolved_at": over}
        for number, (began, over) in enumerate(times)
    ]
    first, *_, last = await replayed(settings, exported(tmp_path, *incidents))
    assert (first.owner, first.asked) == ("", ())
    assert "Service Desk" in (last.owner, *last.asked)


async def test_a_run_that_was_broken_off_goes_on_and_does_nothing_twice(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export = exported(tmp_path, {**TILL, "id": "1"}, {**TILL, "id": "2"})
    first = await replayed(settings, export)
    saved = export.with_suffix(".backtest.jsonl")
    lines = saved.read_text().splitlines()
    saved.write_text(lines[0] + "\n" + lines[1][:40])
    work: list[str] = []
    replay_one = replay._replayed

    async def counted(one: Any, *rest: Any) -> Result:
        work.append(one.id)
        return await replay_one(one, *rest)

    monkeypatch.setattr(replay, "_replayed", counted)
    again = await replayed(settings, export)
    assert work == ["2"]
    assert [each.owner for each in again] == [each.owner for each in first]
    assert settings.config
    settings.config.write_text(f"{settings.config.read_text()}# other teams\n")
    await replayed(settings, export)
    assert work == ["2", "1", "2"], "what another configuration gave is not kept"


async def test_what_the_export_does_not_tell_is_asked_once(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export = exported(tmp_path, {**TILL, "id": "1", "owner": ""})
    asked: list[str] = []

    def answer(question: str, **_: Any) -> str:
        asked.append(question)
        return "payments"

    monkeypatch.setattr(replay.Prompt, "ask", answer)
    for _ in range(2):
        (result,) = await replayed(settings, export, asks=True)
        assert (result.known_owner, result.right_owner) == ("payments", True)
    assert len(asked) == 1


def test_what_nobody_knows_counts_for_nothing() -> None:
    one = Result(
        id="1",
        digest="",
        title="t",
        started_at="2026-03-14T09:26:00Z",  # pyright: ignore[reportArgumentType]
        message=("t",),
        owner="Payments",
        asked=(),
        causes=(),
        known_owner="",
        known_cause="",
        right_owner=None,
        right_cause=None,
        not_read=("logs: not read",),
        calls=0,
        seconds=1,
    )
    figures = figures_of([one])
    assert (figures["owners_known"], figures["owners_right"], figures["causes_known"]) == (0, 0, 0)
    page = page_of([one], "export.json", ["incident 3: title: Field required"])
    assert "0 of 0" in page
    assert "incident 3" in page
    assert "logs: not read" in page


async def test_without_teams_nothing_is_replayed(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "plumbline.yaml").write_text("name: Nobody\n")
    with pytest.raises(ConfigurationError, match="name your teams"):
        await replayed(settings, exported(tmp_path, {**TILL, "id": "1"}))


async def test_an_incident_does_not_find_its_own_record_among_the_documents(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = {
        **TILL,
        "id": "1",
        "severity": "critical",
        "description": "Charges at the till wait for the ledger.",
        "resolved_at": "2026-03-14T12:00:00Z",
        "fix": "Raised the pool of the ledger to 40 connections.",
    }
    again = {**record, "id": "2", "started_at": "2026-03-15T09:26:00Z", "resolved_at": "2026-03-15T12:00:00Z"}
    export = exported(tmp_path, record, again)
    with (tmp_path / "plumbline.yaml").open("a") as config:
        config.write(f"sources:\n  - {{kind: past_incidents, name: incidents, path: {export.name}}}\n")
    all_seen: list[Ports] = []
    as_of = replay._as_of

    def noted(*given: Any) -> Ports:
        all_seen.append(as_of(*given))
        return all_seen[-1]

    readable: list[list[str]] = []
    replay_one = replay._replayed

    async def looked(*given: Any) -> Result:
        result = await replay_one(*given)
        knowledge, everybody = all_seen[-1].knowledge, Audience(frozenset({PUBLIC}))
        hits = await knowledge.retriever.retrieve("pool of the ledger", everybody, 5)
        pages = [await knowledge.index.passages_of(f"incidents/{number}", everybody.readers) for number in (1, 2)]
        shown = {each.passage.document_id for each in hits}
        assert shown == {passages[0].document_id for passages in pages if passages}
        readable.append(sorted(shown))
        return result

    monkeypatch.setattr(replay, "_as_of", noted)
    monkeypatch.setattr(replay, "_replayed", looked)
    await replayed(settings, export)
    assert readable == [[], ["incidents/1"]]
