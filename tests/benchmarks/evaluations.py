"""The commands of the benchmarks that measure decisions of the product. Heavy modules are imported only when needed."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Annotated, Any

import typer

from bot.config.settings import EMBEDDED
from bot.evaluation.commands import Corpus, Embeddings, JsonFile, Llm, Record, Replay, out, report_figures

evaluations = typer.Typer(no_args_is_help=True)
simulations = typer.Typer(
    no_args_is_help=True,
    help="Measure a simulated language model of known skill as `plumbline eval` measures a real one.",
)
evaluations.add_typer(simulations, name="simulate")

Simulate = Annotated[
    float | None,
    typer.Option(
        min=0.0, max=1.0, help="Measure a simulated model that is right with this probability, instead of a server."
    ),
]
Right = Annotated[float, typer.Option(min=0.0, max=1.0, help="Probability that the simulated model is right.")]
Keyed = Annotated[Path, typer.Option(help="JSON lines with `question` and `key`, a regular expression for the answer.")]
Recorded = Annotated[Path, typer.Option(help="JSON lines with `question`, `observations` and `keys`; .gz and .xz too.")]
Train = Annotated[Path, typer.Option(help="Past tickets: JSON lines with `title`, `body`, `owner`; .gz too.")]
Test = Annotated[
    Path | None, typer.Option(help="The tickets to assign; default: cross-validation over the past tickets.")
]
Folds = Annotated[int, typer.Option(min=2, help="Number of folds for cross-validation.")]
Sample = Annotated[int, typer.Option(min=0, help="Number of cases to draw; 0 means all.")]


@simulations.command("answers")
def simulate_answers(
    questions: Keyed,
    corpus: Corpus,
    right: Right,
    embeddings: Embeddings = EMBEDDED,
    sample: Sample = 0,
    json_file: JsonFile = None,
) -> None:
    """Measure whether answers state what was asked, with a model that errs as models do."""
    from bot.evaluation.answers import cases_of, print_table, run
    from bot.wiring.application import embedder
    from tests.benchmarks.asked_model import AskedModel, truth_of

    model = AskedModel(simulate=right).opened(map(truth_of, cases_of(questions, sample)))
    report_figures(run(questions, corpus, embedder(embeddings), model, sample), print_table, json_file)


@simulations.command("triage")
def simulate_triage(
    train: Train,
    right: Right,
    test: Test = None,
    folds: Folds = 5,
    embeddings: Embeddings = "none",
    sample: Sample = 0,
    json_file: JsonFile = None,
) -> None:
    """Measure whether an incident reaches the team that owns it, with a model that plays the teams' agents."""
    from bot.evaluation.triage import as_incident, print_table, run, tickets_of
    from bot.wiring.application import embedder
    from tests.benchmarks.asked_model import simulated_teams

    owners = {as_incident(each.title, each.body).description: each.owner for each in tickets_of(test or train)}
    with out.status("Learning from the first part."):
        figures = run(
            train, test, folds, embedder=embedder(embeddings), llm=simulated_teams(owners, right), sample=sample
        )
    report_figures(figures, print_table, json_file)


@simulations.command("rca")
def simulate_rca(
    cases: Recorded,
    right: Right,
    json_file: JsonFile = None,
) -> None:
    """Measure whether recorded tool outputs lead to the cause, with a model that calls the recorded tools."""
    from tests.benchmarks.rca_engines import print_table
    from tests.benchmarks.simulated_rca import run

    report_figures(asyncio.run(run(cases, right)), print_table, json_file)


@evaluations.command("answers")
def answers(
    questions: Keyed, corpus: Corpus, embeddings: Embeddings = EMBEDDED, sample: Sample = 0, json_file: JsonFile = None
) -> None:
    """Measure `plumbline eval answers` beside plain BM25."""
    from bot.evaluation.answers import cases_of, print_table, run
    from bot.wiring.application import embedder
    from tests.benchmarks.answer_baselines import beside

    figures = run(questions, corpus, embedder(embeddings), sample=sample)
    report_figures(beside(figures, cases_of(questions, sample), corpus), print_table, json_file)


