"""The command line. Exit codes: 0 success, 1 a finding or a failed check, 2 wrong usage."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
from rich.console import Console

from adapters.fitting import LEARNING
from bot.config.settings import Settings, load_settings, read_settings
from bot.evaluation.commands import evaluations
from bot.quick_imports import quick_imports
from bot.telemetry import configure_logging
from core import VERSION
from core.model.errors import PlumblineError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help=("Plumbline answers on-call engineers with cited evidence and a calibrated confidence."),
)
app.add_typer(evaluations, name="eval")
language_model = typer.Typer(no_args_is_help=True, help="Check the abilities of a language model.")
app.add_typer(language_model, name="llm")
dead_letters = typer.Typer(no_args_is_help=True, help="List, retry or drop messages that a chat refused.")
app.add_typer(dead_letters, name="dead-letters")
tools = typer.Typer(no_args_is_help=True, help="Try the tools of plumbline.yaml.")
app.add_typer(tools, name="tools")


@tools.callback()
def tools_group() -> None:
    """Try the tools of plumbline.yaml."""


out = Console()
err = Console(stderr=True)


FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
FOLDERS = "PLUMBLINE_DATA_DIR or the folder for temporary files"  # the error of a write to an open file names none


def main() -> None:
    """Run the command line. An expected error or a full disk is one sentence on standard error, with exit code 1."""
    os.umask(0o077)  # what is written holds what people said, and is for this user alone
    try:
        app()
    except (PlumblineError, OSError, ModuleNotFoundError) as error:
        match error:
            case PlumblineError():
                sentence = str(error)
            case OSError(errno=number) if number in FULL:
                sentence = f"{error.strerror}: {error.filename or FOLDERS}."
            case ModuleNotFoundError(name=str(name)) if name.startswith(("scipy", "sklearn")):
                sentence = LEARNING
            case _:
                raise
        err.print(f"plumbline: {sentence}", style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)


def _run(
    work: Callable[[Settings], Coroutine[Any, Any, int | None]],
    load: Callable[..., Settings] = load_settings,
    level: int = logging.INFO,
) -> None:
    """Run a command with the settings of the environment, and log what is at least as severe as `level`.

    `work` returns the exit code, None for 0.
    """
    settings = load()
    configure_logging(settings.log, level)
    code = asyncio.run(work(settings))
    if code:
        raise typer.Exit(code)


def _print_version(wanted: bool) -> None:  # noqa: FBT001  # typer gives an option's value by position
    if wanted:
        out.print(f"plumbline {VERSION}", highlight=False)
        raise typer.Exit


@app.callback()
def plumbline(
    _: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None: ...


@app.command()
def demo(
    port: Annotated[
        int | None,
        typer.Option(
            help="Port of the local page; a free one is used if it is taken. Default: PLUMBLINE_PORT, else 8080."
        ),
    ] = None,
) -> None:
    """Start everything on a temporary workspace with the sample company, and replay an incident."""
    from bot.commands.demo import run_demo

    _run(lambda settings: run_demo(settings, settings.port if port is None else port, out))


@app.command()
def init(
    file: Annotated[Path, typer.Argument(help="The file to write.")] = Path("plumbline.yaml"),
    name: Annotated[str | None, typer.Option(help="Name of your company.")] = None,
    documents: Annotated[str | None, typer.Option(help="Folder of your runbooks and documents.")] = None,
    slack: Annotated[str | None, typer.Option(help="Id of the Slack channel for incidents.")] = None,
    teams: Annotated[str | None, typer.Option(help="Id of the Teams channel for incidents.")] = None,
    prometheus: Annotated[str | None, typer.Option(help="URL of Prometheus.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
) -> None:
    """Write a commented plumbline.yaml. In a terminal, ask for the settings that the options omit."""
    from bot.config.new_configuration import FirstAnswers, refuse_existing, run_init

    refuse_existing(file, force=force)  # before anything is asked
    answers = FirstAnswers(
        name=_answer(name, "Name of your company", "Plumbline"),
        documents=_answer(documents, "Folder of your runbooks and documents", "documents"),
        slack=_answer(slack, "Id of the Slack channel for incidents (empty: none)"),
        teams=_answer(teams, "Id of the Teams channel for incidents (empty: none)"),
        prometheus=_answer(prometheus, "URL of Prometheus (empty: none)"),
    )
    run_init(file, answers, out, force=force)


def _answer(given: str | None, question: str, default: str = "") -> str:
    if given is not None or not sys.stdin.isatty():
        return default if given is None else given
    return typer.prompt(question, default=default, show_default=bool(default))


@app.command()
def serve() -> None:
    """Run the bot."""
    with quick_imports():
        from bot.commands.commands import run_serve

    _run(lambda settings: run_serve(settings, out))


@app.command()
def ask(
    question: str,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
    channel: Annotated[str, typer.Option(help="Use what this channel may read; default: public documents.")] = "",
) -> None:
    """Answer one question in the terminal."""
    with quick_imports():
        from bot.commands.commands import run_ask

    # If Python does not know the terminal's encoding, unknown bytes arrive as lone surrogates.
    text = question.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    _run(lambda settings: run_ask(settings, text, channel, out, err, as_json=as_json), level=logging.ERROR)


@app.command()
def mcp(
    channel: Annotated[str, typer.Option(help="Use what this channel may read; default: public documents.")] = "",
) -> None:
    """Serve the read-only MCP tools on standard input and output, for an agent on this machine."""
    from bot.wiring.ports import run_mcp

    _run(lambda settings: run_mcp(settings, channel))


@app.command()
def replay(
    file: Path,
    source: Annotated[str, typer.Option(help="The monitoring system whose webhook was recorded.")] = "alertmanager",
    as_json: Annotated[bool, typer.Option("--json", help="Print the incident as JSON.")] = False,
) -> None:
    """Investigate an incident from a recorded webhook, in the terminal. Nothing is stored."""
    from bot.commands.commands import run_replay

    _run(lambda settings: run_replay(settings, file, source, out, err, as_json=as_json))


@app.command()
def backtest(
    export: Annotated[
        Path | None,
        typer.Argument(
            help="Incidents of PagerDuty, Jira or incident.io, a Slack export, a CSV file, or JSON lines. Default: the sample company's."
        ),
    ] = None,
    last: Annotated[int, typer.Option(min=1, help="How many of them, the latest.")] = 50,
    page: Annotated[Path, typer.Option(help="The page to write.")] = Path("backtest.html"),
    ask: Annotated[
        bool, typer.Option("--ask", help="Ask for each owner and cause that the file does not tell.")
    ] = False,
) -> None:
    """Replay your last incidents as of their times, and write a page: what was right, and what would have been said."""
    from bot.backtest.replay import print_figures, run_backtest
    from bot.commands.demo import SAMPLE_COMPANY

    async def run(settings: Settings) -> None:
        with TemporaryDirectory(prefix="plumbline-sample-") as folder:
            sample = {"config": SAMPLE_COMPANY / "plumbline.yaml", "data_dir": Path(folder)}
            read = settings if export is not None else settings.model_copy(update=sample)
            seen = await run_backtest(read, export or SAMPLE_COMPANY / "incidents.jsonl", last, page, err, asks=ask)
        print_figures(*seen, page, lambda line: out.print(line, markup=False, highlight=False, soft_wrap=True))

    _run(run)


@app.command()
def postmortem(
    incident_id: Annotated[str, typer.Argument(metavar="ID", help="The id that the local page shows.")],
) -> None:
    """Print the draft of an incident's postmortem as Markdown."""
    from bot.commands.records import run_postmortem

    _run(lambda settings: run_postmortem(settings, incident_id))


