"""Measurements that only those who change Plumbline need: `python -m tests.benchmarks NAME …`.

`--json FILE` writes the figures to a file. Everything that is heavy is imported by the command that uses it.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from bot.evaluation.commands import JsonFile, report_figures
from bot.evaluation.report import write_json
from core.model.errors import PlumblineError
from tests.benchmarks.ccf_lexicon import Lexicon
from tests.benchmarks.evaluations import evaluations

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)
app.add_typer(evaluations)

out = Console()

# Commands that read their arguments themselves: name → what it measures.
SCRIPTS = {
    "ablate-answers": "Take the mechanisms of answering out, one at a time.",
    "ablate-causes": "Take the mechanisms of finding causes out, one at a time.",
    "ablate-triage": "Take the mechanisms of finding the owner out, one at a time.",
    "causes": "Time from the tools of a cluster to a cause, reading and thinking apart.",
    "failing-line-weights": "Fit the weights that find the failing lines of a build log.",
    "fetch-models": "Fetch real language models to measure with.",
    "fit-certainty": "Fit how far an answer can be relied on.",
    "fit-paging": "Fit whether an incident needs a person before there are outcomes to learn from.",
    "footprint": "Import time, idle memory and answer time.",
    "model-budget": "Calls, tokens and seconds of an incident and a question at a slow language model.",
    "model-cost": "Cost of a confidence estimate at a language model.",
    "model-queue": "Waiting times of many people at one language model.",
    "mutate": "Which small changes of the code no test notices.",
    "page-scenarios": "Whether an incident needs a person, in the first days of companies that flap, storm or burn slowly.",
    "report": "Run the measures on public data and write BENCHMARKS.md and the table in README.md.",
    "retrieval": "Speed and size of the embedded index.",
    "scale": "Time of each page and message in a workspace with a long past.",
    "slack-latency": "Time from Enter to the answer in Slack's emulator.",
    "storm-messages": "How many messages a storm is, and how soon a critical alert is in sight.",
    "triage": "Time and memory of a triage on a long history.",
    "with-model": "What a language model of yours adds: exam, answers, causes, owners, checkers, calls and tokens.",
}


@app.command("ccf")
def ccf(
    questions: Annotated[Path, typer.Option(help="JSON lines with `query` and `document`, the manual's family.")],
    lexicon: Annotated[
        list[Lexicon] | None, typer.Option(help="Keyword lists: none, mined or hand; repeatable. Default: all three.")
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """Does the evidence chain choose the right manual? The table of Evidence-Chain RAG."""
    from tests.benchmarks.ccf import print_table, run

    report_figures(run(questions, lexicon or tuple(Lexicon)), print_table, json_file)


@app.command("secrets")
def secrets() -> None:
    """What share of secrets in many forms is found, and of innocent lines is touched?"""
    from adapters.secret_detector import SecretPatterns
    from tests.secret_lines import INNOCENT, PARTS, SECRETS, measured

    for part in PARTS:
        missed, touched = measured(SecretPatterns().find, part)
        recall, alarms = 1 - len(missed) / SECRETS, len(touched) / INNOCENT
        out.print(f"{part}: recall {recall:.3f} of {SECRETS} secrets, {alarms:.2%} of {INNOCENT} lines touched")


@app.command("lm-pace")
def lm_pace(
    recorded: Annotated[
        Path | None, typer.Option(help="A .csv.gz of answers with `chosen_token_confidence` and `stated_confidence`.")
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """Do optimised thresholds on both measures beat the others, on scores whose truth is known? LM-PACE's table 2."""
    from tests.benchmarks import confidence, lm_pace

    if recorded is None:
        figures = lm_pace.measured()
        lm_pace.print_table(figures, out)
    else:
        figures = lm_pace.recorded(recorded)
        for each in figures.values():
            confidence.print_table(each, out)
    write_json(figures, json_file)


@app.command("telemetry")
def telemetry(
    cases: Annotated[Path, typer.Option(help="A folder of PetShop's form, with low_traffic and high_traffic.")],
    json_file: JsonFile = None,
) -> None:
    """Do the metrics and the call graph name the service that was at fault?"""
    from tests.benchmarks.telemetry import print_table, run

    report_figures(run(cases), print_table, json_file)


@app.command("worlds")
def worlds(
    way: Annotated[list[str] | None, typer.Option(help="A way in; repeatable. Default: all five.")] = None,
    only: Annotated[list[str] | None, typer.Option(help="A shape, or a family of shapes; repeatable.")] = None,
    seed: Annotated[list[int] | None, typer.Option(help="Seed of the names and the noise; repeatable.")] = None,
    json_file: JsonFile = None,
) -> None:
    """Count the causes named in healthy worlds, and the right ones in their faulty twins, on five ways in."""
    from tests.benchmarks.worlds import print_table, run
    from tests.worlds.shapes import SHAPES
    from tests.worlds.ways import WAYS

    for given, names in ((way, {*WAYS}), (only, {*SHAPES} | {each.family for each in SHAPES.values()})):
        if unknown := sorted({*(given or ())} - names):
            raise typer.BadParameter(f"{', '.join(unknown)}: none of {', '.join(sorted(names))}")
    report_figures(run(way or WAYS, only or (), seed or (0,)), print_table, json_file)


