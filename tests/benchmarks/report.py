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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scipy.stats import binomtest

ROOT = Path(__file__).parents[2]
RESULTS = Path(__file__).with_name("results")
PAGE, README = ROOT / "BENCHMARKS.md", ROOT / "README.md"
BEGIN, END = "<!-- benchmarks: written by `make benchmarks` -->", "<!-- end of benchmarks -->"
LONG_LIST = 8  # members; longer lists are curves, which no page shows

Figures = Mapping[str, Any]
Row = Sequence[str]


@dataclass(frozen=True, slots=True)
class Headline:
    """A line of the table in README.md."""

    asked: str
    figure: str
    baseline: str
    failures: str


@dataclass(frozen=True, slots=True)
class Measure:
    """A command, and how its figures are shown. `DATA` in `command` stands for the folder of the data."""

    name: str
    title: str
    asked: str
    data: str
    tuned: str
    command: str
    tables: Callable[[Figures], Iterable[str]]
    headline: Callable[[Figures], Headline] | None = None
    archive: str = ""  # in the folder of the data; the command gets the folder that it is unpacked into as ARCHIVE
    omitted: tuple[str, ...] = ()  # keys of the figures that are not kept
    quick: bool = True  # takes some minutes at most

    @property
    def shown(self) -> str:
        """The command as a reader would type it."""
        return self.command.replace("ARCHIVE", f"DATA/{self.archive.split('/')[0]}")

    @property
    def short(self) -> str:
        """The command without its options."""
        return self.command.split(" --")[0]


def share(value: float | None, cases: int) -> str:
    """Return a share of so many cases with its 95 % interval (Wilson 1927)."""
    if value is None or not cases:
        return "–"
    low, high = binomtest(round(value * cases), cases).proportion_ci(method="wilson")
    return f"{value:.2f} [{low:.2f}–{high:.2f}]"


def estimate(figures: Figures, key: str) -> str:
    """Return a figure that is no share, with the bootstrap interval that the command gives."""
    value, interval = figures.get(key), figures.get(f"{key}_ci")
    if value is None:
        return "–"
    return f"{value:.2f} [{interval[0]:.2f}–{interval[1]:.2f}]" if interval else f"{value:.2f}"


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def table(heading: Row, rows: Iterable[Row]) -> str:
    """Return a table in Markdown."""
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


# Answers


def _answers(figures: Figures) -> Iterable[str]:
    answerable, unanswerable = _answerable(figures), _unanswerable(figures)
    keys = ("states", "states_anywhere")
    yield table(
        ("", "the answer states it", "it or a further excerpt does", "withheld wrongly", "withheld rightly"),
        [
            (
                name,
                *(share(each.get(key), answerable) for key in keys),
                share(each.get("wrongly_abstained"), answerable),
                share(each.get("abstained"), unanswerable),
            )
            for name, each in figures["results"].items()
        ],
    )
    ours = figures["results"]["plumbline"]
    certain = round(ours["certain_share"] * answerable)
    yield (
        f"Called certain: {certain} of {answerable}; of these, {share(ours['certain_precision'], certain)} state it. "
        f"Hedged: {share(ours['hedged_right'], _hedged(figures))} state it."
    )
    yield "Failures by kind of question:"
    yield table(
        ("kind", "questions", "stated", "certain and not stated", "withheld"),
        [
            (kind, str(each["cases"]), share(each["states"], each["cases"]), _certain_wrong(each), _withheld(each))
            for kind, each in ((kind, each["plumbline"]) for kind, each in figures["by_kind"].items())
            if each.get("states") is not None
        ],
    )


def _unanswerable(figures: Figures) -> int:
    kinds = (each["plumbline"] for each in figures["by_kind"].values())
    return sum(each["cases"] for each in kinds if each.get("states") is None)


def _answerable(figures: Figures) -> int:
    return figures["results"]["plumbline"]["cases"] - _unanswerable(figures)


def _hedged(figures: Figures) -> int:
    """Return how many answerable questions got an answer that was not called certain; hits of them: `hedged_right`."""
    ours, cases = figures["results"]["plumbline"], _answerable(figures)
    return cases - round(ours["certain_share"] * cases)


def _certain_wrong(each: Figures) -> str:
    certain = round((each.get("certain_share") or 0) * each["cases"])
    return str(round((1 - (each.get("certain_precision") or 0)) * certain)) if certain else "0"


def _withheld(each: Figures) -> str:
    return str(round((each.get("wrongly_abstained") or 0) * each["cases"]))


