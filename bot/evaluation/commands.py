"""The commands of `plumbline eval`. Heavy modules are imported only when needed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from bot.config.settings import EMBEDDED

evaluations = typer.Typer(no_args_is_help=True, help="Measure Plumbline on files of your own.")

out = Console()

Corpus = Annotated[list[Path], typer.Option(help="JSON lines with `path` and `text`, plain or .gz; repeatable.")]
Embeddings = Annotated[
    str,
    typer.Option(
        help="The embedded model; `none`; or a sentence-transformers model's name or folder (extra `embeddings`)."
    ),
]
Llm = Annotated[str, typer.Option(help="Address of a llama.cpp server that is measured as well.")]
Record = Annotated[
    Path | None, typer.Option(help="Record its replies in this file, and reuse those that it already contains.")
]
Replay = Annotated[Path | None, typer.Option(help="Take the replies from this file instead of a server.")]
Simulate = Annotated[
    float | None,
    typer.Option(
        min=0.0, max=1.0, help="Measure a simulated model that is right with this probability, instead of a server."
    ),
]
JsonFile = Annotated[Path | None, typer.Option("--json", help="Write the figures to this file.")]


def _report(
    figures: dict[str, Any], print_table: Callable[[dict[str, Any], Console], None], json_file: Path | None
) -> None:
    from bot.evaluation.report import write_json

    print_table(figures, out)
    write_json(figures, json_file)


@evaluations.command("retrieval")
def eval_retrieval(
    questions: Annotated[Path, typer.Option(help="JSON lines with `question` and `gold_doc`.")],
    corpus: Corpus,
    unanswerable: Annotated[
        Path | None, typer.Option(help="JSON lines with a `question` that no document answers.")
    ] = None,
    embeddings: Embeddings = EMBEDDED,
    json_file: JsonFile = None,
) -> None:
    """Measure whether the search finds the document that answers."""
    from bot.evaluation.retrieval import print_table, run
    from bot.wiring.application import embedder

    _report(run(questions, corpus, unanswerable, embedder(embeddings)), print_table, json_file)


@evaluations.command("answers")
def eval_answers(
    questions: Annotated[
        Path,
        typer.Option(
            help="JSON lines with `question` and `key`, a regular expression for the answer (null: no document answers); "
            "or with `question`, `answer` and `gold_doc`."
        ),
    ],
    corpus: Corpus,
    embeddings: Embeddings = EMBEDDED,
    sample: Annotated[int, typer.Option(min=0, help="Number of questions with `key` to draw; 0 means all.")] = 0,
    llm: Llm = "",
    record: Record = None,
    replay: Replay = None,
    simulate: Simulate = None,
    json_file: JsonFile = None,
) -> None:
    """Measure whether answers state what was asked, are supported by their source, and are withheld without one."""
    from bot.evaluation import answers, stated_answers
    from bot.evaluation.recorded import Recorded
    from bot.evaluation.report import json_lines
    from bot.wiring.application import embedder

    if "key" in json_lines(questions, "question")[0]:
        figures = stated_answers.run(
            questions, corpus, embedder(embeddings), Recorded(llm, record, replay, simulate), sample
        )
        _report(figures, stated_answers.print_table, json_file)
    elif llm or replay or simulate is not None:
        raise typer.BadParameter("A language model is measured on questions with `key`.")
    else:
        _report(answers.run(questions, corpus, embedder(embeddings)), answers.print_table, json_file)


@evaluations.command("confidence")
def eval_confidence(
    questions: Annotated[
        Path, typer.Option(help="JSON lines with `question` and `key`, a regular expression for the answer.")
    ],
    corpus: Corpus,
    embeddings: Embeddings = "none",
    llm: Llm = "",
    record: Record = None,
    replay: Replay = None,
    simulate: Simulate = None,
    json_file: JsonFile = None,
) -> None:
    """Measure how well calibrated a language model's judgement of answers is (LM-PACE, table 2)."""
    from bot.evaluation.confidence import print_table, run
    from bot.evaluation.recorded import Recorded
    from bot.wiring.application import embedder

    figures = run(questions, corpus, embedder(embeddings), Recorded(llm, record, replay, simulate))
    _report(figures, print_table, json_file)


@evaluations.command("privacy")
def eval_privacy(
    cases: Annotated[Path, typer.Option(help="Labelled JSON lines; the first names the people that the source knows.")],
    json_file: JsonFile = None,
) -> None:
    """Measure whether everything confidential is removed from documents, and nothing else."""
    from bot.evaluation.privacy import print_table, run

    _report(run(cases), print_table, json_file)


