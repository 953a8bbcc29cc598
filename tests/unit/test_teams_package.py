"""The Teams app's manifest says what the code needs, and the package is one that Teams takes."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from adapters.teams.app_package import APP, differences, manifest_of, package_of
from adapters.teams.render import EXTENSION, EXTENSION_TITLE
from bot.cli import app
from core.incidents.incident_questions import CommandName, parse_command

APP_ID = "0f7a1c9e-6b1d-4b1e-9d56-6a1f2f0c7d11"
HOST = "plumbline.example.com"

# Limits of https://learn.microsoft.com/microsoftteams/platform/resources/schema/manifest-schema
MAX_TITLE, MAX_DESCRIPTION, MAX_COMMANDS = 32, 128, 10


@pytest.fixture
def manifest() -> dict[str, Any]:
    return manifest_of(APP_ID, HOST)


def made(*arguments: str, exit_code: int = 0) -> str:
    result = CliRunner().invoke(app, ["teams-package", *arguments], env={"COLUMNS": "500"})
    assert result.exit_code == exit_code, result.output
    return result.output or str(result.exception)


def test_every_listed_command_is_one_and_every_scope_has_what_people_do_there(manifest: dict[str, Any]) -> None:
    (bot,) = manifest["bots"]
    listed = {
        scope: {parse_command(command["title"]).name for command in each["commands"]}
        for each in bot["commandLists"]
        for scope in each["scopes"]
    }
    assert set(listed) == set(bot["scopes"]) == {"personal", "team", "groupChat"}
    everywhere = {CommandName.STATUS, CommandName.SETTINGS, CommandName.HELP}
    shared = everywhere | {CommandName.TRIAGE, CommandName.RCA, CommandName.UPDATE, CommandName.QUIET}
    shared |= {CommandName.ADOPT, CommandName.MUTE, CommandName.MAINTENANCE}
    assert listed == {"personal": everywhere | {CommandName.HOME}, "team": shared, "groupChat": shared}


def test_the_message_extension_is_the_one_that_is_answered(manifest: dict[str, Any]) -> None:
    (command,) = manifest["composeExtensions"][0]["commands"]
    assert (command["id"], command["title"]) == (EXTENSION, EXTENSION_TITLE)
    assert (command["context"], command["fetchTask"]) == (["message"], True)


def test_the_manifest_is_of_the_newest_schema_and_names_the_channels_that_it_serves(manifest: dict[str, Any]) -> None:
    """Packages may still be of an older one; `packageName` is refused since 1.17, and `supportsChannelFeatures` required
    since 1.25, although the published schema does not say so.
    """
    assert manifest["$schema"].endswith(f"/teams/v{manifest['manifestVersion']}/MicrosoftTeams.schema.json")
    assert tuple(map(int, manifest["manifestVersion"].split("."))) >= (1, 29)
    assert "packageName" not in manifest
    assert manifest["supportsChannelFeatures"] == "tier1"


def test_the_manifest_keeps_to_the_published_limits(manifest: dict[str, Any]) -> None:
    assert len(manifest["name"]["short"]) <= 30
    assert len(manifest["description"]["short"]) <= 80
    assert len(manifest["description"]["full"]) <= 4000
    for listed in manifest["bots"][0]["commandLists"]:
        assert len(listed["commands"]) <= MAX_COMMANDS
    listed = [command for each in manifest["bots"][0]["commandLists"] for command in each["commands"]]
    for command in [*listed, *manifest["composeExtensions"][0]["commands"]]:
        assert len(command["title"]) <= MAX_TITLE
        assert len(command["description"]) <= MAX_DESCRIPTION


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("bots", []),
        ("composeExtensions", None),
        ("supportsChannelFeatures", "tier2"),
        ("authorization", {"permissions": {"resourceSpecific": [{"name": "ChannelMessage.Send.Group"}]}}),
        ("webApplicationInfo", {"id": "another"}),
    ],
)
def test_a_part_that_differs_from_what_is_needed_is_named(manifest: dict[str, Any], part: str, value: object) -> None:
    assert differences(manifest | {part: value}, APP_ID) == [part]


def test_what_an_administrator_may_change_is_no_difference(manifest: dict[str, Any]) -> None:
    manifest |= {"name": {"short": "Ops bot"}, "version": "7.0.0", "developer": {}, "accentColor": "#FFFFFF"}
    assert differences(manifest, APP_ID) == []
    assert differences(manifest, APP_ID.replace("0", "1")) == [
        "bots",
        "composeExtensions",
        "webApplicationInfo",
    ]


def test_the_package_holds_the_manifest_and_both_icons(tmp_path: Path) -> None:
    made(APP_ID.upper(), "https://Plumbline.example.com/", str(tmp_path / "app.zip"), "--version", "2.0.1")
    with zipfile.ZipFile(tmp_path / "app.zip") as opened:
        assert set(opened.namelist()) == {"manifest.json", "color.png", "outline.png"}
        manifest = json.loads(opened.read("manifest.json"))
        sizes = {name: struct.unpack(">II", opened.read(name)[16:24]) for name in ("color.png", "outline.png")}
    assert sizes == {"color.png": (192, 192), "outline.png": (32, 32)}
    assert manifest["id"] == APP_ID
    assert manifest["version"] == "2.0.1"
    assert manifest["developer"]["websiteUrl"] == "https://plumbline.example.com/"
    assert differences(manifest, APP_ID) == []
    assert set(Path(APP).iterdir()) == {APP / name for name in opened.namelist()}
    for placeholder in ("TEAMS_APP_ID", "YOUR-HOST", "APP_VERSION"):
        assert placeholder not in json.dumps(manifest)


def test_the_package_asks_for_consent_to_read_unless_told_not_to() -> None:
    asked, silent = manifest_of(APP_ID, HOST), manifest_of(APP_ID, HOST, history=False)
    assert asked["webApplicationInfo"]["id"] == APP_ID
    names = {each["name"] for each in asked["authorization"]["permissions"]["resourceSpecific"]}
    assert names == {"ChannelMessage.Read.Group", "ChatMessage.Read.Chat"}
    assert set(asked) - set(silent) == {"webApplicationInfo", "authorization"}
    assert differences(silent, APP_ID) == []


def test_the_same_arguments_make_the_same_package(tmp_path: Path) -> None:
    made(APP_ID, HOST, str(tmp_path / "app.zip"), "--no-history")
    package = (tmp_path / "app.zip").read_bytes()
    assert package == package_of(manifest_of(APP_ID, HOST, history=False))
    assert zipfile.ZipFile(io.BytesIO(package)).testzip() is None


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        (["my-app", HOST], "not an app id"),
        ([APP_ID, "http://plumbline.example.com"], "not a host"),
        ([APP_ID, f"{HOST}/path"], "not a host"),
        ([APP_ID, "localhost"], "not a host"),
        ([APP_ID, "a b.example"], "not a host"),
        ([APP_ID, HOST, "--version", "2.0"], "not a version"),
    ],
)
def test_a_wrong_argument_is_named_and_nothing_is_written(tmp_path: Path, arguments: list[str], wrong: str) -> None:
    assert wrong in made(*arguments, str(tmp_path / "app.zip"), exit_code=1)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_option_and_a_folder_that_is_missing_are_named_and_nothing_is_written(tmp_path: Path) -> None:
    assert "No such option" in made(APP_ID, HOST, str(tmp_path / "app.zip"), "--nohistory", exit_code=2)
    assert "cannot be written" in made(APP_ID, HOST, str(tmp_path / "missing" / "app.zip"), exit_code=2)
    assert list(tmp_path.iterdir()) == []
