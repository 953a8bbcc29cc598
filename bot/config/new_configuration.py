"""`plumbline init`: write a commented plumbline.yaml as a starting point."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from bot.config.workspace import load_workspace
from core.model.errors import ConfigurationError

COMMANDS = ("ingest", "doctor", "serve")  # in the order in which a new user runs them


@dataclass(frozen=True, slots=True)
class FirstAnswers:
    """The answers to the questions of `plumbline init`. An empty answer leaves its part of the file as a comment."""

    name: str
    documents: str  # folder, relative to the file
    slack: str = ""  # id of the channel for incidents
    teams: str = ""  # id of the channel for incidents
    prometheus: str = ""  # URL


def run_init(file: Path, answers: FirstAnswers, out: Console, *, force: bool) -> None:
    """Write the file and print the next steps.

    Raises ConfigurationError if it exists (without `force`) or is not writable.
    """
    refuse_existing(file, force=force)
    try:
        file.write_text(configuration(answers), encoding="utf-8")
        file.chmod(0o644)  # it holds no secrets, and the user of the service reads it
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be written: {error.strerror}.") from None
    load_workspace(file)
    out.print(f"Wrote {file}. Next:", highlight=False)
    for step in _next_steps(file, answers):
        out.print(f"  {step}", highlight=False, soft_wrap=True)


def refuse_existing(file: Path, *, force: bool) -> None:
    """Raise ConfigurationError if the file exists, without `force`."""
    if file.exists() and not force:
        raise ConfigurationError(f"{file} already exists. Choose another name, or use --force to replace it.")


def _next_steps(file: Path, answers: FirstAnswers) -> list[str]:
    """Return the commands to run, called the way that this one was."""
    plumbline = sys.argv[0] if Path(sys.argv[0]).name == "plumbline" else "plumbline"
    steps = [f"export PLUMBLINE_CONFIG={shlex.quote(str(file))}", *(f"{plumbline} {name}" for name in COMMANDS)]
    if not (file.parent / answers.documents).is_dir():
        folder = shlex.quote(str(file.parent / answers.documents))
        steps.insert(0, f"mkdir -p {folder}    # and put your runbooks there: Markdown, HTML, PDF, Word or text")
    return steps


def configuration(answers: FirstAnswers) -> str:
    """Return the text of a plumbline.yaml with the given answers, and the other common parts as comments."""
    ids = {"slack": answers.slack, "teams": answers.teams, "console": "incidents"}
    channel = ", ".join(f"{key}: {_quoted(value)}" for key, value in ids.items() if value)
    prometheus = f"  - {{kind: prometheus, url: {_quoted(answers.prometheus)}}}"
    tools = f"tools:\n{prometheus}\n" if answers.prometheus else _TOOLS
    return _TEMPLATE.format(
        name=_quoted(answers.name), channel=channel, documents=_quoted(answers.documents), tools=tools
    )


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # a JSON string is a YAML string


_TOOLS = """\
# tools:
#   - {kind: prometheus, url: "http://prometheus:9090"}
#   - {kind: loki, url: "http://loki:3100", services: {my-service: {app: my-service}}}
"""

_TEMPLATE = """\
# The configuration of Plumbline. Paths are relative to this file; secrets stay in the environment.
name: {name}

# The name of each channel, with its id on each platform. `console` is the local page.
channels:
  - {{name: incidents, {channel}}}

# The knowledge that questions are answered from. Add wikis, repositories and chat history later.
sources:
  - {{kind: folder, name: documents, path: {documents}}}

# Each incident is posted in the first reachable channel of the first route that matches; the last route takes the rest.
routes:
  - {{channels: [incidents]}}

# The teams that can own an incident, with their services and who is on call.
# teams:
#   - id: payments
#     name: Payments
#     services: [payment-gateway]
#     on_call: [Alex]

# The systems that may be read, and never changed, to find the cause of an incident.
{tools}"""
