"""The Teams app's manifest, with and without consent to read, against the schema that Microsoft's own tools validate with."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from jsonschema.validators import validator_for

pytestmark = pytest.mark.external

SCHEMAS = Path(__file__).parent / "node_modules" / "@microsoft" / "app-manifest" / "build" / "json-schemas" / "teams"
BUILD = Path(__file__).parents[2] / "deploy" / "teams" / "build.py"
APP_ID = "0f7a1c9e-6b1d-4b1e-9d56-6a1f2f0c7d11"


def manifest(folder: Path, *arguments: str) -> dict[str, Any]:
    package = folder / "app.zip"
    subprocess.run([sys.executable, BUILD, *arguments, APP_ID, "plumbline.example.com", package], check=True)
    with zipfile.ZipFile(package) as opened:
        return json.loads(opened.read("manifest.json"))


def problems(checked: dict[str, Any]) -> list[str]:
    """What the schema of the manifest's own version says is wrong with it."""
    file = SCHEMAS / f"v{checked['manifestVersion']}" / "MicrosoftTeams.schema.json"
    schema = json.loads(file.read_text(encoding="utf-8-sig"))
    validator = validator_for(schema)(schema)
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(checked)]


@pytest.mark.parametrize("arguments", [(), ("--without-history",)])
def test_the_schema_finds_nothing_wrong_with_the_manifest(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert problems(manifest(tmp_path, *arguments)) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"supportsChannelFeatures": "tier9"},
        {"packageName": "com.example.app"},
        {"description": {"short": "x" * 81, "full": "x"}},
        {"id": "not an id"},
    ],
)
def test_the_schema_finds_what_is_wrong(tmp_path: Path, wrong: dict[str, Any]) -> None:
    assert problems(manifest(tmp_path) | wrong)
