"""No password, key or token in the repository: what detect-secrets finds must be known to be a made-up one.

`.venv/bin/python .ci/secrets.py` names what is new; with `--accept`, it is known from then on.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
KNOWN = Path(__file__).with_name("known_secrets.json")
LEFT_OUT = r"(\.lock$|package-lock\.json$|\.min\.js$|^bot/sample_company/live/)"  # digests, minified code, logs

Secret = tuple[str, str, str]  # file, type, and digest: never the secret itself


def found() -> dict[Secret, int]:
    """Every secret, and the line that it stands in."""
    options = ["--exclude-files", LEFT_OUT]
    for plugin in ("HexHighEntropyString", "Base64HighEntropyString"):  # every id of a test would be one
        options += ["--disable-plugin", plugin]
    command = [str(Path(sys.executable).with_name("detect-secrets")), "scan", *options]
    scanned = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603 -- of our own
    results: dict[str, list[dict[str, Any]]] = json.loads(scanned.stdout)["results"]
    return {
        (file, secret["type"], secret["hashed_secret"]): secret["line_number"]
        for file, secrets in results.items()
        for secret in secrets
    }


def main() -> int:
    """The exit code: 1 if there is one that nobody knows."""
    secrets = found()
    if "--accept" in sys.argv:
        KNOWN.write_text(json.dumps(sorted(secrets), indent=1) + "\n", encoding="utf-8")
        return 0
    known = {tuple(each) for each in json.loads(KNOWN.read_text(encoding="utf-8"))}
    new = {secret: line for secret, line in secrets.items() if secret not in known}
    for (file, kind, _), line in sorted(new.items()):
        print(f"{file}:{line}: {kind}. Remove it, or if it is made up: .venv/bin/python .ci/secrets.py --accept")
    print(f"{len(secrets)} made-up secrets in the repository, {len(new)} that nobody knows.")
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main())