def _answers_headline(figures: Figures) -> Headline:
    ours, cases = figures["results"]["plumbline"], _answerable(figures)
    wrong, withheld = int(_certain_wrong({**ours, "cases": cases})), int(_withheld({**ours, "cases": cases}))
    hedged = cases - round(ours["states"] * cases) - wrong - withheld
    baseline = figures["results"].get("bm25_section", {}).get("states")
    failures = f"of {cases}: {hedged} hedged, {wrong} certain, {withheld} withheld"
    return Headline("answer stated", share(ours["states"], cases), f"BM25 {number(baseline)}", failures)


# Retrieval


def _retrieval(figures: Figures) -> Iterable[str]:
    keys = ("recall@1", "recall@3", "recall@5")
    yield table(
        ("", *keys, "mean reciprocal rank"),
        [
            (name, *(share(each[key], figures["cases"]) for key in keys), number(each["mrr"]))
            for name, each in figures["results"].items()
        ],
    )
    if kept := figures.get("abstention"):
        yield (
            f"As shipped, {share(kept['abstained_shipped'], kept['unanswerable'])} of the {kept['unanswerable']} questions "
            f"without a page get none, and {share(kept['answered_shipped'], figures['cases'])} of the others get one."
        )


def _retrieval_headline(figures: Figures) -> Headline:
    ours, bm25 = (figures["results"][name]["recall@1"] for name in ("plumbline", "bm25"))
    missed = figures["cases"] - round(ours * figures["cases"])
    return Headline(
        "page found first",
        share(ours, figures["cases"]),
        f"BM25 {number(bm25)}",
        f"{missed} of {figures['cases']} not first",
    )


# Incidents


def _incidents(figures: Figures) -> Iterable[str]:
    groups = {
        "classes not developed on": figures,
        "classes developed on": figures["developed_on"],
        **dict(sorted(figures["by_class"].items())),
    }
    yield table(
        ("", "incidents", "first", "among three", "decoy first", "first failing service"),
        [
            (
                name.replace("_", " "),
                str(each["cases"]),
                share(each["first"], each["cases"]),
                *(number(each.get(key)) for key in ("among3", "decoy_first", "first_failing_service")),
            )
            for name, each in groups.items()
        ],
    )
    yield (
        f"Of the first row, {round(figures['strong'] * figures['cases'])} causes rest on strong evidence; "
        f"{number(figures.get('strong_right'))} of these are right. AUROC of the badge {number(figures.get('auroc'))}, "
        f"expected calibration error {number(figures.get('ece'))}."
    )


def _incidents_headline(figures: Figures) -> Headline:
    cases = figures["cases"]
    missed, decoys = cases - round(figures["first"] * cases), round(figures["decoy_first"] * cases)
    failures = f"of {cases}: {missed} not first, {decoys} a decoy"
    return Headline("change named first", share(figures["first"], cases), "–", failures)


# Root cause from recorded tool outputs


def _rca(figures: Figures) -> Iterable[str]:
    keys = ("stated", "evidence@3", "abstained")
    yield table(
        ("", "states the key fact", "quotes it in three lines", "names none"),
        [(name, *(share(each.get(key), each["cases"]) for key in keys)) for name, each in figures["results"].items()],
    )
    yield "Other kinds of question:"
    yield table(
        ("", "questions", "right", "names none"),
        [
            (
                f"{name}, {kind}",
                str(each["cases"]),
                share(each.get("right", each.get("stated")), each["cases"]),
                number(each.get("abstained")),
            )
            for name, result in figures["results"].items()
            for kind, each in result["by_kind"].items()
        ],
    )


def _rca_headline(figures: Figures) -> Headline:
    ours, keyword, cases = figures["results"]["evidence"], figures["results"]["keyword"], figures["cases"]
    none = round(ours["abstained"] * cases)
    wrong = cases - round(ours["stated"] * cases) - none
    figure, baseline = share(ours["stated"], cases), f"keywords {number(keyword['stated'])}"
    return Headline("cause stated", figure, baseline, f"of {cases}: {wrong} wrong, {none} none named")


# Telemetry


def _telemetry(figures: Figures) -> Iterable[str]:
    cases = figures["cases"]
    yield table(
        ("", "first", "among three"),
        [(name, share(each["top1"], cases), share(each["top3"], cases)) for name, each in figures["results"].items()],
    )
    yield table(
        ("failures of plumbline", "issues", "first", "among three"),
        [
            (group, str(each["cases"]), share(each["top1"], each["cases"]), share(each["top3"], each["cases"]))
            for group, each in figures["results"]["plumbline"]["by_group"].items()
        ],
    )


