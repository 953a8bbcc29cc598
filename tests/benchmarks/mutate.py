"""`python -m tests.benchmarks mutate [SUBJECT …] [--sample N]`: which small changes of a subject no test of it notices.

Mutation testing with Cosmic Ray, in a copy of the repository. A change counts as noticed if a focused test fails or takes
too long. `--sample` tries N changes of each subject, always the same ones; all of them take hours.
"""

from __future__ import annotations

import argparse
import random
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[2]
COPIED = ("bot", "handlers", "core", "adapters", "tests", "pyproject.toml")
PYTEST = ("-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:schemathesis")
TIMEOUT = 120.0  # seconds of one run of a subject's tests
SEED = 11
# Of types (`X | None`), or mistakes that nobody makes: a shift for a sum, an identity for an order.
UNLIKELY = re.compile(r"BinaryOperator_BitOr_|_(?:[LR]Shift|Bit\w+|Is|IsNot|Pow|FloorDiv|Mod)$")
GOAL = 0.85  # of the changes are to be noticed


@dataclass(frozen=True)
class Subject:
    """Modules, and the tests that are about them."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]


SUBJECTS = {
    "paging": Subject(
        ("core/triage/paging.py",), ("tests/unit/triage/test_paging.py", "tests/unit/triage/test_paging_prior.py")
    ),
    "certainty": Subject(
        ("core/answering/certainty.py",),
        ("tests/unit/answering/test_certainty.py", "tests/unit/answering/test_find.py"),
    ),
    "confidence": Subject(("core/confidence",), ("tests/unit/confidence",)),
    "incidents": Subject(
        ("core/incidents",),
        (
            "tests/unit/incidents",
            *(
                f"tests/unit/test_{name}.py"
                for name in (
                    "folding",
                    "grouping",
                    "incident",
                    "incident_view",
                    "runbook",
                    "storm_grouping",
                    "thread_notes",
                    "command",
                )
            ),
        ),
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Which small changes of the code no test notices.")
    parser.add_argument("subjects", nargs="*", choices=SUBJECTS)
    parser.add_argument("--sample", type=int)
    arguments = parser.parse_args()
    for name in arguments.subjects or SUBJECTS:
        with TemporaryDirectory(prefix="plumbline-mutate-") as folder:
            _mutate(name, SUBJECTS[name], Path(folder), arguments.sample)


def _mutate(name: str, subject: Subject, folder: Path, sample: int | None) -> None:
    for each in COPIED:
        (shutil.copytree if (ROOT / each).is_dir() else shutil.copy)(ROOT / each, folder / each)
    command = shlex.join([sys.executable, "-m", "pytest", *PYTEST, *subject.tests])
    modules = ", ".join(f'"{module}"' for module in subject.modules)
    (folder / "mutate.toml").write_text(
        f"[cosmic-ray]\nmodule-path = [{modules}]\ntimeout = {TIMEOUT}\nexcluded-modules = []\n"
        f"test-command = '''{command}'''\n[cosmic-ray.distributor]\nname = \"local\"\n"
    )
    _cosmic_ray(folder, "init", "mutate.toml", "session.sqlite")
    _cosmic_ray(folder, "baseline", "mutate.toml")
    database: Any = import_module("cosmic_ray.work_db")  # of the group `mutate`, which `make mutate` installs
    items: Any = import_module("cosmic_ray.work_item")
    with database.use_db(folder / "session.sqlite", database.WorkDB.Mode.open) as work:
        # The ids are drawn anew with every session: the place and the kind of a change say which one it is.
        drawn = sorted(work.work_items, key=lambda item: repr(item.mutations))
        random.Random(SEED).shuffle(drawn)
        changes = [item.job_id for item in drawn if not UNLIKELY.search(item.mutations[0].operator_name)]
        left_out = {item.job_id for item in drawn}.difference(changes[:sample])
        work.set_multiple_results(left_out, items.WorkResult(items.WorkerOutcome.SKIPPED))
    _cosmic_ray(folder, "exec", "mutate.toml", "session.sqlite")
    with database.use_db(folder / "session.sqlite", database.WorkDB.Mode.open) as work:
        tried = [result for _, result in work.results if result.test_outcome is not None]
    survivors = [result for result in tried if result.test_outcome is items.TestOutcome.SURVIVED]
    noticed = 1 - len(survivors) / len(tried)
    for result in survivors:
        sys.stdout.write(f"{result.diff}\n\n")
    sys.stdout.write(
        f"{name}: {noticed:.2f} of {len(tried)} changes are noticed, of {len(changes)} that there are; the goal is {GOAL}\n"
    )


def _cosmic_ray(folder: Path, *arguments: str) -> None:
    subprocess.run([Path(sys.executable).with_name("cosmic-ray"), *arguments], cwd=folder, check=True)
