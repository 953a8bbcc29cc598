"""The commands of `plumbline eval`. Heavy modules are imported only when needed."""

from __future__ import annotations

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
JsonFile = Annotated[Path | None, typer.Option("--json", help="Write the figures to this file.")]


def report_figures(
    figures: dict[str, Any], print_table: Callable[[dict[str, Any], Console], None], json_file: Path | None
) -> None:
    from bot.evaluation.report import write_json

    print_table(figures, out)
    write_json(figures, json_file)


@evaluations.command("answers")
def eval_answers(
    questions: Annotated[
        Path,
        typer.Option(
            help="JSON lines with `question` and `key`, a regular expression for the answer; null: no document answers."
        ),
    ],
    corpus: Corpus,
    embeddings: Embeddings = EMBEDDED,
    sample: Annotated[int, typer.Option(min=0, help="Number of questions to draw; 0 means all.")] = 0,
    llm: Llm = "",
    record: Record = None,
    replay: Replay = None,
    json_file: JsonFile = None,
) -> None:
    """Measure whether answers state what was asked, and are withheld if no document says it."""
    from bot.evaluation.answers import print_table, run
    from bot.evaluation.report import recorded_model
    from bot.wiring.application import embedder

    figures = run(questions, corpus, embedder(embeddings), recorded_model(llm, record, replay), sample)
    report_figures(figures, print_table, json_file)


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
    json_file: JsonFile = None,
) -> None:
    """Measure whether an incident reaches the team that owns it, and after how many hops."""
    from bot.evaluation.report import recorded_model
    from bot.evaluation.triage import print_table, run
    from bot.wiring.application import embedder

    with out.status("Learning from the first part.") as status:
        figures = run(
            train,
            test,
            folds,
            lambda part: status.update(f"Part {part} is measured."),
            embedder(embeddings),
            recorded_model(llm, record, replay),
            sample,
        )
    report_figures(figures, print_table, json_file)