def _telemetry_headline(figures: Figures) -> Headline:
    results, cases = figures["results"], figures["cases"]
    ours = results["plumbline"]["top1"]
    baseline = max(each["top1"] for name, each in results.items() if name != "plumbline")
    missed = cases - round(ours * cases)
    return Headline(
        "service named first", share(ours, cases), f"correlation {number(baseline)}", f"{missed} of {cases} not first"
    )


# Build logs


def _ci_logs(figures: Figures) -> Iterable[str]:
    methods = {"plumbline": figures["results"], **figures["baselines"]}
    yield table(
        ("", "failures known", "precision of lines", "recall of lines", "F1 of lines", "exactly the lines"),
        [
            (
                name,
                history,
                number(each["line_precision"]),
                number(each["line_recall"]),
                estimate(each, "line_f1"),
                share(each["exact"], figures["cases"]),
            )
            for name, histories in methods.items()
            for history, each in histories.items()
        ],
    )
    yield f"{figures['not_found']} logs do not hold their labelled lines and are left out."


def _ci_logs_headline(figures: Figures) -> Headline:
    ours, vote = figures["results"]["5"], figures["baselines"]["template_vote"]["5"]
    first = figures["results"]["0"]["line_f1"]
    failures = f"{number(first)} with no failure known"
    return Headline(
        "failing lines, F1, 5 known", estimate(ours, "line_f1"), f"vote {number(vote['line_f1'])}", failures
    )


# Triage


def _triage(figures: Figures) -> Iterable[str]:
    yield table(
        ("", "first owner", "by hop 3", "macro F1", "coverage at 90 %"),
        [
            (
                name,
                share(each["hop@1"], figures["cases"]),
                share(each["hop@3"], figures["cases"]),
                estimate(each, "macro_f1"),
                number(each.get("coverage@precision90")),
            )
            for name, each in figures["results"].items()
        ],
    )


def _triage_headline(figures: Figures) -> Headline:
    results = figures["results"]
    own = ("plumbline", "without_distillation")
    name = max((each for each in results if each not in own), key=lambda each: results[each]["hop@1"])
    ours, cases = results["plumbline"]["hop@1"], figures["cases"]
    missed = f"{1 - ours:.0%} go to another team first".replace("%", " %")
    baseline = f"{name.replace('_', ' ')} {number(results[name]['hop@1'])}"
    return Headline("owner named first", share(ours, cases), baseline, missed)


# Calibration


def _calibration(figures: Figures) -> Iterable[str]:
    budgets = list(next(iter(figures["mean"].values())))
    measures = {"ece": "Mean expected calibration error", "auroc": "Mean AUROC, how well right is told from wrong"}
    for key, meaning in measures.items():
        yield f"{meaning}, by the number of labels that a map is fitted on:"
        yield table(
            ("", *(f"{budget} labels" for budget in budgets)),
            [
                (name.replace("_", " "), *(number(each[budget].get(key)) for budget in budgets))
                for name, each in figures["mean"].items()
            ],
        )


def _calibration_headline(figures: Figures) -> Headline:
    ours, raw, base = (figures["mean"][name]["50"]["ece"] for name in ("plumbline", "raw", "base_rate"))
    failures = f"saying the same of all: {number(base)}"
    return Headline("calibration error, 50 labels", number(ours), f"as stated {number(raw)}", failures)


# The others


def _privacy(figures: Figures) -> Iterable[str]:
    yield table(
        ("", "labelled", "taken out", "of what is taken out, labelled"),
        [
            (
                name,
                str(each["labelled"]),
                share(each["recall"], each["labelled"]),
                share(each["precision"], each["removed"]),
            )
            for name, each in figures["results"].items()
        ],
    )


def _ccf(figures: Figures) -> Iterable[str]:
    yield table(
        ("", "recall@1", "right manual", "wrong manual named", "answered"),
        [
            (
                name,
                *(
                    share(each[key], figures["cases"])
                    for key in ("recall@1", "correctness", "hallucination", "coverage")
                ),
            )
            for name, each in figures["results"]["none"].items()
        ],
    )


