"""The Teams app's manifest says what the code needs, and the package is one that Teams takes."""

from __future__ import annotations

import importlib.util
import json
import struct
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from adapters.teams.doctor import COMMANDS, manifest_differences
from core.incidents.incident_questions import CommandName, parse_command

FOLDER = Path(__file__).parents[2] / "deploy" / "teams"
APP_ID = "0f7a1c9e-6b1d-4b1e-9d56-6a1f2f0c7d11"

# Limits of https://learn.microsoft.com/microsoftteams/platform/resources/schema/manifest-schema
MAX_TITLE, MAX_DESCRIPTION, MAX_COMMANDS = 32, 128, 10


@pytest.fixture
def manifest() -> dict[str, Any]:
    return json.loads((FOLDER / "manifest.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def package() -> ModuleType:
    spec = importlib.util.spec_from_file_location("teams_package", FOLDER / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_manifest_says_what_the_code_needs(manifest: dict[str, Any]) -> None:
    assert manifest_differences(manifest, "TEAMS_APP_ID") == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_listed_command_is_one(name: CommandName) -> None:
    assert parse_command(str(name)).name is name


def test_the_manifest_is_of_the_newest_schema(manifest: dict[str, Any]) -> None:
    """Packages may still be of an older one; `packageName` is refused since 1.17."""
    assert manifest["$schema"].endswith(f"/teams/v{manifest['manifestVersion']}/MicrosoftTeams.schema.json")
    assert tuple(map(int, manifest["manifestVersion"].split("."))) >= (1, 29)
    assert "packageName" not in manifest


def test_what_differs_is_named(manifest: dict[str, Any]) -> None:
    (bot,) = manifest["bots"]
    bot["scopes"] = ["personal"]
    bot["commandLists"][0]["commands"][0]["title"] = "deploy"
    del manifest["composeExtensions"]
    assert manifest_differences(manifest, "TEAMS_APP_ID") == [
        "bots.scopes: personal",
        "bots.commandLists: home is missing in personal",
        "bots.commandLists: deploy in personal is not needed",
        "composeExtensions: “Ask Plumbline about this” for messages is missing or different",
    ]
    assert manifest_differences(manifest, "another-app") == ["bots: none has the id another-app"]


@pytest.mark.parametrize("tier", [None, "tier2"])
def test_an_app_that_does_not_say_which_channels_it_serves_is_refused_by_teams(
    manifest: dict[str, Any], tier: str | None
) -> None:
    manifest["supportsChannelFeatures"] = tier
    refused = ["supportsChannelFeatures: is not tier1, so Teams refuses the app"]
    assert manifest_differences(manifest, "TEAMS_APP_ID") == refused


def test_the_manifest_keeps_to_the_published_limits(manifest: dict[str, Any]) -> None:
    assert len(manifest["name"]["short"]) <= 30
    assert len(manifest["description"]["short"]) <= 80
    assert len(manifest["description"]["full"]) <= 4000
    for listed in manifest["bots"][0]["commandLists"]:
        assert len(listed["commands"]) <= MAX_COMMANDS
        for command in listed["commands"]:
            assert len(command["title"]) <= MAX_TITLE
            assert len(command["description"]) <= MAX_DESCRIPTION
    (command,) = manifest["composeExtensions"][0]["commands"]
    assert len(command["title"]) <= MAX_TITLE
    assert len(command["description"]) <= MAX_DESCRIPTION


def test_the_package_holds_the_manifest_and_both_icons(package: ModuleType, tmp_path: Path) -> None:
    made = package.build(APP_ID.upper(), "Plumbline.example.com", tmp_path / "app.zip")
    with zipfile.ZipFile(made) as opened:
        assert set(opened.namelist()) == {"manifest.json", "color.png", "outline.png"}
        manifest = json.loads(opened.read("manifest.json"))
        sizes = {name: struct.unpack(">II", opened.read(name)[16:24]) for name in ("color.png", "outline.png")}
    assert sizes == {"color.png": (192, 192), "outline.png": (32, 32)}
    assert manifest["id"] == APP_ID
    assert manifest["developer"]["websiteUrl"] == "https://plumbline.example.com/"
    assert manifest_differences(manifest, APP_ID) == []
    assert "TEAMS_APP_ID" not in json.dumps(manifest)
    assert "YOUR-HOST" not in json.dumps(manifest)


def test_the_package_asks_for_consent_to_read_unless_it_is_told_not_to(package: ModuleType, tmp_path: Path) -> None:
    asked: dict[bool, dict[str, Any]] = {}
    for history in (True, False):
        arguments = [*([] if history else ["--without-history"]), APP_ID, "plumbline.example.com"]
        assert package.main([*arguments, str(tmp_path / f"{history}.zip")]) == 0
        with zipfile.ZipFile(tmp_path / f"{history}.zip") as opened:
            asked[history] = json.loads(opened.read("manifest.json"))
        assert manifest_differences(asked[history], APP_ID) == []
    assert asked[True]["webApplicationInfo"]["id"] == APP_ID
    names = {each["name"] for each in asked[True]["authorization"]["permissions"]["resourceSpecific"]}
    assert names == {"ChannelMessage.Read.Group", "ChatMessage.Read.Chat"}
    assert "authorization" not in asked[False]


def test_a_consent_that_is_not_needed_and_one_that_is_missing_are_named(manifest: dict[str, Any]) -> None:
    send = {"name": "ChannelMessage.Send.Group", "type": "Application"}
    manifest["authorization"]["permissions"]["resourceSpecific"][0] = send
    manifest["webApplicationInfo"]["id"] = "another"
    assert manifest_differences(manifest, "TEAMS_APP_ID") == [
        "authorization: ChannelMessage.Read.Group is missing",
        "authorization: ChannelMessage.Send.Group is not needed",
        "webApplicationInfo: its id is not TEAMS_APP_ID",
    ]


def test_the_same_arguments_make_the_same_package(package: ModuleType, tmp_path: Path) -> None:
    first = package.build(APP_ID, "plumbline.example.com", tmp_path / "1.zip")
    second = package.build(APP_ID, "plumbline.example.com", tmp_path / "2.zip")
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize(
    ("app_id", "host", "wrong"),
    [
        ("my-app", "plumbline.example.com", "no app id"),
        (APP_ID, "https://plumbline.example.com", "no host"),
        (APP_ID, "localhost", "no host"),
        (APP_ID, "a b.example", "no host"),
    ],
)
def test_a_wrong_argument_is_named_and_nothing_is_written(
    package: ModuleType, tmp_path: Path, app_id: str, host: str, wrong: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert package.main([app_id, host, str(tmp_path / "app.zip")]) == 1
    assert wrong in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
