"""The app package that is uploaded to Teams: the manifest, with the bot's ids and host in it, and both icons."""

from __future__ import annotations

import io
import json
import uuid
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core import VERSION
from core.model.errors import ConfigurationError

PACKAGE = Path("plumbline-teams.zip")
APP = Path(__file__).with_name("app")
ICONS = ("color.png", "outline.png")
CONSENT = ("webApplicationInfo", "authorization")  # the parts of the manifest that ask for consent to read
# What Teams must know of the bot. All else, such as its name, is the administrator's.
NEEDED = ("bots", "composeExtensions", "permissions", "supportsChannelFeatures", "authorization")
MAX_MANIFEST = 1 << 20  # bytes


def manifest_of(app_id: str, host: str, *, history: bool = True, version: str = VERSION) -> dict[str, Any]:
    """Return the manifest of an app. Without `history`, it does not ask for consent to read messages.

    Raises ConfigurationError if the id, the host or the version cannot be one.
    """
    try:
        app_id = str(uuid.UUID(app_id))
    except ValueError:
        raise ConfigurationError(
            f"{app_id!r} is not an app id. Copy the application (client) id of the app registration, which looks like "
            "00000000-0000-0000-0000-000000000000."
        ) from None
    name = host.lower().removeprefix("https://").rstrip("/")
    if not _is_public(name):
        raise ConfigurationError(
            f"{host!r} is not a host that Teams can reach. Give its public name, such as plumbline.example.com, without a "
            "port or path."
        )
    if version.count(".") != 2 or not all(map(str.isdecimal, version.split("."))):
        raise ConfigurationError(f"{version!r} is not a version of an app. Give three numbers, such as {VERSION}.")
    text = (APP / "manifest.json").read_text(encoding="utf-8")
    for placeholder, value in {"TEAMS_APP_ID": app_id, "YOUR-HOST": name, "APP_VERSION": version}.items():
        text = text.replace(placeholder, value)
    return {key: value for key, value in json.loads(text).items() if history or key not in CONSENT}


def _is_public(host: str) -> bool:
    labels = host.split(".")
    return len(labels) > 1 and all(each.isascii() and each.replace("-", "").isalnum() for each in labels)


def package_of(manifest: Mapping[str, Any]) -> bytes:
    """Return the package. The same manifest makes the same bytes."""
    parts = {"manifest.json": json.dumps(manifest, indent=2, ensure_ascii=False).encode()}
    parts |= {icon: (APP / icon).read_bytes() for icon in ICONS}
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as package:
        for name, part in parts.items():
            package.writestr(zipfile.ZipInfo(name), part, zipfile.ZIP_DEFLATED)
    return content.getvalue()


def manifest_in(package: Path) -> dict[str, Any]:
    """Return the manifest in a package. Raises OSError, KeyError, ValueError or BadZipFile."""
    with zipfile.ZipFile(package) as opened:
        return dict(json.loads(opened.open("manifest.json").read(MAX_MANIFEST)))


def differences(manifest: Mapping[str, Any], app_id: str) -> list[str]:
    """Return the parts of a manifest that differ from what this version needs, with or without consent to read."""
    needed = manifest_of(app_id, "plumbline.example.com", history="authorization" in manifest)
    differing = [name for name in NEEDED if manifest.get(name) != needed.get(name)]
    asks_for_another = "authorization" in manifest and manifest.get("webApplicationInfo", {}).get("id") != app_id
    return [*differing, *(["webApplicationInfo"] if asks_for_another else ())]
