"""Exports of Slack: what is read from the archive, and what is left alone."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest

from adapters.sources.slack_history import SlackExportSource
from core.model.conversation import PUBLIC
from core.model.document import Document
from core.model.errors import SourceUnavailable
from core.ports import LeftOut

SLACK: dict[str, Any] = {
    "channels.json": [{"id": "C1", "name": "general", "members": ["U1", "U2"]}],
    "groups.json": [{"id": "G1", "name": "payments-private", "members": ["U2"]}],
    "dms.json": [{"id": "D1", "members": ["U1", "U2"]}],
    "users.json": [
        {"id": "U1", "name": "asha", "profile": {"real_name": "Asha Brandt", "display_name": ""}},
        {"id": "U2", "name": "mateo", "real_name": "Mateo Silvestri", "profile": {"email": "mateo@marigold.example"}},
        {"id": "U3", "name": "robot", "is_bot": True, "profile": {"real_name": "Robot"}},
    ],
    "general/2026-02-01.json": [
        {
            "type": "message",
            "user": "U1",
            "ts": "1769940000.000100",
            "thread_ts": "1769940000.000100",
            "text": "<@U2>?",
        },
        {"type": "message", "user": "U1", "ts": "1769940001.000100", "subtype": "channel_join", "text": "joined"},
        {"type": "message", "user": "U1", "ts": "no time", "text": "malformed"},
        {"type": "message", "user": "U1", "ts": "1769940002.000100", "text": "Alone."},
        {"type": "message", "user": "U2", "ts": "1769930000.000200", "thread_ts": "1769900000.000100", "text": "Lost."},
    ],
    "general/2026-02-02.json": [
        {
            "type": "message",
            "user": "U2",
            "ts": "1770030000.000300",
            "thread_ts": "1769940000.000100",
            "text": "Second.",
        },
        {
            "type": "message",
            "user": "U1",
            "ts": "1770020000.000300",
            "thread_ts": "1769940000.000100",
            "text": "First.",
        },
    ],
    "payments-private/2026-02-01.json": [
        {"type": "message", "user": "U2", "ts": "1769940003.000100", "text": "Secret."}
    ],
    "D1/2026-02-01.json": [{"type": "message", "user": "U2", "ts": "1769940004.000100", "text": "Between us."}],
    "unlisted/2026-02-01.json": [{"type": "message", "user": "U2", "ts": "1769940005.000100", "text": "Of no list."}],
}


def zipped(path: Path, files: dict[str, Any], top: str = "") -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(f"{top}{name}", content if isinstance(content, str) else json.dumps(content))
    return path


def encrypted(archive: bytes) -> bytes:
    """The same archive, each of whose files says that it is encrypted."""
    changed = bytearray(archive)
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        for found in re.finditer(re.escape(mark), archive):
            changed[found.start() + flags] |= 1
    return bytes(changed)


def unpacked(folder: Path, files: dict[str, Any]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return folder


async def documents(source: SlackExportSource) -> dict[str, Document]:
    return {
        document.id.removeprefix("docs/"): document
        async for document in source.documents()
        if isinstance(document, Document)
    }


async def left_out(source: SlackExportSource) -> dict[str, str]:
    return {each.path: each.reason async for each in source.documents() if isinstance(each, LeftOut)}


async def test_threads_are_put_together_over_days_and_in_order(tmp_path: Path) -> None:
    found = await documents(SlackExportSource("docs", zipped(tmp_path / "x.zip", SLACK), "https://m.slack.example/"))
    of_lost_root = "C1/1769900000.000100"
    threads = {"C1/1769940000.000100", "C1/1769940002.000100", "G1/1769940003.000100", of_lost_root}
    assert set(found) == threads
    assert found[of_lost_root].text == "Message: Lost."
    thread = found["C1/1769940000.000100"]
    assert thread.text == "Message: @Mateo Silvestri?\n\nThis message has the following responses:\n\nFirst.\n\nSecond."
    assert thread.url == "https://m.slack.example/archives/C1/p1769940000000100"
    assert thread.people == (
        ("Asha Brandt", "asha"),
        ("Mateo Silvestri", "mateo", "mateo@marigold.example"),
    )


async def test_private_channels_are_read_by_their_members_and_direct_messages_by_nobody(tmp_path: Path) -> None:
    found = await documents(SlackExportSource("docs", zipped(tmp_path / "x.zip", SLACK)))
    assert found["C1/1769940002.000100"].readers == {PUBLIC, "channel:slack:C1"}
    assert found["G1/1769940003.000100"].readers == {"channel:slack:G1", "person:slack:U2"}
    assert not any("Between us" in document.text or "Of no list" in document.text for document in found.values())


async def test_a_folder_and_an_archive_with_a_folder_around_it_are_read_alike(tmp_path: Path) -> None:
    expected = await documents(SlackExportSource("docs", zipped(tmp_path / "x.zip", SLACK)))
    for path in (unpacked(tmp_path / "folder", SLACK), zipped(tmp_path / "y.zip", SLACK, "Marigold Slack export/")):
        assert await documents(SlackExportSource("docs", path)) == expected


async def test_a_day_that_makes_no_sense_is_left_out_and_the_others_are_read(tmp_path: Path) -> None:
    broken = SLACK | {"general/2026-02-03.json": "{", "general/2026-02-04.json": '{"no": "list"}'}
    broken |= {"general/2026-02-05.json": "[" * 200_000}
    assert len(await documents(SlackExportSource("docs", zipped(tmp_path / "x.zip", broken)))) == 4
    named = await left_out(SlackExportSource("docs", tmp_path / "x.zip"))
    assert {f"general/2026-02-0{day}.json" for day in (1, 3, 4, 5)} | {"unlisted"} == named.keys()


async def test_an_archive_that_is_no_export_is_unavailable_and_not_empty(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match="is no"):
        await documents(SlackExportSource("docs", zipped(tmp_path / "x.zip", {"readme.json": []})))
    zipped(tmp_path / "x.zip", {"channels.json": [{"id": "C1"}]})
    (tmp_path / "encrypted.zip").write_bytes(encrypted((tmp_path / "x.zip").read_bytes()))
    with pytest.raises(SourceUnavailable, match="is no"):
        await documents(SlackExportSource("docs", tmp_path / "encrypted.zip"))
    (tmp_path / "broken.zip").write_bytes(b"PK broken")
    with pytest.raises(SourceUnavailable, match="cannot be read"):
        await documents(SlackExportSource("docs", tmp_path / "broken.zip"))


ALERT = "1769950000.000100"


@pytest.mark.parametrize(
    ("root", "said"),
    [
        ({"blocks": [{"type": "header", "text": {"type": "plain_text", "text": "TillSlow"}}]}, "TillSlow"),
        ({"attachments": [{"blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "slow"}}]}]}, "slow"),
        (
            {"attachments": [{"pretext": "TillSlow", "fields": [{"title": "p99", "value": "4 s"}]}]},
            "TillSlow\np99: 4 s",
        ),
        ({"files": [{"name": "till.png", "title": "Queue"}]}, "(attachment: Queue, till.png)"),
        ({}, ""),
    ],
)
async def test_a_thread_is_kept_whatever_its_first_message_consists_of(
    tmp_path: Path, root: dict[str, Any], said: str
) -> None:
    first = {"ts": ALERT, "thread_ts": ALERT, "subtype": "bot_message", "bot_id": "B1", "text": ""} | root
    reply = {"ts": "1769950001.000100", "thread_ts": ALERT, "user": "U1", "text": "Restart the till."}
    files = SLACK | {"general/2026-02-03.json": [first, reply]}
    found = await documents(SlackExportSource("docs", unpacked(tmp_path, files)))
    thread = found[f"C1/{ALERT}"]
    assert thread.text == f"Message: {said}\n\nThis message has the following responses:\n\nRestart the till."
    assert thread.title == f"#general: {' '.join(said.split()) or 'Restart the till.'}"


def slack_message(ts: str, text: str = "", root: str = "", **fields: Any) -> dict[str, Any]:
    return {"type": "message", "user": "U1", "ts": ts, "text": text} | ({"thread_ts": root} if root else {}) | fields


@pytest.mark.parametrize(
    "root",
    [
        {"subtype": "tombstone", "hidden": True, "text": "This message was deleted."},
        {"subtype": "huddle_thread", "user": "USLACKBOT", "text": "A huddle started", "room": {"id": "R1"}},
        {"subtype": "channel_topic", "text": "set the topic"},
        {"subtype": "channel_join", "text": "joined"},
        None,
    ],
)
async def test_replies_below_what_is_no_message_are_a_thread(root: dict[str, Any] | None, tmp_path: Path) -> None:
    began, later = "1769940000.000100", "1769940060.000100"
    alone = slack_message("1769950000.000100", **(root or {"subtype": "tombstone"}))
    rows = [
        *([slack_message(began, root=began, reply_count=2) | root] if root else []),
        slack_message("1769940030.000100", "The press was jammed.", began),
        slack_message(later, "pressctl clear", began),
        alone,
    ]
    files = SLACK | {"general/2026-02-01.json": rows, "general/2026-02-02.json": []}
    found = await documents(SlackExportSource("docs", zipped(tmp_path / "x.zip", files)))
    [thread] = [document for key, document in found.items() if key.startswith("C1/")]
    assert thread.id == f"docs/C1/{began}"
    assert thread.text.startswith("Message: The press was jammed.\n\n")
    assert thread.text.endswith("\n\npressctl clear")
    assert "topic" not in thread.text
    assert "deleted" not in thread.text


JAPANESE, GERMAN = "障害対応", "störungen"


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        (JAPANESE, JAPANESE.encode().decode("cp437")),
        (JAPANESE, "%E9%9A%9C%E5%AE%B3%E5%AF%BE%E5%BF%9C"),
        (GERMAN, GERMAN.encode().decode("latin-1")),
        (GERMAN, "sto\u0308rungen"),
        ("sto\u0308rungen", GERMAN),
        (GERMAN, "st%C3%B6rungen"),
    ],
)
async def test_a_folder_that_a_tool_named_in_another_form_is_that_of_its_channel(
    name: str, folder: str, tmp_path: Path
) -> None:
    files = {
        "channels.json": [{"id": "C1", "name": name}, {"id": "C2", "name": "general"}],
        "general/1.json": [slack_message("1769940000.000100", "General.")],
        f"{folder}/1.json": [slack_message("1769940001.000100", "Special.")],
    }
    source = SlackExportSource("docs", zipped(tmp_path / "x.zip", files))
    assert {key: document.text for key, document in (await documents(source)).items()} == {
        "C1/1769940001.000100": "Message: Special.",
        "C2/1769940000.000100": "Message: General.",
    }
    assert await left_out(source) == {}


async def test_a_folder_of_no_channel_is_named_and_never_another_ones(tmp_path: Path) -> None:
    files = {
        "channels.json": [{"id": "C1", "name": "caf\u00e9"}],
        "groups.json": [{"id": "G1", "name": "cafe\u0301"}],  # a private channel whose name looks the same
        "caf\u00e9/1.json": [slack_message("1769940000.000100", "Open.")],
        "cafe\u0301/1.json": [slack_message("1769940001.000100", "Private.")],
        "\u2592\u2592/1.json": [slack_message("1769940002.000100", "Of nobody.")],
    }
    source = SlackExportSource("docs", zipped(tmp_path / "x.zip", files))
    found = await documents(source)
    assert {key: document.text for key, document in found.items()} == {
        "C1/1769940000.000100": "Message: Open.",
        "G1/1769940001.000100": "Message: Private.",
    }
    assert (await left_out(source)).keys() == {"\u2592\u2592"}