@evaluations.command("search")
def search(
    questions: Annotated[Path, typer.Option(help="JSON lines with `question` and `gold_doc`.")],
    corpus: Corpus,
    unanswerable: Annotated[
        Path | None, typer.Option(help="JSON lines with a `question` that no document answers.")
    ] = None,
    embeddings: Embeddings = EMBEDDED,
    json_file: JsonFile = None,
) -> None:
    """Measure whether the search finds the document that answers."""
    from bot.wiring.application import embedder
    from tests.benchmarks.search import print_table, run

    report_figures(run(questions, corpus, unanswerable, embedder(embeddings)), print_table, json_file)


@evaluations.command("withheld")
def withheld(
    questions: Annotated[Path, typer.Option(help="JSON lines with `question`, `answer` and `gold_doc`.")],
    corpus: Corpus,
    embeddings: Embeddings = EMBEDDED,
    json_file: JsonFile = None,
) -> None:
    """Measure whether answers are supported by their source, and withheld without it."""
    from bot.wiring.application import embedder
    from tests.benchmarks.withheld import print_table, run

    report_figures(run(questions, corpus, embedder(embeddings)), print_table, json_file)


@evaluations.command("owners")
def owners(
    train: Train,
    test: Test = None,
    folds: Folds = 5,
    embeddings: Embeddings = "none",
    sample: Sample = 0,
    json_file: JsonFile = None,
) -> None:
    """Measure `plumbline eval triage` beside the baselines of Triangle's table 1 and a linear SVM."""
    from bot.evaluation.triage import print_table, run, splits_of
    from bot.wiring.application import embedder
    from tests.benchmarks.triage_baselines import beside

    with out.status("Learning from the first part.") as status:
        figures = run(
            train,
            test,
            folds,
            lambda part: status.update(f"Part {part} is measured."),
            embedder(embeddings),
            sample=sample,
        )
        status.update("The baselines are measured.")
        figures = beside(figures, splits_of(train, test, folds, sample))
    report_figures(figures, print_table, json_file)


@evaluations.command("rca")
def rca(
    cases: Recorded, llm: Llm = "", record: Record = None, replay: Replay = None, json_file: JsonFile = None
) -> None:
    """Measure whether recorded tool outputs lead to the cause, beside a search for words of failures."""
    from bot.evaluation.report import recorded_model
    from tests.benchmarks.rca_baseline import beside
    from tests.benchmarks.rca_engines import print_table, run

    async def measured() -> dict[str, Any]:
        return await beside(await run(cases, recorded_model(llm, record, replay)), cases)

    report_figures(asyncio.run(measured()), print_table, json_file)


@evaluations.command("calibration")
def calibration(
    file: Annotated[
        Path, typer.Option("--csv", help="Answers with `llm`, `qset`, `stated_confidence`, `correct`; .gz too.")
    ],
    json_file: JsonFile = None,
) -> None:
    """Measure whether percentages are calibrated and separate right from wrong."""
    from tests.benchmarks.calibration import print_table, run

    report_figures(run(file), print_table, json_file)


@evaluations.command("confidence")
def confidence(
    questions: Keyed,
    corpus: Corpus,
    embeddings: Embeddings = "none",
    llm: Llm = "",
    record: Record = None,
    replay: Replay = None,
    simulate: Simulate = None,
    json_file: JsonFile = None,
) -> None:
    """Measure how well calibrated a language model's judgement of answers is (LM-PACE, table 2)."""
    from bot.wiring.application import embedder
    from tests.benchmarks.asked_model import AskedModel
    from tests.benchmarks.confidence import print_table, run

    figures = run(questions, corpus, embedder(embeddings), AskedModel(llm, record, replay, simulate))
    report_figures(figures, print_table, json_file)


