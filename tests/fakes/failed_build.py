"""A build that failed in a test, and its log."""

from __future__ import annotations

from core.ports import FailedBuild
from tests.fakes.outage import START

LOG = """$ pytest -q
collecting ...
tests/test_till.py .F
=================== FAILURES ===================
    def test_sum():
>       assert total([1, 2]) == 4
E       assert 3 == 4
tests/test_till.py:7: AssertionError
1 failed, 1 passed in 0.12s
Error: Process completed with exit code 1.
Post job cleanup.
"""


BUILD = FailedBuild("GitHub", "acme/till", "till", "71", "build: tests", LOG, "https://github.com/x", START)
