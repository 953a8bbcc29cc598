"""The alert rules in deploy/, as Prometheus' own tool reads and tries them; and that each of them is tried."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.external

RULES = Path(__file__).parents[2] / "deploy" / "prometheus"


@pytest.mark.parametrize("command", [("check", "rules", "rules.yml"), ("test", "rules", "rules.test.yml")])
def test_prometheus_finds_nothing_wrong(command: tuple[str, ...]) -> None:
    ran = subprocess.run(["promtool", *command], cwd=RULES, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_every_rule_is_tried_both_ways() -> None:
    rules = yaml.safe_load((RULES / "rules.yml").read_text(encoding="utf-8"))
    tests = yaml.safe_load((RULES / "rules.test.yml").read_text(encoding="utf-8"))["tests"]
    tried = {
        (each["alertname"], bool(each["exp_alerts"])) for test in tests for each in test.get("alert_rule_test", ())
    }
    names = {rule["alert"] for group in rules["groups"] for rule in group["rules"]}
    assert tried == {(name, raised) for name in names for raised in (True, False)}