@evaluations.command("privacy")
def privacy(
    cases: Annotated[Path, typer.Option(help="Labelled JSON lines; the first names the people that the source knows.")],
    json_file: JsonFile = None,
) -> None:
    """Measure whether everything confidential is removed from documents, and nothing else."""
    from tests.benchmarks.privacy import print_table, run

    report_figures(run(cases), print_table, json_file)


@evaluations.command("clusters")
def clusters(
    cases: Annotated[Path, typer.Option(help="JSON lines of Cloud-OpsBench, plain, .gz or .xz.")],
    llm: Llm = "",
    record: Record = None,
    replay: Replay = None,
    simulate: Simulate = None,
    sample: Sample = 0,
    json_file: JsonFile = None,
) -> None:
    """Measure whether the object and the type of a fault are named, from snapshots of a Kubernetes cluster."""
    from tests.benchmarks.asked_model import AskedModel
    from tests.benchmarks.cloud_opsbench import print_table, run

    figures = asyncio.run(run(cases, AskedModel(llm, record, replay, simulate), sample))
    report_figures(figures, print_table, json_file)


@evaluations.command("incidents")
def incidents(
    cases: Annotated[Path | None, typer.Option(help="A folder with a folder for each incident.")] = None,
    generate: Annotated[int, typer.Option(min=0, help="Generate this many incidents instead.")] = 0,
    seed: Annotated[int, typer.Option(help="Seed of the generated incidents.")] = 1,
    without: Annotated[
        list[str] | None, typer.Option(help="Ignore diffs, paths, messages, metrics, graph or logs; repeatable.")
    ] = None,
    llm: Llm = "",
    record: Record = None,
    replay: Replay = None,
    simulate: Simulate = None,
    json_file: JsonFile = None,
) -> None:
    """Measure whether the change that caused an incident is named first."""
    from tests.benchmarks.asked_model import AskedModel
    from tests.benchmarks.incidents import ABLATIONS, invented, print_table, run

    if (cases is None) == (generate == 0):
        raise typer.BadParameter("Give either --cases or --generate.")
    if unknown := set(without or ()) - set(ABLATIONS):
        raise typer.BadParameter(f"--without accepts {', '.join(ABLATIONS)}, not {', '.join(sorted(unknown))}.")
    model = AskedModel(llm, record, replay, simulate)
    if cases is not None:
        figures = run(cases, without or (), model)
    else:
        with invented(generate, seed) as folder:
            figures = run(folder, without or (), model)
    report_figures(figures, print_table, json_file)


@evaluations.command("pages")
def pages(
    incidents: Annotated[
        Path | None,
        typer.Option(help="JSON lines with the fields in docs/badges.md; default: the sample company's incidents."),
    ] = None,
    generate: Annotated[int, typer.Option(min=0, help="Add this many generated incidents, including storms.")] = 0,
    cold_start: Annotated[
        bool, typer.Option(help="Learn nothing from the incidents: judge as on the first day.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of the generated incidents.")] = 1,
    hold_below: Annotated[float, typer.Option(min=0, max=0.2, help="As in `paging` of plumbline.yaml.")] = 0.05,
    show: Annotated[int, typer.Option(min=0, help="Print this many judgements, as the person on call reads them.")] = 0,
    json_file: JsonFile = None,
) -> None:
    """Measure how well it is predicted, when an incident begins, whether it needs a person."""
    from bot.commands.demo import SAMPLE_COMPANY
    from tests.benchmarks import pages

    recorded = pages.load(incidents or SAMPLE_COMPANY / "incidents.jsonl") if incidents or not generate else []
    episodes = [*recorded, *pages.generate(generate, seed, recorded)]
    figures, judged = pages.run(episodes, hold_below, cold=cold_start)
    report_figures(figures, pages.print_table, json_file)
    texts = [pages.shown(each) for each in judged]
    for text in random.Random(seed).sample(texts, min(show, len(texts))):
        out.print(text, highlight=False)