@app.command("ci-logs")
def ci_logs(
    cases: Annotated[Path, typer.Option(help="JSON lines with `project`, `log` and `chunk`, plain or .xz.")],
    marked: Annotated[bool, typer.Option("--marked", help="Put times and step markers into the logs first.")] = False,
    json_file: JsonFile = None,
) -> None:
    """Are the lines of a build log found that explain its failure?"""
    from tests.benchmarks.ci_logs import print_table, run

    report_figures(run(cases, marked), print_table, json_file)


@app.command("checker")
def checker(
    data: Annotated[Path, typer.Option(help="A folder with the folders of the corpora, real-qa and real-qa-2.")],
    half: Annotated[
        Literal["dev", "test", "both", "held-out", "sample"],
        typer.Option(help="Rules are improved on dev alone; held-out and sample are other sentences."),
    ] = "both",
    judge: Annotated[
        float | None, typer.Option(min=0.0, max=1.0, help="Skill of a simulated model that judges what the rules pass.")
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """Which faithful and which unfaithful sentences does the checker of written answers let pass?"""
    from tests.benchmarks.checker import print_table, run

    report_figures(run(data, half, judge), print_table, json_file)


@app.command("log-templates")
def log_templates(
    logs: Annotated[Path, typer.Option(help="A folder of loghub's form, a folder for each system.")],
    json_file: JsonFile = None,
) -> None:
    """Are the log messages of one statement grouped together, and only those?"""
    from tests.benchmarks.log_templates import print_table, run

    report_figures(run(logs), print_table, json_file)


@app.command("cause-grades")
def cause_grades(
    data: Annotated[Path, typer.Option(help="A folder with the folders rca-cases and cloud-opsbench.")],
    generate: Annotated[int, typer.Option(help="Incidents to invent.", min=1)] = 200,
    seed: Annotated[int, typer.Option(help="Seed of the invented incidents.")] = 1,
    json_file: JsonFile = None,
) -> None:
    """What share of the causes of each grade is right, on sets of other origins?"""
    from tests.benchmarks.cause_grades import measured, print_table

    report_figures(measured(data, generate, seed), print_table, json_file)


@app.command("agent-stability")
def agent_stability(
    llm: Annotated[str, typer.Option(help="Address of a llama.cpp server; a model of random weights will do.")],
    trajectories: Annotated[int, typer.Option(help="How many investigations.", min=1)] = 300,
    json_file: JsonFile = None,
) -> None:
    """Does the investigating model end every investigation well, whatever it says?"""
    from tests.benchmarks.agent_stability import print_table, run

    figures = asyncio.run(run(llm, trajectories, out))
    report_figures(figures, print_table, json_file)
    if figures["crashes"]:
        raise typer.Exit(1)


@app.command("load")
def load(
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
    from tests.benchmarks import kills, load
    from tests.benchmarks import storm as storms

    if storm:
        figures = asyncio.run(storms.run(10_000, 200, 1_000, seconds, patience=1_800, seed=seed))
    elif kill:
        figures = asyncio.run(kills.run(kill, replicas, database_url, rate, seed))
    else:
        figures = asyncio.run(load.run(rate, seconds))
    report_figures(figures, load.print_table, json_file)
    if figures["lost"] or figures["duplicated"] or figures.get("unfinished"):
        raise typer.Exit(1)


Quiet = Annotated[bool, typer.Option("--quiet", help="Print only what is above or below the budget.")]
Lower = Annotated[bool, typer.Option("--lower", help="Write each number that is below the budget into budget.toml.")]


@app.command("size")
def size(quiet: Quiet = False, lower: Lower = False, json_file: JsonFile = None) -> None:
    """Count statements, regular expressions and numbers by capability, and hold them against budget.toml."""
    from tests.benchmarks import budget
    from tests.benchmarks.size import limited, print_table, run

    figures = run(budget.tables())
    if not quiet:
        print_table(figures, out)
    write_json(figures, json_file)
    budget.enforce(limited(figures), out, lower=lower)


@app.command("walk")
def walk(quiet: Quiet = False, lower: Lower = False, json_file: JsonFile = None) -> None:
    """Count the moves between files while an alert is shown and a question answered, and hold them against budget.toml."""
    from tests.benchmarks import budget
    from tests.benchmarks.walk import limited, print_table, run

    figures = asyncio.run(run())
    if not quiet:
        print_table(figures, out)
    write_json(figures, json_file)
    budget.enforce(limited(figures), out, lower=lower)


@app.command("fairness")
def fairness(
    lines: Annotated[int, typer.Option(help="Lines of the log that every investigation reads.", min=1)] = 1_000_000,
    remarks: Annotated[int, typer.Option(help="Remarks in one incident, and as many in several.", min=1)] = 60,
    json_file: JsonFile = None,
) -> None:
    """How long do others wait while one member floods incidents with remarks? Paired: without and with the flood."""
    from tests.benchmarks.fairness import print_table, run

    report_figures(asyncio.run(run(lines, remarks)), print_table, json_file)


def _add_script(name: str, purpose: str) -> None:
    @app.command(name, help=purpose, add_help_option=False, context_settings={"ignore_unknown_options": True})
    def run(arguments: Annotated[list[str] | None, typer.Argument()] = None) -> None:
        sys.argv = [f"python -m tests.benchmarks {name}", *(arguments or [])]
        importlib.import_module(f"tests.benchmarks.{name.replace('-', '_')}").main()


for script, purpose in SCRIPTS.items():
    _add_script(script, purpose)

if __name__ == "__main__":
    try:
        app()
    except PlumblineError as error:
        sys.exit(f"benchmarks: {error}")
