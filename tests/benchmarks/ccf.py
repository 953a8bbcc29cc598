"""`python -m tests.benchmarks ccf`: the table of Evidence-Chain RAG, with Plumbline beside the paper's five methods.

Each question is asked of a corpus that was made and fitted without it. A reply is right when it names the question's
manual family. The paper's lists of keywords are not published and decide its figures, so all is measured with none, with
lists mined from the corpus, and with lists by hand that were written with the questions in view.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from threadpoolctl import threadpool_limits

from bot.evaluation.report import SEED, bootstrap_interval, json_lines, print_rows, rounded
from core.answering.find import ENGINE
from core.confidence.measures import brier, ece, ece_floor, ece_interval, risk_coverage
from core.model.errors import MalformedInput
from tests.benchmarks.ccf_corpus import Case, silver_corpus
from tests.benchmarks.ccf_lexicon import Keywords, Lexicon
from tests.benchmarks.ccf_paper import PaperMethods, tokens
from tests.benchmarks.ccf_plumbline import Plumbline, chosen, ingested
from tests.benchmarks.ccf_reply import Method, Reply

CUTOFFS = (1, 3, 5, 10)
SUPPORTING = 2  # citations of the right family below which a reply counts as hallucinated
BASELINE = "evidence_chain"  # the paper's best method, that gains are measured against


@dataclass(frozen=True, slots=True)
class Outcome:
    """One question put to one method. `rank` is that of the first chunk of the right family.

    `milliseconds` are by the clock, `cpu` of this process on all cores: a busy machine changes only the former much.
    """

    rank: float
    answered: bool
    correct: bool
    cited: int
    cited_right: int
    tokens: int
    milliseconds: float
    cpu: float
    probability: float | None = None

    @property
    def hallucinated(self) -> bool:
        """The answer's family is wrong, or too few citations support the right one (Evidence-Chain RAG, Method)."""
        return self.answered and (not self.correct or self.cited_right < SUPPORTING)


def run(questions: Path, lexicons: Sequence[Lexicon] = tuple(Lexicon)) -> dict[str, Any]:
    """Return the figures. Raises MalformedInput for a file in another format.

    Rates are over all questions, but `hallucination_answered`, over those that were answered, and
    `citation_precision`, over all chunks that were cited.
    """
    cases = [Case(row["query"], row["document"]) for row in json_lines(questions, "query", "document")]
    families = [case.family for case in cases]
    if len(set(families)) < 2 or min(families.count(family) for family in families) < 2:
        raise MalformedInput(f"{questions} must have two families or more, each with two questions or more.")
    if not all(case.question.strip() for case in cases):
        raise MalformedInput(f"{questions} has an empty `query`: leave out its line.")
    with threadpool_limits(1):  # matrices this small lose by threads, and latencies jump
        results = {lexicon: _results(cases, lexicon) for lexicon in lexicons}
    return {
        "measure": "ccf",
        "engine": ENGINE,
        "seed": SEED,
        "cases": len(cases),
        "families": {family: families.count(family) for family in sorted(set(families))},
        "lexicons": {lexicon: lexicon.label for lexicon in lexicons},
        "results": results,
    }


COLUMNS = (
    *("method", "R@1", "R@3", "R@5", "R@10", "MRR", "correct", "correct 95 %", "cited right", "hallucinated"),
    *("hallucinated 95 %", "coverage", "of answered", "p50 ms", "p95 ms", "CPU p95", "tokens"),
)


def print_table(figures: Mapping[str, Any], console: Console) -> None:
    for lexicon, results in figures["results"].items():
        title = f"{figures['cases']} questions; lexicon {lexicon}: {figures['lexicons'][lexicon]}"
        rows = [
            (
                name,
                *(f"{row[key]:.3f}" for key in ("recall@1", "recall@3", "recall@5", "recall@10", "mrr")),
                f"{row['correctness']:.3f}",
                _interval(row["correctness_ci"]),
                f"{row['citation_precision']:.3f}",
                f"{row['hallucination']:.3f}",
                _interval(row["hallucination_ci"]),
                *(f"{row[key]:.3f}" for key in ("coverage", "hallucination_answered")),
                *(f"{row[key]:.1f}" for key in ("p50_ms", "p95_ms", "cpu_p95_ms")),
                f"{row['tokens_mean']:.0f}",
            )
            for name, row in results.items()
        ]
        print_rows(console, COLUMNS, rows, title)
        gain, interval = results["plumbline"]["gain"], _interval(results["plumbline"]["gain_ci"])
        console.print(f"plumbline − {BASELINE}: {gain:+.3f} correct ({interval}).", highlight=False)
        if "ece" in results["plumbline"]:
            row = results["plumbline"]
            error = f"{row['ece']:.3f} ({_interval(row['ece_ci'])}; by chance alone {row['ece_floor']:.3f})"
            console.print(f"Calibration error of plumbline's answers: {error}.", highlight=False)