@app.command("webhook-check")
def webhook_check(
    file: Path,
    source: Annotated[str, typer.Option(help="The monitoring system whose webhook was recorded.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Print how Plumbline understands a recorded webhook. Nothing is posted or stored."""
    from bot.commands.commands import run_webhook_check

    run_webhook_check(load_settings(), file, source, out, as_json=as_json)


@app.command()
def ingest(sources: Annotated[list[str] | None, typer.Argument(help="Sources to read; default: all.")] = None) -> None:
    """Build the corpus, or update it with what changed in the sources."""
    from bot.commands.commands import run_ingest

    _run(lambda settings: run_ingest(settings, sources or [], out), level=logging.ERROR)  # the summary has the failures


@app.command()
def backup(
    file: Path,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
) -> None:
    """Back up the embedded workspace to a file, even while the bot runs: state, workflows, models and index."""
    from bot.commands.records import run_backup

    run_backup(load_settings(), file, out, force=force)


@app.command()
def restore(
    file: Path,
    force: Annotated[bool, typer.Option("--force", help="Replace the existing workspace.")] = False,
) -> None:
    """Restore the embedded workspace from a file that `backup` wrote."""
    from bot.commands.records import run_restore

    run_restore(load_settings(), file, out, force=force)


@app.command()
def forget(
    person: Annotated[
        str,
        typer.Option(
            help="A person’s id in the chat, such as U012AB3CD, or the id of their Teams chat with Plumbline."
        ),
    ] = "",
    thread: Annotated[str, typer.Option(help="The id of a thread's first message, such as 1700000000.000100.")] = "",
) -> None:
    """Delete what a person, or people in a thread, said to Plumbline, and the person's name in everything else."""
    from bot.work.schedules import run_forget

    if not (person or thread):
        raise typer.BadParameter("Give --person, --thread or both.")
    _run(lambda settings: run_forget(settings, person, thread, out))


@app.command()
def doctor(
    chat: Annotated[str, typer.Argument(help="Check only this chat, in full, for example slack.")] = "",
) -> None:
    """Check settings, tokens, connections and the index, and say how to fix each problem."""
    from bot.commands.doctor import run_doctor

    _run(lambda settings: run_doctor(settings, out, chat), read_settings)


@app.command()
def status() -> None:
    """Print the open incidents, and when each source was last read, even while the bot runs."""
    from bot.commands.records import run_status

    _run(lambda settings: run_status(settings, out))


@app.command()
def audit(
    since: Annotated[str, typer.Option(help="Start: 24h, 7d, 2026-03-14 or a time with a zone.")] = "24h",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
) -> None:
    """Print who saw and did what, oldest first."""
    from bot.commands.records import run_audit

    _run(lambda settings: run_audit(settings, since, out, as_json=as_json))


@app.command("teams-package")
def teams_package(
    app_id: Annotated[str, typer.Argument(envvar="TEAMS_APP_ID", help="The application (client) id.")],
    host: Annotated[str, typer.Argument(envvar="PLUMBLINE_PUBLIC_URL", help="The public host name of the bot.")],
    file: Annotated[Path, typer.Argument(help="The file to write.")] = Path("plumbline-teams.zip"),
    history: Annotated[bool, typer.Option(help="Ask for consent to read the messages of a team or chat.")] = True,
    version: Annotated[str, typer.Option(help="Higher than that of the package that Teams has.")] = VERSION,
) -> None:
    """Make the app package that is uploaded to Teams."""
    from adapters.teams.app_package import manifest_of, package_of

    try:
        file.write_bytes(package_of(manifest_of(app_id, host, history=history, version=version)))
    except OSError as error:
        raise typer.BadParameter(f"{file} cannot be written: {error.strerror}.") from None
    err.print("The package is ready: upload it in Teams under Apps > Manage your apps > Upload an app.", soft_wrap=True)


@dead_letters.command("list")
def dead_letters_list(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
) -> None:
    """Print the messages that a chat refused, newest first."""
    from bot.commands.records import run_list

    _run(lambda settings: run_list(settings, out, as_json=as_json))


@dead_letters.command("retry")
def dead_letters_retry(
    intents: Annotated[list[str] | None, typer.Argument(help="The ids that `list` prints.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All dead letters.")] = False,
) -> None:
    """Retry messages that a chat refused."""
    from bot.commands.records import run_retry

    if not intents and not every:
        raise typer.BadParameter("name the dead letters to retry, or use --all")
    _run(lambda settings: run_retry(settings, intents or [], out, every=every))


@dead_letters.command("drop")
def dead_letters_drop(intents: Annotated[list[str], typer.Argument(help="The ids that `list` prints.")]) -> None:
    """Drop messages that a chat refused. They are not retried."""
    from bot.commands.records import run_drop

    _run(lambda settings: run_drop(settings, intents, out))


@tools.command("try")
def tools_try(
    name: Annotated[str, typer.Argument(help="The name or the kind of a tool in plumbline.yaml.")],
    service: Annotated[str, typer.Option(help="The service, as alerts name it.")],
    minutes: Annotated[int, typer.Option(min=1, max=1_440, help="Read that many last minutes.")] = 60,
) -> None:
    """Print the requests of a tool without the secrets, and what is understood of the answers."""
    from bot.commands.commands import run_try

    _run(lambda settings: run_try(settings, name, service, minutes, out))


@app.command()
def openapi() -> None:
    """Print the OpenAPI description of every HTTP route as JSON."""
    from bot.web.webhook_sources import describe

    sys.stdout.write(json.dumps(describe(), indent=2) + "\n")


@app.command()
def schema() -> None:
    """Print the JSON Schema of plumbline.yaml, for editors."""
    from bot.config.workspace import json_schema

    sys.stdout.write(json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n")


@language_model.command("check")
def llm_check(
    url: Annotated[str, typer.Option(help="The server's address; default: PLUMBLINE_LLM_URL.")] = "",
) -> None:
    """Test a server: schemas, probabilities, cache, samples, choices and speed. Exit code 1 if a needed ability fails."""
    from bot.commands.llm_commands import run_check

    _run(lambda settings: run_check(settings, url, out))