@evaluations.command("triage")
def eval_triage(
    train: Annotated[Path, typer.Option(help="Past tickets: JSON lines with `title`, `body`, `owner`; .gz too.")],
    test: Annotated[
        Path | None, typer.Option(help="The tickets to assign; default: cross-validation over the past tickets.")
    ] = None,
    folds: Annotated[int, typer.Option(min=2, help="Number of folds for cross-validation.")] = 5,
    embeddings: Embeddings = "none",
    sample: Annotated[int, typer.Option(min=0, help="Number of tickets to draw; 0 means all.")] = 0,
    llm: Llm = "",
    record: Record = None,
    replay: Replay = None,
    simulate: Simulate = None,
    json_file: JsonFile = None,
) -> None:
    """Measure whether an incident reaches the team that owns it, and after how many hops."""
    from bot.evaluation.recorded import Recorded
    from bot.evaluation.triage import print_table, run
    from bot.wiring.application import embedder

    with out.status("Learning from the first part.") as status:
        figures = run(
            train,
            test,
            folds,
            lambda part: status.update(f"Part {part} is measured."),
            embedder(embeddings),
            Recorded(llm, record, replay, simulate),
            sample,
        )
    _report(figures, print_table, json_file)


@evaluations.command("calibration")
def eval_calibration(
    file: Annotated[
        Path, typer.Option("--csv", help="Answers with `llm`, `qset`, `stated_confidence`, `correct`; .gz too.")
    ],
    json_file: JsonFile = None,
) -> None:
    """Measure whether percentages are calibrated and separate right from wrong."""
    from bot.evaluation.calibration import print_table, run

    _report(run(file), print_table, json_file)


@evaluations.command("rca")
def eval_rca(
    cases: Annotated[
        Path,
        typer.Option(
            help="JSON lines with `question`, `observations` and `keys`, or of Cloud-OpsBench; .gz and .xz too."
        ),
    ],
    llm: Llm = "",
    record: Record = None,
    replay: Replay = None,
    simulate: Simulate = None,
    sample: Annotated[int, typer.Option(min=0, help="Number of cases of Cloud-OpsBench to draw; 0 means all.")] = 0,
    json_file: JsonFile = None,
) -> None:
    """Measure whether recorded tool outputs lead to the cause, and whether the quoted lines show it."""
    from bot.evaluation import cloud_opsbench
    from bot.evaluation.rca import print_table, run
    from bot.evaluation.recorded import Recorded

    asked = Recorded(llm, record, replay, simulate)
    if cloud_opsbench.is_snapshots(cases):
        _report(asyncio.run(cloud_opsbench.run(cases, asked, sample)), cloud_opsbench.print_table, json_file)
    else:
        _report(asyncio.run(run(cases, asked)), print_table, json_file)


@evaluations.command("incidents")
def eval_incidents(
    cases: Annotated[Path | None, typer.Option(help="A folder with a folder for each incident.")] = None,
    generate: Annotated[int, typer.Option(min=0, help="Generate this many incidents instead; needs a checkout.")] = 0,
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
    from bot.evaluation.incidents import ABLATIONS, invented, print_table, run
    from bot.evaluation.recorded import Recorded

    if (cases is None) == (generate == 0):
        raise typer.BadParameter("Give either --cases or --generate.")
    if unknown := set(without or ()) - set(ABLATIONS):
        raise typer.BadParameter(f"--without accepts {', '.join(ABLATIONS)}, not {', '.join(sorted(unknown))}.")
    asked = Recorded(llm, record, replay, simulate)
    if cases is not None:
        figures = run(cases, without or (), asked)
    else:
        with invented(generate, seed) as folder:
            figures = run(folder, without or (), asked)
    _report(figures, print_table, json_file)


@evaluations.command("pages")
def eval_pages(
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
    import random

    from bot.commands.demo import SAMPLE_COMPANY
    from bot.evaluation import pages

    recorded = pages.load(incidents or SAMPLE_COMPANY / "incidents.jsonl") if incidents or not generate else []
    episodes = [*recorded, *pages.generate(generate, seed, recorded)]
    figures, judged = pages.run(episodes, hold_below, cold=cold_start)
    _report(figures, pages.print_table, json_file)
    texts = [pages.shown(each) for each in judged]
    for text in random.Random(seed).sample(texts, min(show, len(texts))):
        out.print(text, highlight=False)