def _results(cases: Sequence[Case], lexicon: Lexicon) -> dict[str, Any]:
    outcomes: dict[str, list[Outcome]] = {}
    for spot, (case, choices) in enumerate(zip(cases, chosen(cases, lexicon), strict=True)):
        rest = [*cases[:spot], *cases[spot + 1 :]]
        with ingested(rest, lexicon, choices) as plumbline:
            for name, method in _methods(rest, lexicon, plumbline).items():
                outcomes.setdefault(name, []).append(_outcome(method, case))
    results = {name: _figures(rows) for name, rows in outcomes.items()}
    gains = [
        float(ours.correct) - float(theirs.correct)
        for ours, theirs in zip(outcomes["plumbline"], outcomes[BASELINE], strict=True)
    ]
    results["plumbline"] |= {"gain": round(float(np.mean(gains)), 4), "gain_ci": bootstrap_interval(gains)}
    return results


def _methods(cases: Sequence[Case], lexicon: Lexicon, plumbline: Plumbline) -> dict[str, Method]:
    """Every method, fitted to these cases alone."""
    keywords = Keywords.chosen(lexicon, cases)
    paper = PaperMethods(silver_corpus(cases, keywords.lists()), keywords)
    return {
        "bm25": paper.bm25,
        "dense_svd": paper.dense_svd,
        "hybrid": paper.hybrid,
        "hybrid_reranker": paper.hybrid_reranker,
        BASELINE: paper.evidence_chain,
        "plumbline": plumbline.reply,
        "plumbline_selective": plumbline.selective_reply,
    }


def _outcome(method: Method, case: Case) -> Outcome:
    started, spent = time.perf_counter(), time.process_time()
    reply = method(case.question)
    return _judged(reply, case, 1000 * (time.perf_counter() - started), 1000 * (time.process_time() - spent))


def _judged(reply: Reply, case: Case, milliseconds: float, cpu: float) -> Outcome:
    right = [chunk.family == case.family for chunk in reply.ranking]
    return Outcome(
        rank=right.index(True) + 1 if any(right) else np.inf,
        answered=bool(reply.family),
        correct=reply.family == case.family,
        cited=len(reply.cited),
        cited_right=sum(chunk.family == case.family for chunk in reply.cited),
        tokens=sum(len(tokens(text)) for text in (case.question, *(chunk.text for chunk in reply.cited))),
        milliseconds=milliseconds,
        cpu=cpu,
        probability=reply.probability,
    )


def _figures(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    rates = {f"recall@{cutoff}": [float(row.rank <= cutoff) for row in outcomes] for cutoff in CUTOFFS}
    rates |= {
        "mrr": [1 / row.rank for row in outcomes],
        "correctness": [float(row.correct) for row in outcomes],
        "hallucination": [float(row.hallucinated) for row in outcomes],
        "coverage": [float(row.answered) for row in outcomes],
    }
    figures: dict[str, Any] = {}
    for name, values in rates.items():
        figures |= {name: round(float(np.mean(values)), 4), f"{name}_ci": bootstrap_interval(values)}
    answered = [row for row in outcomes if row.answered]
    median, high = np.percentile([[row.milliseconds, row.cpu] for row in outcomes], [50, 95], axis=0).tolist()
    return figures | {
        "citation_precision": _share(sum(row.cited_right for row in answered), sum(row.cited for row in answered)),
        "hallucination_answered": _share(sum(row.hallucinated for row in answered), len(answered)),
        "p50_ms": round(median[0], 3),
        "p95_ms": round(high[0], 3),
        "cpu_p50_ms": round(median[1], 3),
        "cpu_p95_ms": round(high[1], 3),
        "tokens_mean": round(float(np.mean([row.tokens for row in outcomes])), 1),
        **_calibration(outcomes),
    }


def _calibration(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """How true the probabilities of answers are: the expected calibration error beside what chance alone would make of
    as many, the Brier score, and the risk–coverage curve. Empty for a method without probabilities.
    """
    sure = [(row.probability, float(row.correct)) for row in outcomes if row.answered and row.probability is not None]
    if not sure:
        return {}
    probabilities, correct = (np.array(column, np.float64) for column in zip(*sure, strict=True))
    curve = risk_coverage(probabilities, correct)
    return {
        "ece": round(ece(probabilities, correct), 4),
        "ece_ci": rounded(ece_interval(probabilities, correct)),
        "ece_floor": round(ece_floor(probabilities), 4),
        "brier": round(brier(probabilities, correct), 4),
        "risk_coverage": [
            {"coverage": round(float(coverage), 4), "risk": round(float(risk), 4)}
            for coverage, risk in zip(curve.coverage, curve.risk, strict=True)
        ],
    }


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0


def _interval(bounds: Sequence[float]) -> str:
    low, high = bounds
    return f"{low:.2f}–{high:.2f}"
