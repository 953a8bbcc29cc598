"""What the README says of the platforms is shown by tests, and its examples are settings that are taken."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from bot.config.workspace import load_workspace

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()

WORKS = re.compile(r"works: `(test_\w+)`")
NOT_HERE = "not on this platform"


def rows() -> list[list[str]]:
    table = README.split("## What works where")[1].split("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def test_every_cell_of_the_table_says_how_it_is() -> None:
    assert len(rows()) > 20
    for feature, *cells in rows():
        assert len(cells) == 3, feature
        assert all(cell == NOT_HERE or WORKS.fullmatch(cell) for cell in cells), feature


def test_what_works_names_a_test_that_exists() -> None:
    tests = "".join(path.read_text() for path in (ROOT / "tests").glob("[!e]*/**/test_*.py"))
    tests += "".join(path.read_text() for path in (ROOT / "tests" / "external").glob("test_*.py"))
    named = {name for row in rows() for name in WORKS.findall(" | ".join(row))}
    assert {name for name in named if f"def {name}(" not in tests} == set()


def test_its_examples_are_taken(tmp_path: Path) -> None:
    examples = [yaml.safe_load(text) for text in re.findall(r"^```yaml\n(.*?)^```", README, re.DOTALL | re.MULTILINE)]
    ours = [example for example in examples if "receivers" not in example]
    assert len(ours) >= 4
    file = tmp_path / "plumbline.yaml"
    channels = [{"name": name, "console": name} for name in ("incidents", "payments", "ops")]
    file.write_text(yaml.safe_dump({"channels": channels} | {key: each[key] for each in ours for key in each}))
    (tmp_path / "teams").mkdir()
    (tmp_path / "teams" / "payments.md").write_text("# Payments")
    workspace = load_workspace(file)
    assert [team.id for team in workspace.teams] == ["payments"]
    assert workspace.maintenance.weekly