def _log_templates(figures: Figures) -> Iterable[str]:
    yield table(
        ("", "grouping accuracy, mean", "parsing accuracy, mean"),
        [
            (name, estimate(each, "grouping_accuracy"), number(each["parsing_accuracy"]))
            for name, each in figures["results"].items()
        ],
    )
    drain = figures["results"]["drain"]["systems"]
    yield table(
        ("grouping accuracy by system", "drain", "plumbline"),
        [
            (name, number(drain[name]["grouping_accuracy"]), number(each["grouping_accuracy"]))
            for name, each in figures["results"]["plumbline"]["systems"].items()
        ],
    )


def _footprint(figures: Figures) -> Iterable[str]:
    yield table(
        ("import", "memory, idle", "answer, median", "answer, 95th percentile"),
        [
            (
                f"{figures['import_s']:.1f} s",
                f"{figures['idle_mb']} MB",
                f"{figures['answer_p50_ms']:.0f} ms",
                f"{figures['answer_p95_ms']:.0f} ms",
            )
        ],
    )


def _answers_tuned() -> str:
    fit = json.loads((ROOT / "core" / "answering" / "certainty.json").read_text(encoding="utf-8"))
    kept = fit["out_of_fold"]
    return (
        f"Whether to answer, and whether to call it certain, is fitted on {fit['fitted_on']}: these questions, those of the FAQ "
        f"and the alerts. Judged by a fit that did not see the product in question, {kept['strong_share']:.2f} of the answers "
        f"are certain and {kept['strong_precision']:.2f} of these right. How an excerpt is chosen was developed with these "
        "questions at hand. Expect less on documents of your own, and measure it."
    )


