"""The Teams app's manifest, with and without consent to read, against the schema that Microsoft's own tools validate with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema.validators import validator_for

from adapters.teams.app_package import manifest_of

pytestmark = pytest.mark.external

SCHEMAS = Path(__file__).parent / "node_modules" / "@microsoft" / "app-manifest" / "build" / "json-schemas" / "teams"
APP_ID = "0f7a1c9e-6b1d-4b1e-9d56-6a1f2f0c7d11"
HOST = "plumbline.example.com"


def problems(checked: dict[str, Any]) -> list[str]:
    """What the schema of the manifest's own version says is wrong with it."""
    file = SCHEMAS / f"v{checked['manifestVersion']}" / "MicrosoftTeams.schema.json"
    schema = json.loads(file.read_text(encoding="utf-8-sig"))
    validator = validator_for(schema)(schema)
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(checked)]


@pytest.mark.parametrize("history", [True, False])
def test_the_schema_finds_nothing_wrong_with_the_manifest(history: bool) -> None:
    assert problems(manifest_of(APP_ID, HOST, history=history)) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"supportsChannelFeatures": "tier9"},
        {"packageName": "com.example.app"},
        {"description": {"short": "x" * 81, "full": "x"}},
        {"id": "not an id"},
    ],
)
def test_the_schema_finds_what_is_wrong(wrong: dict[str, Any]) -> None:
    assert problems(manifest_of(APP_ID, HOST) | wrong)
