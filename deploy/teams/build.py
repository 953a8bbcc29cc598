"""Makes the package that Teams is given: the manifest with your app's id and host in it, and both icons.

python3 deploy/teams/build.py [--without-history] APP_ID HOST [FILE]

The app asks whoever adds it for consent to read the messages there; with --without-history it does not.

Needs nothing but Python. The same arguments make the same file, byte for byte.
"""

# ruff: noqa: INP001 -- a script that needs nothing beside it
from __future__ import annotations

import json
import re
import sys
import uuid
import zipfile
from pathlib import Path

HERE = Path(__file__).parent
PACKAGE = Path("plumbline-teams.zip")
ICONS = ("color.png", "outline.png")
HOST = re.compile(r"(?=.{4,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+", re.IGNORECASE)
WITHOUT_HISTORY = "--without-history"
CONSENT = ("webApplicationInfo", "authorization")  # the parts of the manifest that ask for it
EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip file can hold


def build(app_id: str, host: str, file: Path, *, history: bool = True) -> Path:
    """Write the package, and return where it is. Raises ValueError saying which argument is wrong."""
    try:
        app_id = str(uuid.UUID(app_id))
    except ValueError:
        raise ValueError(f"{app_id!r} is no app id: it looks like 00000000-0000-0000-0000-000000000000.") from None
    if not HOST.fullmatch(host):
        raise ValueError(f"{host!r} is no host: it looks like plumbline.example.com, without https:// and path.")
    manifest = (HERE / "manifest.json").read_text(encoding="utf-8")
    filled = json.loads(manifest.replace("TEAMS_APP_ID", app_id).replace("YOUR-HOST", host.lower()))
    if not history:
        filled = {name: value for name, value in filled.items() if name not in CONSENT}
    parts = {"manifest.json": json.dumps(filled, indent=2, ensure_ascii=False).encode()}
    parts |= {name: (HERE / name).read_bytes() for name in ICONS}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as package:
        for name, content in parts.items():
            package.writestr(zipfile.ZipInfo(name, EPOCH), content, zipfile.ZIP_DEFLATED)
    return file


def main(arguments: list[str]) -> int:
    named = [argument for argument in arguments if argument != WITHOUT_HISTORY]
    if len(named) not in (2, 3):
        print(__doc__, file=sys.stderr)  # noqa: T201
        return 2
    try:
        file = Path(named[2]) if len(named) == 3 else PACKAGE
        made = build(named[0], named[1], file, history=WITHOUT_HISTORY not in arguments)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    print(f"{made} is ready: upload it in Teams under Apps > Manage your apps > Upload an app.")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
