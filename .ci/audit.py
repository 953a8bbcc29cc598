"""Known vulnerabilities of what the locks name. Says plainly where no advisory can be asked for."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
# The second one holds all of requirements.lock.
LOCKS = ("requirements-bootstrap.lock", "requirements-dev.lock", "requirements-release.lock")
TIMEOUT = 15  # seconds for one answer


def audited(lock: str) -> list[dict[str, Any]] | str:
    """Return what is known of each package of a lock, or the reason why nothing can be found out."""
    options = ["--disable-pip", "--no-deps", "--format", "json", "--progress-spinner", "off", "--timeout", str(TIMEOUT)]
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(ROOT / lock), *options]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 -- of our own
    try:
        return json.loads(ran.stdout)["dependencies"]
    except (ValueError, KeyError):
        return ran.stderr.strip().splitlines()[-1][:300] if ran.stderr.strip() else "no answer"


def main() -> int:
    """The exit code: 1 if a package has a known vulnerability."""
    vulnerable = False
    for lock in LOCKS:
        packages = audited(lock)
        if isinstance(packages, str):
            print(f"{lock}: NOT AUDITED, the advisory database cannot be asked from here: {packages}")
            continue
        asked = [package for package in packages if "skip_reason" not in package]
        if not asked:
            print(f"{lock}: NOT AUDITED, the index that is reached from here knows no advisories.")
            continue
        for package in asked:
            for vulnerability in package["vulns"]:
                vulnerable = True
                mended = ", ".join(vulnerability["fix_versions"]) or "nothing yet"
                print(f"{lock}: {package['name']} {package['version']}: {vulnerability['id']}, mended in {mended}")
        print(f"{lock}: {len(asked)} of {len(packages)} packages audited.")
    return 1 if vulnerable else 0


if __name__ == "__main__":
    sys.exit(main())
