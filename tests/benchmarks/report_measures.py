"""The measures on public data: the command of each, and what is told of its data and of what was tuned on it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from bot.config.settings import EMBEDDED
from tests.benchmarks import report_tables as tables
from tests.benchmarks.report_tables import Figures, Headline

ROOT = Path(__file__).parents[2]


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
    headline: Callable[[Figures], Iterable[Headline]] | None = None
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


def _answers_tuned() -> str:
    fit = json.loads((ROOT / "core" / "answering" / "certainty.json").read_text(encoding="utf-8"))[EMBEDDED]
    kept = fit["out_of_fold"]
    origins = "; ".join(
        f"{name} {each['right']} of {each['strong']} right, at a share of {each['share']:.2f}"
        for name, each in kept["origins"].items()
    )
    return (
        f"Whether to answer, and whether to call it certain, is fitted on {fit['fitted_on']} of four origins. Judged by a fit "
        f"that saw neither the origin nor its way of asking, {kept['strong_share']:.2f} of the answers are certain and "
        f"{kept['strong_precision']:.2f} of these right ({origins}). How an excerpt is chosen was developed with these "
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
        "python -m tests.benchmarks answers --questions DATA/real-qa/questions.jsonl --corpus DATA/real-qa/corpus-ops.jsonl.gz "
        "--corpus DATA/real-qa/corpus-runbooks.jsonl.gz",
        tables.answers,
    ),
    Measure(
        "answers-2",
        "Answers, the second set",
        "The same on documentation of other tools.",
        "100 questions on cert-manager, External Secrets, Velero, Traefik, Kyverno, Helm and the runbooks of two "
        "organisations (`real-qa-2`); 20 have no answer there.",
        "It was held back until the third edition, which was developed with it at hand.",
        "python -m tests.benchmarks answers --questions DATA/real-qa-2/questions.jsonl --corpus DATA/real-qa-2/corpus-tools.jsonl.gz "
        "--corpus DATA/real-qa-2/corpus-company.jsonl.gz",
        tables.answers,
        tables.answers_headline,
    ),
    Measure(
        "retrieval",
        "Finding the runbook of an alert",
        "Is the page found that belongs to an alert?",
        "99 alerts of kube-prometheus, 119 runbook pages of prometheus-operator, and 26 alerts without a page "
        "(`alert-runbooks`, Apache-2.0).",
        "How words are split and weighted was developed with these alerts at hand.",
        "python -m tests.benchmarks search --questions DATA/alert-runbooks/questions.jsonl "
        "--corpus DATA/alert-runbooks/corpus.jsonl --unanswerable DATA/alert-runbooks/unanswerable.jsonl",
        tables.retrieval,
    ),
    Measure(
        "masked-retrieval",
        "The same with the alert's name taken out",
        "Is the page found by what the alert says alone?",
        "The same alerts and pages without the names (`alert-runbooks`).",
        "How words are split and weighted was developed with these alerts at hand.",
        "python -m tests.benchmarks search --questions DATA/alert-runbooks/questions-masked.jsonl "
        "--corpus DATA/alert-runbooks/corpus-masked.jsonl --unanswerable DATA/alert-runbooks/unanswerable-masked.jsonl",
        tables.retrieval,
    ),
    Measure(
        "faq",
        "Finding the page of a question",
        "Is the page found that answers an FAQ?",
        "118 headings of FAQs and 1,968 pages of Kubernetes, Prometheus, cert-manager and etcd (`docs-faq`, Apache-2.0 and "
        "CC-BY-4.0), the headings themselves taken out.",
        "How words are split and weighted was developed with these questions at hand.",
        "python -m tests.benchmarks search --questions DATA/docs-faq/questions.jsonl --corpus DATA/docs-faq/corpus.jsonl.gz",
        tables.retrieval,
    ),
    Measure(
        "incidents",
        "The change that broke it",
        "Is the change named first that broke it, or that no change did?",
        "200 incidents that `tests/evaluation/generate_incidents.py` invents: 14 classes of fault, with decoys.",
        "The weights are fitted to the classes marked as developed on; the first row is of the others. The incidents are "
        "inventions of ours, so that real ones will be harder. The command has no baseline.",
        "python -m tests.benchmarks incidents --generate 200 --seed 1",
        tables.incidents,
        tables.incidents_headline,
    ),
    Measure(
        "rca",
        "The cause from recorded tool outputs",
        "Does the stated cause hold the key fact?",
        "31 gradable Kubernetes cases with recorded outputs, 18 of them root causes: the evaluation fixtures of HolmesGPT "
        "(`rca-cases`, Apache-2.0).",
        "No weight is fitted to these cases; the rules that read tool outputs were developed with them at hand.",
        "python -m tests.benchmarks rca --cases DATA/rca-cases/cases.jsonl.gz",
        tables.rca,
    ),
    Measure(
        "clusters",
        "The fault in a cluster",
        "Are the object and the type of the fault named?",
        "120 snapshots of a Kubernetes cluster with recorded outputs, each with one of 40 faults (LLM4Ops/Cloud-OpsBench, MIT).",
        "The rules that read the state of a cluster were developed with these snapshots at hand. Of the types that had not "
        "been looked at, they named object and type in 0.80 at first sight; of 111 snapshots of another system, written without "
        "knowledge of the rules, in 0.78.",
        "python -m tests.benchmarks clusters --cases DATA/cloud-opsbench/boutique.jsonl.xz",
        tables.clusters,
    ),
    Measure(
        "worlds",
        "Ordinary clusters, healthy and faulty",
        "Is no cause named where nothing is wrong, and the right one where one thing is?",
        "76 healthy namespaces and 43 faulty twins of them (`tests/worlds`), read through the readers, as outputs of tools in "
        "text and in JSON, and as pasted text with and without prompts.",
        "The engine was developed with these worlds at hand, which are inventions of ours, so that real ones will be harder. "
        "Thirty other pairs were written without knowledge of the rules: at first sight a cause was named in 0.03 (readers) to "
        "0.20 (text) of the healthy ones, and the right one in 0.50 (pasted) to 0.80 (text) of the twins. Mended by these, the "
        "engine named one in 0 (text) to 0.10 (pasted) of thirty more, and the right one in 0.43 (pasted) to 0.83 (readers).",
        "python -m tests.benchmarks worlds",
        tables.worlds,
        omitted=("wrong",),
    ),
    Measure(
        "cause-grades",
        "What the grade of a cause means",
        "What share of the causes of each grade is right?",
        "200 invented incidents, of the classes that were not developed on, and the two sets of recorded outputs.",
        "The grades are those of the product. In the last column, the grade “strong” begins where nine in ten causes of the two "
        "other sets are right.",
        "python -m tests.benchmarks cause-grades --data DATA --generate 200 --seed 1",
        tables.cause_grades,
    ),
    Measure(
        "telemetry",
        "The service at fault, from metrics alone",
        "Is the service named that a fault was injected into?",
        "36 test issues of low and high traffic of PetShop (amazon-science/petshop-root-cause-analysis, CC-BY-4.0).",
        "No weight is fitted to PetShop; the method was developed with it at hand.",
        "python -m tests.benchmarks telemetry --cases ARCHIVE",
        tables.telemetry,
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
        tables.ci_logs,
        tables.ci_logs_headline,
    ),
    Measure(
        "triage",
        "The owner of a ticket",
        "Does a ticket reach the team that owns it?",
        "6,780 tickets of 74 groups (Automatic Ticket Assignment), in five folds by normalised text.",
        "Everything is fitted within the training folds.",
        "python -m tests.benchmarks owners --train DATA/itsm-tickets/tickets.jsonl.gz",
        tables.triage,
        tables.triage_headline,
        quick=False,
    ),
    Measure(
        "calibration",
        "Percentages that come true",
        "How far are stated percentages from what came true, before and after the map that badges use?",
        "72,185 answers of 11 language models on 5 sets of questions (NoamMichael/Comparing-Confidence-in-LLMs, MIT).",
        "Fitted on one half of each group and measured on the other, ten times.",
        "python -m tests.benchmarks calibration --csv DATA/llm-confidence/llm-confidence-correct.csv.gz",
        tables.calibration,
        omitted=("results", "simulated"),
        quick=False,
    ),
    Measure(
        "privacy",
        "What must not be indexed",
        "Is everything taken out that must not be indexed, and nothing else?",
        "283 lines of our own, made up, in the repository.",
        "The patterns were developed with these lines at hand.",
        "python -m tests.benchmarks privacy --cases tests/evaluation/data/privacy.jsonl",
        tables.privacy,
    ),
    Measure(
        "ccf",
        "The right manual, in Chinese",
        "Is the right one of four families of manuals named?",
        "103 questions of the CCF International AIOps Challenge 2024 (`ccf-aiops-2024`), one left out at a time, without lists "
        "of keywords.",
        "Settings are chosen without the question that is asked. The other rows are the methods of Evidence-Chain RAG.",
        "python -m tests.benchmarks ccf --questions DATA/ccf-aiops-2024/questions.jsonl --lexicon none",
        tables.ccf,
        quick=False,
    ),
    Measure(
        "log-templates",
        "Log lines of one statement",
        "Are the messages of one statement grouped together, and only those?",
        "13 systems with 2,000 lines each (logpai/loghub).",
        "Settings were developed with these systems at hand.",
        "python -m tests.benchmarks log-templates --logs ARCHIVE",
        tables.log_templates,
        archive="loghub-2k/loghub-2k.tar.xz",
    ),
    Measure(
        "footprint",
        "Time and memory",
        "How long does it take to start and to answer, and how much memory does an idle bot hold?",
        "The sample company in the repository: 290 documents, with Slack and Teams loaded.",
        "Nothing. The figures depend on the machine and on what else runs there; yours will differ.",
        "python -m tests.benchmarks footprint",
        tables.footprint,
    ),
)