MEASURES = (
    Measure(
        "answers",
        "Answers",
        "Does the answer state what was asked, and is it withheld where no document says it?",
        "120 questions, half of them from GitHub issues, on the documentation of Argo CD, Argo Workflows, Tekton, Flux, Loki and "
        "OpenShift's runbooks (`real-qa`); 20 have no answer there. A regular expression says what states the answer.",
        _answers_tuned(),
        "python -m bot eval answers --questions DATA/real-qa/questions.jsonl --corpus DATA/real-qa/corpus-ops.jsonl.gz "
        "--corpus DATA/real-qa/corpus-runbooks.jsonl.gz",
        _answers,
        _answers_headline,
    ),
    Measure(
        "retrieval",
        "Finding the runbook of an alert",
        "Is the page found that belongs to an alert?",
        "99 alerts of kube-prometheus, 119 runbook pages of prometheus-operator, and 26 alerts without a page "
        "(`alert-runbooks`, Apache-2.0).",
        "How words are split and weighted was developed with these alerts at hand.",
        "python -m bot eval retrieval --questions DATA/alert-runbooks/questions.jsonl "
        "--corpus DATA/alert-runbooks/corpus.jsonl --unanswerable DATA/alert-runbooks/unanswerable.jsonl",
        _retrieval,
        _retrieval_headline,
    ),
    Measure(
        "masked-retrieval",
        "The same with the alert's name taken out",
        "Is the page found by what the alert says alone?",
        "The same alerts and pages without the names (`alert-runbooks`).",
        "How words are split and weighted was developed with these alerts at hand.",
        "python -m bot eval retrieval --questions DATA/alert-runbooks/questions-masked.jsonl "
        "--corpus DATA/alert-runbooks/corpus-masked.jsonl --unanswerable DATA/alert-runbooks/unanswerable-masked.jsonl",
        _retrieval,
    ),
    Measure(
        "faq",
        "Finding the page of a question",
        "Is the page found that answers an FAQ?",
        "118 headings of FAQs and 1,968 pages of Kubernetes, Prometheus, cert-manager and etcd (`docs-faq`, Apache-2.0 and "
        "CC-BY-4.0), the headings themselves taken out.",
        "How words are split and weighted was developed with these questions at hand.",
        "python -m bot eval retrieval --questions DATA/docs-faq/questions.jsonl --corpus DATA/docs-faq/corpus.jsonl.gz",
        _retrieval,
    ),
    Measure(
        "incidents",
        "The change that broke it",
        "Is the change named first that broke it, or that no change did?",
        "200 incidents that `tests/evaluation/generate_incidents.py` invents: 14 classes of fault, with decoys.",
        "The weights are fitted to the classes marked as developed on; the first row is of the others. The incidents are "
        "inventions of ours, so that real ones will be harder. The command has no baseline.",
        "python -m bot eval incidents --generate 200 --seed 1",
        _incidents,
        _incidents_headline,
    ),
    Measure(
        "rca",
        "The cause from recorded tool outputs",
        "Does the stated cause hold the key fact?",
        "31 gradable Kubernetes cases with recorded outputs, 18 of them root causes: the evaluation fixtures of HolmesGPT "
        "(`rca-cases`, Apache-2.0).",
        "No weight is fitted to these cases; the rules that read tool outputs were developed with them at hand.",
        "python -m bot eval rca --cases DATA/rca-cases/cases.jsonl.gz",
        _rca,
        _rca_headline,
    ),
    Measure(
        "telemetry",
        "The service at fault, from metrics alone",
        "Is the service named that a fault was injected into?",
        "36 test issues of low and high traffic of PetShop (amazon-science/petshop-root-cause-analysis, CC-BY-4.0).",
        "No weight is fitted to PetShop; the method was developed with it at hand.",
        "python -m tests.benchmarks telemetry --cases ARCHIVE",
        _telemetry,
        _telemetry_headline,
        archive="petshop/petshop.tar.xz",
    ),
    Measure(
        "ci-logs",
        "The failing lines of a build log",
        "Are the lines found that explain the failure?",
        "500 Travis CI logs of 60 projects (LogChunks, MSR 2020), each with 0, 1, 2, 5 or all other labelled failures of its "
        "project known.",
        "The weights are fitted to 258 small builds that were made to fail, none of them from this set.",
        "python -m tests.benchmarks ci-logs --cases DATA/ci-logs/logchunks.jsonl.xz",
        _ci_logs,
        _ci_logs_headline,
    ),
    Measure(
        "triage",
        "The owner of a ticket",
        "Does a ticket reach the team that owns it?",
        "6,780 tickets of 74 groups (Automatic Ticket Assignment), in five folds by normalised text.",
        "Everything is fitted within the training folds.",
        "python -m bot eval triage --train DATA/itsm-tickets/tickets.jsonl.gz",
        _triage,
        _triage_headline,
        quick=False,
    ),
    Measure(
        "calibration",
        "Percentages that come true",
        "How far are stated percentages from what came true, before and after the map that badges use?",
        "72,185 answers of 11 language models on 5 sets of questions (NoamMichael/Comparing-Confidence-in-LLMs, MIT).",
        "Fitted on one half of each group and measured on the other, ten times.",
        "python -m bot eval calibration --csv DATA/llm-confidence/llm-confidence-correct.csv.gz",
        _calibration,
        _calibration_headline,
        omitted=("results", "simulated"),
        quick=False,
    ),
    Measure(
        "privacy",
        "What must not be indexed",
        "Is everything taken out that must not be indexed, and nothing else?",
        "283 lines of our own, made up, in the repository.",
        "The patterns were developed with these lines at hand.",
        "python -m bot eval privacy --cases tests/evaluation/data/privacy.jsonl",
        _privacy,
    ),
    Measure(
        "ccf",
        "The right manual, in Chinese",
        "Is the right one of four families of manuals named?",
        "103 questions of the CCF International AIOps Challenge 2024 (`ccf-aiops-2024`), one left out at a time, without lists "
        "of keywords.",
        "Settings are chosen without the question that is asked. The other rows are the methods of Evidence-Chain RAG.",
        "python -m tests.benchmarks ccf --questions DATA/ccf-aiops-2024/questions.jsonl --lexicon none",
        _ccf,
        quick=False,
    ),
    Measure(
        "log-templates",
        "Log lines of one statement",
        "Are the messages of one statement grouped together, and only those?",
        "13 systems with 2,000 lines each (logpai/loghub).",
        "Settings were developed with these systems at hand.",
        "python -m tests.benchmarks log-templates --logs ARCHIVE",
        _log_templates,
        archive="loghub-2k/loghub-2k.tar.xz",
    ),
    Measure(
        "footprint",
        "Time and memory",
        "How long does it take to start and to answer, and how much memory does an idle bot hold?",
        "The sample company in the repository: 290 documents, with Slack and Teams loaded.",
        "Nothing. The figures depend on the machine and on what else runs there; yours will differ.",
        "python -m tests.benchmarks footprint",
        _footprint,
    ),
)


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
        (f"`{_named(measure)}`", told.asked, told.figure, told.baseline, told.failures)
        for measure in MEASURES
        if measure.headline and measure.name in kept
        for told in (measure.headline(kept[measure.name]["figures"]),)
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
without a language model and without an embedding model, on a processor.

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
