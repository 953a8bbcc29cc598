"""`python -m tests.benchmarks mutate [SUBJECT …] [--sample N] [--seed N]`: which small changes of a subject no test notices.

Mutation testing with the operators of Cosmic Ray, in a copy of the repository. A change counts as noticed if a test of a
file that imports the subject fails or takes too long. `--sample` tries N changes of each subject, the same ones for the same seed.

Each change is tried in a fork of a process that has imported the libraries, which takes longer than the tests do.
"""

from __future__ import annotations

import argparse
import difflib
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[2]
COPIED = ("bot", "handlers", "core", "adapters", "deploy", "tests", "pyproject.toml")
PYTEST = ("-q", "-x", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:schemathesis")
LIBRARIES = (
    "_pytest.assertion.rewrite", "aiosqlite", "hypothesis.strategies", "jinja2", "numpy.random", "pydantic_settings",
    "pytest_asyncio.plugin", "rapidfuzz.fuzz", "scipy.optimize", "scipy.sparse", "sklearn.linear_model",
    "sqlalchemy.ext.asyncio", "Stemmer", "structlog",
)  # fmt: skip
LIMIT = 60  # seconds of processor time of one run of a subject's tests
TIMEOUT = 600.0  # seconds of one that waits for ever, on a machine that others share
SEED = 11
# Of types (`X | None`), the same for what is compared here (`is` and `==` of enumerations), or mistakes that nobody makes: a
# shift for a sum, an identity for an order.
UNLIKELY = re.compile(
    r"BinaryOperator_BitOr_|Operator_Is_Eq$|Operator_IsNot_NotEq$|_(?:[LR]Shift|Bit\w+|Invert|Is|IsNot|Pow|FloorDiv|Mod)$"
)
DECORATORS = ("@dataclass", "@lru_cache")  # which types and time depend on, but no result
GOAL = 0.85  # of the changes are to be noticed


SUBJECTS = {
    "paging": "core/triage/paging.py",
    "certainty": "core/answering/certainty.py",
    "confidence": "core/confidence",
    "incidents": "core/incidents",
}
TESTED = ("tests/unit", "tests/evaluation")


def main() -> None:
    parser = argparse.ArgumentParser(description="Which small changes of the code no test notices.")
    parser.add_argument("subjects", nargs="*", choices=SUBJECTS)
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--here", action="store_true", help="change the modules of this folder, which is a copy")
    arguments = parser.parse_args()
    for name in arguments.subjects or SUBJECTS:
        if arguments.here:
            _try_changes(name, SUBJECTS[name], arguments.sample, arguments.seed)
            continue
        with TemporaryDirectory(prefix="plumbline-mutate-") as folder:
            for copied in COPIED:
                (shutil.copytree if (ROOT / copied).is_dir() else shutil.copy)(ROOT / copied, Path(folder) / copied)
            sample = ["--sample", str(arguments.sample)] if arguments.sample else []
            own = [
                sys.executable,
                "-m",
                "tests.benchmarks.mutate",
                name,
                "--here",
                "--seed",
                str(arguments.seed),
                *sample,
            ]
            subprocess.run(own, cwd=folder, check=True)


def _try_changes(name: str, subject: str, sample: int | None, seed: int) -> None:
    if "core" in sys.modules:
        raise SystemExit(
            "Run `python -m tests.benchmarks.mutate`: this process has read the code already, and sees no change."
        )
    for library in LIBRARIES:
        import_module(library)
    if _noticed(_tests_of(subject, Path(subject))):
        raise SystemExit(f"{name}: the tests fail without any change.")
    sys.dont_write_bytecode = True  # a change of the same second and length would be taken for the one before
    changes = list(_changes(subject))
    random.Random(seed).shuffle(changes)
    tried, survivors = changes[:sample], 0
    for change in tried:
        path, original = Path(change.module_path), Path(change.module_path).read_text("utf-8")
        changed = _apply(change, original)
        path.write_text(changed, "utf-8")
        if not _noticed(_tests_of(subject, path)):
            survivors += 1
            lines = difflib.unified_diff(original.splitlines(), changed.splitlines(), str(path), str(path), lineterm="")
            sys.stdout.write("\n".join(lines) + "\n\n")
        path.write_text(original, "utf-8")
    sys.stdout.write(
        f"{name}: {1 - survivors / len(tried):.2f} of {len(tried)} changes are noticed, of {len(changes)} that there are;"
        f" the goal is {GOAL}\n"
    )


def _changes(subject: str) -> Iterator[Any]:
    """Yield the likely changes of a subject's modules, in their order."""
    # Of the group `mutate`, which `make mutate` installs.
    modules, initial, database = (
        import_module(f"cosmic_ray.{module}") for module in ("modules", "commands", "work_db")
    )
    paths = modules.find_modules([Path(subject)])
    with database.use_db("session.sqlite", database.WorkDB.Mode.create) as work:
        initial.init(paths, work, {})
        for item in work.work_items:
            change = item.mutations[0]
            line = Path(change.module_path).read_text("utf-8").splitlines()[change.start_pos[0] - 1]
            if not UNLIKELY.search(change.operator_name) and not line.startswith(DECORATORS):
                yield change


def _apply(change: Any, source: str) -> str:
    operator = import_module("cosmic_ray.plugins").get_operator(change.operator_name)(**change.operator_args)
    return import_module("cosmic_ray.mutating").mutate_code(source, operator, change.occurrence)


def _tests_of(subject: str, module: Path) -> list[str]:
    """Return the files of tests that import the subject, those of the module first, since the first failure ends a run."""
    name, first = (".".join(path.with_suffix("").parts) for path in (Path(subject), module))
    texts = {
        str(file): file.read_text("utf-8") for folder in TESTED for file in sorted(Path(folder).rglob("test_*.py"))
    }
    return sorted((file for file, text in texts.items() if name in text), key=lambda file: first not in texts[file])


def _noticed(tests: Iterable[str]) -> bool:
    """Return whether the tests of this folder fail, or take longer than LIMIT or TIMEOUT, in a fork of this process."""
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT))
        silent = os.open(os.devnull, os.O_WRONLY)
        os.setsid()
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        os._exit(int(import_module("pytest").main([*PYTEST, *tests])))
    until = time.monotonic() + TIMEOUT
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > until:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return True
        time.sleep(0.01)
    return os.waitstatus_to_exitcode(ended[1]) != 0


if __name__ == "__main__":
    main()
