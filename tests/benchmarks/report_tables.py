"""How the figures of each measure are shown: tables in Markdown, and a line for README.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Figures = Mapping[str, Any]
Row = Sequence[str]


@dataclass(frozen=True, slots=True)
class Headline:
    """A line of the table in README.md."""

    asked: str
    figure: str
    baseline: str
    failures: str


def share(value: float | None, cases: int) -> str:
    """Return a share of so many cases with its 95 % interval (Wilson 1927)."""
    if value is None or not cases:
        return "–"
    from scipy.stats import binomtest  # takes long to be imported

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


def answers(figures: Figures) -> Iterable[str]:
    answerable, unanswerable = _answerable(figures), _unanswerable(figures)
    columns = {
        "states": "the answer states it",
        "shown": "what is shown does",
        "states_anywhere": "or a further excerpt",
    }
    keys = [key for key in columns if any(key in each for each in figures["results"].values())]  # not all are measured
    yield table(
        ("", *(columns[key] for key in keys), "withheld wrongly", "withheld rightly"),
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


def answers_headline(figures: Figures) -> Iterable[Headline]:
    ours, cases = figures["results"]["plumbline"], _answerable(figures)
    wrong, withheld = int(_certain_wrong({**ours, "cases": cases})), int(_withheld({**ours, "cases": cases}))
    hedged = cases - round(ours["states"] * cases) - wrong - withheld
    baseline, empty = figures["results"]["bm25_section"], _unanswerable(figures)
    failures = f"of {cases}: {hedged} hedged, {wrong} certain, {withheld} withheld"
    yield Headline("answer stated", share(ours["states"], cases), f"BM25 {number(baseline['states'])}", failures)
    answered = f"of {empty}: {empty - round(ours['abstained'] * empty)} got an answer"
    yield Headline(
        "rightly withheld", share(ours["abstained"], empty), f"BM25 {number(baseline['abstained'])}", answered
    )


# Retrieval


def retrieval(figures: Figures) -> Iterable[str]:
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


# Incidents


def incidents(figures: Figures) -> Iterable[str]:
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


def incidents_headline(figures: Figures) -> Iterable[Headline]:
    cases = figures["cases"]
    missed, decoys = cases - round(figures["first"] * cases), round(figures["decoy_first"] * cases)
    failures = f"of {cases}: {missed} not first, {decoys} a decoy"
    yield Headline("change named first", share(figures["first"], cases), "–", failures)


# Root cause from recorded tool outputs


def rca(figures: Figures) -> Iterable[str]:
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


def clusters(figures: Figures) -> Iterable[str]:
    keys = ("object_type@1", "object_type@3", "object@1", "type@1")
    yield table(
        ("", "object and type", "among three", "object", "type", "AUROC"),
        [
            (name, *(share(each[key], each["cases"]) for key in keys), number(each["auroc"]))
            for name, each in figures["results"].items()
        ],
    )


def worlds(figures: Figures) -> Iterable[str]:
    yield table(
        ("way in", "healthy worlds with a cause", "right causes of faulty ones", "among three", "both right"),
        [
            (
                way,
                share(each["false"], each["healthy"]),
                *(share(each[key], each["twins"]) for key in ("right", "among", "pairs")),
            )
            for way, each in figures["ways"].items()
        ],
    )


def cause_grades(figures: Figures) -> Iterable[str]:
    keys = ("strong", "moderate", "weak", "by_others")

    def described(grade: Figures) -> str:
        return f"{share(grade['right'], grade['causes'])} of {grade['causes']}" if grade["causes"] else "–"

    yield table(
        ("", "strong", "moderate", "weak", "strong by the others"),
        [(name, *(described(each[key]) for key in keys)) for name, each in figures["sets"].items()],
    )


# Telemetry


def telemetry(figures: Figures) -> Iterable[str]:
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


# Build logs


def ci_logs(figures: Figures) -> Iterable[str]:
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


def ci_logs_headline(figures: Figures) -> Iterable[Headline]:
    ours, vote = figures["results"]["5"], figures["baselines"]["template_vote"]["5"]
    first = figures["results"]["0"]["line_f1"]
    failures = f"{number(first)} with no failure known"
    yield Headline("failing lines of logs, F1", estimate(ours, "line_f1"), f"vote {number(vote['line_f1'])}", failures)


# Triage


def triage(figures: Figures) -> Iterable[str]:
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


def triage_headline(figures: Figures) -> Iterable[Headline]:
    results = figures["results"]
    own = ("plumbline", "without_distillation")
    name = max((each for each in results if each not in own), key=lambda each: results[each]["hop@1"])
    ours, cases = results["plumbline"]["hop@1"], figures["cases"]
    missed = f"{1 - ours:.0%} go to another team first".replace("%", " %")
    baseline = f"{name.replace('_', ' ')} {number(results[name]['hop@1'])}"
    yield Headline("owner named first", share(ours, cases), baseline, missed)


# Calibration


def calibration(figures: Figures) -> Iterable[str]:
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


# The others


def privacy(figures: Figures) -> Iterable[str]:
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


def ccf(figures: Figures) -> Iterable[str]:
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


def log_templates(figures: Figures) -> Iterable[str]:
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


def footprint(figures: Figures) -> Iterable[str]:
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
