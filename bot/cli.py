"""The commands. Exit codes: 0 fine, 1 a finding or a failed check, 2 wrong usage."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Coroutine
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from bot.evaluation.lexicon import Lexicon
from bot.llama_launch import DEFAULT_MODEL, HUB
from bot.settings import Settings, load_settings
from bot.telemetry import configure_logging
from core.errors import PlumblineError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help=("Plumbline answers on-call engineers with cited evidence and a calibrated confidence."),
)
evaluations = typer.Typer(no_args_is_help=True, help="Measure Plumbline on files of your own.")
app.add_typer(evaluations, name="eval")
language_model = typer.Typer(
    no_args_is_help=True, help="Start a language model on this machine, and see what it can do."
)
app.add_typer(language_model, name="llm")
dead_letters = typer.Typer(no_args_is_help=True, help="What the chats did not take.")
app.add_typer(dead_letters, name="dead-letters")

out = Console()
err = Console(stderr=True)


class Chat(StrEnum):
    SLACK = "slack"
    TEAMS = "teams"


JsonFile = Annotated[Path | None, typer.Option("--json", help="Write the figures to this file.")]


def main() -> None:
    """The console script. One sentence on standard error and exit code 1 for what Plumbline foresaw."""
    try:
        app()
    except PlumblineError as error:
        err.print(f"plumbline: {error}", style="red", markup=False, highlight=False)
        sys.exit(1)


def _run(work: Callable[[Settings], Coroutine[Any, Any, int]], **overrides: object) -> None:
    """Run a command with the settings of the environment."""
    settings = load_settings(**overrides)
    configure_logging(settings.log)
    code = asyncio.run(work(settings))
    if code:
        raise typer.Exit(code)


@app.command()
def demo(
    port: Annotated[int, typer.Option(help="Port of the local page; the next free one if it is taken.")] = 8080,
) -> None:
    """Start everything on a temporary workspace with the sample company, and replay an incident."""
    from bot.demo import run_demo

    _run(lambda settings: run_demo(settings, port, out))


@app.command()
def serve() -> None:
    """Run the bot."""
    from bot.commands import run_serve

    _run(lambda settings: run_serve(settings, out))


@app.command()
def ask(
    question: str,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
    channel: Annotated[str, typer.Option(help="Answer with what this channel may read; default: the public.")] = "",
) -> None:
    """Answer one question in the terminal."""
    from bot.commands import run_ask

    _run(lambda settings: run_ask(settings, question, channel, out, err, as_json=as_json))


@app.command()
def replay(
    file: Path,
    source: Annotated[str, typer.Option(help="The monitoring system whose webhook was recorded.")] = "alertmanager",
    as_json: Annotated[bool, typer.Option("--json", help="Print the incident as JSON.")] = False,
) -> None:
    """Work on one incident from a recorded webhook, in the terminal. Nothing of it is kept."""
    from bot.commands import run_replay

    _run(lambda settings: run_replay(settings, file, source, out, as_json=as_json))


@app.command("webhook-check")
def webhook_check(
    file: Path,
    source: Annotated[str, typer.Option(help="The monitoring system whose webhook was recorded.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print what was understood as JSON.")] = False,
) -> None:
    """Print what a recorded webhook would be understood as. Nothing is posted or kept."""
    from bot.webhook_check import run_webhook_check

    run_webhook_check(load_settings(), file, source, out, as_json=as_json)


@app.command()
def ingest(sources: Annotated[list[str] | None, typer.Argument(help="Sources to read; default: all.")] = None) -> None:
    """Build or refresh the corpus: only what changed."""
    from bot.commands import run_ingest

    _run(lambda settings: run_ingest(settings, sources or [], out))


@app.command()
def backup(file: Path) -> None:
    """Write the embedded workspace to a file, also while the bot runs: state, workflows, models, index."""
    from bot.backup import run_backup

    run_backup(load_settings(), file, out)


@app.command()
def restore(
    file: Path,
    force: Annotated[bool, typer.Option("--force", help="Replace the workspace that is there.")] = False,
) -> None:
    """Make the embedded workspace what it was when the file was written by `backup`."""
    from bot.backup import run_restore

    run_restore(load_settings(), file, out, force=force)


@app.command()
def forget(
    person: Annotated[str, typer.Option(help="Somebody's id on the chat, such as U012AB3CD.")] = "",
    thread: Annotated[str, typer.Option(help="The id of a thread's first message, such as 1700000000.000100.")] = "",
) -> None:
    """Delete what a person, or what people in a thread, said to Plumbline."""
    from bot.retention import run_forget

    if not (person or thread):
        raise typer.BadParameter("Name whom or what: --person, --thread or both.")
    _run(lambda settings: run_forget(settings, person, thread, out))


@app.command()
def doctor(
    chat: Annotated[Chat | None, typer.Argument(help="Only this chat, in all its parts.")] = None,
) -> None:
    """Check settings, tokens, reachability and index, and say how to mend what is wrong."""
    from bot.doctor import run_doctor

    _run(lambda settings: run_doctor(settings, out, chat or ""))


@app.command()
def audit(
    since: Annotated[str, typer.Option(help="From when on: 24h, 7d, 2026-03-14 or a time with a zone.")] = "24h",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")] = False,
) -> None:
    """Print who saw and did what, oldest first."""
    from bot.audit_log import run_audit

    _run(lambda settings: run_audit(settings, since, out, as_json=as_json))


@dead_letters.command("list")
def dead_letters_list(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")] = False,
) -> None:
    """Print what the chats did not take, newest first."""
    from bot.dead_letters import run_dead_letters

    _run(lambda settings: run_dead_letters(settings, [], out, every=False, as_json=as_json))


@dead_letters.command("retry")
def dead_letters_retry(
    intents: Annotated[list[str] | None, typer.Argument(help="As `list` prints them.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
) -> None:
    """Have messages that a chat did not take tried again."""
    from bot.dead_letters import run_dead_letters

    if not intents and not every:
        raise typer.BadParameter("name the dead letters to be tried again, or give --all")
    _run(lambda settings: run_dead_letters(settings, intents or [], out, every=every, as_json=False))


@app.command()
def openapi() -> None:
    """Print the OpenAPI description of every HTTP route as JSON."""
    from bot.openapi import describe

    sys.stdout.write(json.dumps(describe(), indent=2) + "\n")


@language_model.command("up")
def llm_up(
    model: Annotated[
        str, typer.Option(help="A GGUF file, or OWNER/REPOSITORY[:QUANTISATION] on the model hub.")
    ] = DEFAULT_MODEL,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8081,
    hub: Annotated[str, typer.Option(help="Address of the model hub.")] = HUB,
) -> None:
    """Fetch a model and start a llama.cpp server with settings for the hardware that is found."""
    from bot.llm_commands import run_up

    _run(lambda settings: run_up(settings, model, host, port, out, hub=hub))


@language_model.command("check")
def llm_check(
    url: Annotated[str, typer.Option(help="The server's address; default: PLUMBLINE_LLM_URL.")] = "",
) -> None:
    """Try what a server can do: schemas, probabilities, cache, streaming, speed. Exit code 1 if a needed one fails."""
    from bot.llm_commands import run_check

    _run(lambda settings: run_check(settings, url, out))


@evaluations.command("retrieval")
def eval_retrieval(
    questions: Annotated[Path, typer.Option(help="JSON lines with `question` and `gold_doc`.")],
    corpus: Annotated[list[Path], typer.Option(help="JSON lines with `path` and `text`, plain or .gz; repeatable.")],
    unanswerable: Annotated[
        Path | None, typer.Option(help="JSON lines with a `question` that has no document.")
    ] = None,
    embeddings: Annotated[
        str, typer.Option(help="`latent`, or a sentence-transformers model's name or folder (extra `embeddings`).")
    ] = "latent",
    json_file: JsonFile = None,
) -> None:
    """Does the search find the document that answers?"""
    from bot.evaluation.report import write_json
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
    from bot.evaluation.report import write_json

    figures = run(questions, corpus)
    print_table(figures, out)
    write_json(figures, json_file)


@evaluations.command("severity")
def eval_severity(
    incidents: Annotated[Path, typer.Option(help="JSON lines with `title` or `alert`, texts and `severity`.")],
    json_file: JsonFile = None,
) -> None:
    """How often is the severity that past incidents suggest the right one?"""
    from bot.evaluation.report import write_json
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
    from bot.evaluation.report import write_json

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
    from bot.evaluation.report import write_json

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
    json_file: JsonFile = None,
) -> None:
    """Does an incident reach the team that owns it, and at which hop?"""
    from bot.evaluation.report import write_json
    from bot.evaluation.triage import print_table, run

    with out.status("Learning from the first part.") as status:
        figures = run(train, test, folds, lambda part: status.update(f"Part {part} is measured."))
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
    from bot.evaluation.report import write_json

    figures = run(file)
    print_table(figures, out)
    write_json(figures, json_file)


@evaluations.command("telemetry")
def eval_telemetry(
    cases: Annotated[Path, typer.Option(help="A folder of PetShop's form, with low_traffic and high_traffic.")],
    json_file: JsonFile = None,
) -> None:
    """Do the metrics and the call graph name the service that was at fault?"""
    from bot.evaluation.report import write_json
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
    from bot.evaluation.report import write_json

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
    from bot.evaluation.report import write_json

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
    from bot.evaluation.report import write_json

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
    from bot.evaluation.report import write_json

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
    from bot.evaluation.report import write_json

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
