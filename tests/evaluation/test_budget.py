"""The budget of the product: what is above it fails, and what is below it can be written."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from rich.console import Console

from tests.benchmarks import budget

TEXT = """\
# At most this.

[product]
patterns = 20  # regular expressions

[capability.answering]
statements = 100
files = [
    "a.py",
]

[capability.slack]
statements = 30
"""
BUDGET = {"product.patterns": 20, "capability.answering.statements": 100, "capability.slack.statements": 30}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "budget.toml"
    path.write_text(TEXT)
    monkeypatch.setattr(budget, "BUDGET", path)
    return path


def enforced(measured: dict[str, int], *, lower: bool = False) -> str:
    out = Console(record=True, width=200)
    budget.enforce(measured, out, lower=lower)
    return out.export_text()


def test_the_numbers_of_a_budget_are_known_by_table_and_key(file: Path) -> None:
    assert budget.numbers_of(budget.tables()) == BUDGET


def test_a_capability_above_its_budget_is_named_with_the_excess() -> None:
    measured = BUDGET | {"capability.answering.statements": 1_112}
    assert budget.excesses(BUDGET, measured) == ["answering has 1,112 statements, 1,012 above the budget."]
    assert budget.savings(BUDGET, measured) == []


def test_a_capability_below_its_budget_is_named_with_the_saving() -> None:
    measured = BUDGET | {"product.patterns": 19}
    assert budget.excesses(BUDGET, measured) == []
    assert budget.savings(BUDGET, measured) == ["product has 19 patterns, 1 below the budget."]


def test_a_capability_without_a_number_may_have_no_statement() -> None:
    assert budget.excesses(BUDGET, {"capability.teams.statements": 1}) == [
        "teams has 1 statements, 1 above the budget."
    ]


def test_what_equals_its_budget_passes_in_silence(file: Path) -> None:
    assert enforced(BUDGET) == ""


def test_what_is_above_its_budget_fails(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended:
        enforced(BUDGET | {"capability.slack.statements": 31})
    assert ended.value.exit_code == 1
    assert "slack has 31 statements, 1 above the budget." in capsys.readouterr().out


def test_what_is_below_its_budget_passes_and_is_told(file: Path) -> None:
    assert "slack has 29 statements, 1 below the budget." in enforced(BUDGET | {"capability.slack.statements": 29})
    assert file.read_text() == TEXT


def test_lowering_writes_the_lower_numbers_and_nothing_else(file: Path) -> None:
    enforced({"product.patterns": 18, "capability.slack.statements": 29}, lower=True)
    assert file.read_text() == TEXT.replace("patterns = 20", "patterns = 18").replace("= 30", "= 29")


def test_lowering_raises_no_number(file: Path) -> None:
    with pytest.raises(typer.Exit):
        enforced({"product.patterns": 21, "capability.slack.statements": 29}, lower=True)
    assert file.read_text() == TEXT.replace("= 30", "= 29")
