"""The threat model points at its tests: each of them exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_test_that_the_threat_model_names_exists() -> None:
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    known = {path.name for path in (ROOT / "tests").glob("*/**/test_*.py") if "node_modules" not in path.parts}
    named = re.findall(r"`([\w./]*test_\w+\.py)`", page)
    assert len(named) > 20
    assert [path for path in named if "/" in path and not (ROOT / path).is_file()] == []
    assert [path for path in named if Path(path).name not in known] == []


def test_the_page_is_linked_from_where_people_look() -> None:
    assert "(SECURITY.md)" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
