"""`plumbline eval`: each command measures one thing on files of the user's own. What is heavy is imported when asked for."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from bot.evaluation.lexicon import Lexicon
from bot.evaluation.report import write_json

evaluations = typer.Typer(no_args_is_help=True, help="Measure Plumbline on files of your own.")

out = Console()

Embeddings = Annotated[
    str,
    typer.Option(
        help="`latent`; `words` (extra `words`); or a sentence-transformers model's name or folder (extra `embeddings`)."
    ),
]
JsonFile = Annotated[Path | None, typer.Option("--json", help="Write the figures to this file.")]


@evaluations.command("retrieval")
def eval_retrieval(
    questions: Annotated[Path, typer.Option(help="JSON lines with `question` and `gold_doc`.")],
    corpus: Annotated[list[Path], typer.Option(help="JSON lines with `path` and `text`, plain or .gz; repeatable.")],
    unanswerable: Annotated[
        Path | None, typer.Option(help="JSON lines with a `question` that has no document.")
    ] = None,
    embeddings: Embeddings = "latent",
    json_file: JsonFile = None,
) -> None:
    """Does the search find the document that answers?"""
    from bot.evaluation.retrieval import print_table, run
    from bot.wiring import embedder

    figures = run(questions, corpus, unanswerable, embedder(embeddings))
    print_table(figures, out)
    write_json(figures, json_file)


@evaluations.command("answers")
def eval_answers(
    questions: Annotated[Path, typer.Option(help="JSON lines with `question`, `answer` and `gold_doc`.")],
    corpus: Annotated[list[Path], typer.Option(help="JSON lines with `path` and `text`, plain or .gz; repeatable.")],
    json_file: JsonFile = None,
) -> None:
    """Does the source say what is said, and is it left unsaid where nothing answers?"""
    from bot.evaluation.answers import print_table, run

    figures = run(questions, corpus)
    print_table(figures, out)
    write_json(figures, json_file)


@evaluations.command("severity")
def eval_severity(
    incidents: Annotated[Path, typer.Option(help="JSON lines with `title` or `alert`, texts and `severity`.")],
    json_file: JsonFile = None,
) -> None:
    """How often is the severity that past incidents suggest the right one?"""
    from bot.evaluation.severity import print_figures, run

    figures = run(incidents)
    print_figures(figures, out)
    write_json(figures, json_file)


@evaluations.command("privacy")
def eval_privacy(
    cases: Annotated[Path, typer.Option(help="Labelled JSON lines, the people whom the source knows in the first.")],
    json_file: JsonFile = None,
) -> None:
    """Is everything taken out that must not be indexed, and nothing else?"""
    from bot.evaluation.privacy import print_table, run

    figures = run(cases)
    print_table(figures, out)
    write_json(figures, json_file)


@evaluations.command("ccf")
def eval_ccf(
    questions: Annotated[Path, typer.Option(help="JSON lines with `query` and `document`, the manual's family.")],
    lexicon: Annotated[
        list[Lexicon] | None, typer.Option(help="Keyword lists: none, mined or hand; repeatable. Default: all three.")
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """Does the evidence chain choose the right manual? The table of Evidence-Chain RAG."""
    from bot.evaluation.ccf import print_table, run

    figures = run(questions, lexicon or tuple(Lexicon))
    print_table(figures, out)
    write_json(figures, json_file)


@evaluations.command("triage")
def eval_triage(
    train: Annotated[Path, typer.Option(help="Past tickets: JSON lines with `title`, `body`, `owner`; .gz too.")],
    test: Annotated[
        Path | None, typer.Option(help="The tickets to be assigned; without it, parts of the past.")
    ] = None,
    folds: Annotated[int, typer.Option(min=2, help="Parts, each assigned by what the others say.")] = 5,
    embeddings: Embeddings = "latent",
    json_file: JsonFile = None,
) -> None:
    """Does an incident reach the team that owns it, and at which hop?"""
    from bot.evaluation.triage import print_table, run
    from bot.wiring import embedder

    with out.status("Learning from the first part.") as status:
        figures = run(train, test, folds, lambda part: status.update(f"Part {part} is measured."), embedder(embeddings))
    print_table(figures, out)
    write_json(figures, json_file)


@evaluations.command("calibration")
def eval_calibration(
    file: Annotated[
        Path, typer.Option("--csv", help="Answers with `llm`, `qset`, `stated_confidence`, `correct`; .gz too.")
    ],
    json_file: JsonFile = None,
) -> None:
    """Do percentages come true, and do they tell right from wrong?"""
    from bot.evaluation.calibration import print_table, run

    figures = run(file)
    print_table(figures, out)
    write_json(figures, json_file)


@evaluations.command("telemetry")
def eval_telemetry(
    cases: Annotated[Path, typer.Option(help="A folder of PetShop's form, with low_traffic and high_traffic.")],
    json_file: JsonFile = None,
) -> None:
    """Do the metrics and the call graph name the service that was at fault?"""
    from bot.evaluation.telemetry import print_table, run

    figures = run(cases)
    print_table(figures, out)
    write_json(figures, json_file)


@evaluations.command("rca")
def eval_rca(
    cases: Annotated[Path, typer.Option(help="JSON lines with `question`, `observations` and `keys`; .gz too.")],
    llm: Annotated[str, typer.Option(help="Address of a llama.cpp server that investigates as well.")] = "",
    json_file: JsonFile = None,
) -> None:
    """Do recorded tool outputs lead to the cause, and do the quoted lines show it?"""
    from bot.evaluation.rca import print_table, run

    figures = asyncio.run(run(cases, llm))
    print_table(figures, out)
    write_json(figures, json_file)


@evaluations.command("ci-logs")
def eval_ci_logs(
    cases: Annotated[Path, typer.Option(help="JSON lines with `project`, `log` and `chunk`, plain or .xz.")],
    json_file: JsonFile = None,
) -> None:
    """Are the lines of a build log found that explain its failure?"""
    from bot.evaluation.ci_logs import print_table, run

    figures = run(cases)
    print_table(figures, out)
    write_json(figures, json_file)


@evaluations.command("log-templates")
def eval_log_templates(
    logs: Annotated[Path, typer.Option(help="A folder of loghub's form, a folder for each system.")],
    json_file: JsonFile = None,
) -> None:
    """Are the log messages of one statement grouped together, and only those?"""
    from bot.evaluation.log_templates import print_table, run

    figures = run(logs)
    print_table(figures, out)
    write_json(figures, json_file)


@evaluations.command("agent-stability")
def eval_agent_stability(
    llm: Annotated[str, typer.Option(help="Address of a llama.cpp server; a model of random weights will do.")],
    trajectories: Annotated[int, typer.Option(help="How many investigations.", min=1)] = 300,
    json_file: JsonFile = None,
) -> None:
    """Does the investigating model end every investigation well, whatever it says?"""
    from bot.evaluation.agent_stability import print_table, run

    figures = asyncio.run(run(llm, trajectories, out))
    print_table(figures, out)
    write_json(figures, json_file)
    if figures["crashes"]:
        raise typer.Exit(1)


@evaluations.command("load")
def eval_load(
    rate: Annotated[float, typer.Option(help="Signed events a second, half of them mentions, half alerts.")] = 50.0,
    seconds: Annotated[float, typer.Option(help="How long to send.")] = 60.0,
    kill: Annotated[int, typer.Option(help="Kill -9 a replica so often, and send as long as that takes.")] = 0,
    replicas: Annotated[int, typer.Option(help="With --kill: replicas; more than one need a PostgreSQL.")] = 1,
    database_url: Annotated[str, typer.Option(help="With --kill: an empty PostgreSQL database.")] = "",
    storm: Annotated[bool, typer.Option("--storm", help="10 000 alerts of one group and 1 000 of 200.")] = False,
    seed: Annotated[int, typer.Option(help="With --kill and --storm: of what is left to chance.")] = 0,
    json_file: JsonFile = None,
) -> None:
    """Does a running bot keep up? Starts `serve` on the sample company and a Slack of our own beside it.

    With --kill: is everything said once, however often it dies? With --storm: is a storm one message for each group, and
    does the chat's limit hold?
    """
    from bot.evaluation import kills, load
    from bot.evaluation import storm as storms

    if storm:
        figures = asyncio.run(storms.run(10_000, 200, 1_000, seconds, patience=1_800, seed=seed))
    elif kill:
        figures = asyncio.run(kills.run(kill, replicas, database_url, rate, seed))
    else:
        figures = asyncio.run(load.run(rate, seconds))
    load.print_table(figures, out)
    write_json(figures, json_file)
    if figures["lost"] or figures["duplicated"] or figures.get("unfinished"):
        raise typer.Exit(1)
