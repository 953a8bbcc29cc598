"""Runs the measures on public data and writes BENCHMARKS.md and the table in README.md from what they print.

    python -m tests.benchmarks report [--data DIR] [NAME…]

With `--data`, the named measures (by default the quick ones; `all` for every one) run on the folders in DIR, and their
figures are kept in `tests/benchmarks/results`. Without it, only the pages are written from what is kept there.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.benchmarks.report_measures import MEASURES, ROOT, Measure
from tests.benchmarks.report_tables import Figures, table

RESULTS = Path(__file__).with_name("results")
PAGE, README = ROOT / "BENCHMARKS.md", ROOT / "README.md"
BEGIN, END = "<!-- benchmarks: written by `make benchmarks` -->", "<!-- end of benchmarks -->"
LONG_LIST = 8  # members; longer lists are curves, which no page shows


def run(measure: Measure, data: Path) -> None:
    """Run a measure and keep its figures. Raises CalledProcessError where the command fails."""
    with tempfile.TemporaryDirectory(prefix="plumbline-benchmark-") as folder:
        if measure.archive:
            with tarfile.open(data / measure.archive) as archive:
                archive.extractall(folder, filter="data")
        printed = Path(folder) / "figures.json"
        words = shlex.split(measure.command.replace("ARCHIVE", folder).replace("DATA", str(data)))
        started = time.monotonic()
        subprocess.run([sys.executable, *words[1:], "--json", str(printed)], cwd=ROOT, check=True)
        seconds = time.monotonic() - started
        figures = json.loads(printed.read_text(encoding="utf-8"))
    kept = {
        "command": measure.shown,
        "commit": _commit(),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "seconds": round(seconds),
        "figures": _without_curves({key: value for key, value in figures.items() if key not in measure.omitted}),
    }
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps(kept, indent=1, ensure_ascii=False) + "\n"
    (RESULTS / f"{measure.name}.json").write_text(text, encoding="utf-8")


def _without_curves(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _without_curves(each)
            for key, each in value.items()
            if not (isinstance(each, list) and len(each) > LONG_LIST)
        }
    return value


def _commit() -> str:
    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "bot", "handlers", "core", "adapters")
    return git("rev-parse", "--short", "HEAD") + (" with changes" if changed else "")


def results() -> dict[str, Figures]:
    """Return what is kept, by the name of the measure."""
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in sorted(RESULTS.glob("*.json"))}


def page(kept: Mapping[str, Figures]) -> str:
    """Return BENCHMARKS.md."""
    parts = [INTRODUCTION]
    for measure in MEASURES:
        if measure.name not in kept:
            continue
        result = kept[measure.name]
        run_at = f"{result['date']} at {result['commit']}, in {_duration(result['seconds'])}"
        facts = (f"- Data: {measure.data}", f"- Tuned: {measure.tuned}", f"- Run on {run_at}:")
        parts += [f"## {measure.title}", measure.asked, "\n".join(_wrapped(fact) for fact in facts)]
        parts += [f"```sh\n{_broken(measure.shown)}\n```", *measure.tables(result["figures"])]
    return "\n\n".join(_wrapped(part) for part in parts) + "\n"


def _duration(seconds: int) -> str:
    return f"{seconds} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _broken(command: str) -> str:
    """Return a command with each option on a line of its own, if it is long."""
    return command if len(command) < 100 else command.replace(" --", " \\\n    --")


def _wrapped(text: str, width: int = 118) -> str:
    if "\n" in text or text.startswith(("|", "#")):
        return text
    indent = "  " if text.startswith("- ") else ""
    return textwrap.fill(text, width, subsequent_indent=indent, break_on_hyphens=False)


def summary(kept: Mapping[str, Figures]) -> str:
    """Return the table in README.md."""
    rows = [
        (f"`{_named(measure)}`", headline.asked, headline.figure, headline.baseline, headline.failures)
        for measure in MEASURES
        if measure.headline and measure.name in kept
        for headline in measure.headline(kept[measure.name]["figures"])
    ]
    return table(("command", "measures", "Plumbline", "baseline", "failures"), rows)


def _named(measure: Measure) -> str:
    return measure.short.replace("python -m bot", "plumbline").removeprefix("python -m ")


def with_summary(readme: str, kept: Mapping[str, Figures]) -> str:
    """Return README.md with the table between its marks."""
    before, rest = readme.split(BEGIN)
    return f"{before}{BEGIN}\n\n{summary(kept)}\n\n{END}{rest.split(END)[1]}"


INTRODUCTION = """# Benchmarks

Every figure here was printed by the command above it and written by `make benchmarks`; none is written by hand. The
data is public, or lies in the repository where it says so. Brackets are 95 % intervals: Wilson's for shares of cases,
else the bootstrap interval that the command gives. Baselines are of the same run. The evidence engine works alone,
without a language model, on a processor; answers and pages are found with the embedding model that is the default.

`make benchmarks DATA=DIR` runs the measures that take some minutes at most, `make benchmarks DATA=DIR ONLY=all` all of
them, and `ONLY="answers rca"` two. DIR holds the folders that the commands name. `python -m bot` is `plumbline`. To
measure your own documents and incidents, give the same commands your own files; `--help` says what they look like."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks report", description=__doc__)
    parser.add_argument("--data", type=Path, help="The folder with the data.")
    parser.add_argument("names", nargs="*", help="Measures to run; `all` for every one.")
    given = parser.parse_args()
    names = {measure.name for measure in MEASURES}
    if unknown := set(given.names) - names - {"all"}:
        parser.error(f"There is no measure {', '.join(sorted(unknown))}; there are {', '.join(sorted(names))}.")
    if given.names and not given.data:
        parser.error("Give the folder of the data with --data.")
    if given.data:
        for measure in MEASURES:
            if measure.name in given.names or "all" in given.names or (not given.names and measure.quick):
                print(f"Measuring {measure.name}: {measure.shown}", flush=True)
                run(measure, given.data.resolve())
    kept = results()
    PAGE.write_text(page(kept), encoding="utf-8")
    README.write_text(with_summary(README.read_text(encoding="utf-8"), kept), encoding="utf-8")
