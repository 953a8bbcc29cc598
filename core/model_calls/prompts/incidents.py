"""Prompts about incidents: choose an owner, find the owner as agents, and investigate the cause with tools.

The agents are those of Triangle (sections 3.1 to 3.3). The investigation and its experts are those of RCAgent (sections 3
and 3.4; section 3.2.2, figure 2; algorithm 1, lines 15 and 22).

All prompts about one incident begin with the same bytes, the rules and then the incident, so that a server reads them once.
What grows, such as what monitoring shows, stands after what does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from core.model.language_model import ChatMessage, Finding, Role, Step
from core.model_calls.choice import NONE
from core.model_calls.prompts import Messages, Named, beginning, judged_statements, quoted, template
from core.ports import Tool

SITUATION_CHARACTERS = 1_500  # read of the current incident
PAST_CHARACTERS = 300  # read of a past incident


def choose_owner(past: Sequence[str], situation: str, candidates: Sequence[Named]) -> Messages:
    """Return the prompt that is answered with the name of a team or NONE."""
    over = "\n".join(f"- {beginning(' '.join(each.split()), PAST_CHARACTERS)}" for each in past)
    listed = "\n\n".join(f"# {each.name}\n{beginning(each.text)}" for each in candidates)
    return _task(
        "incident_choose_owner",
        beginning(situation, SITUATION_CHARACTERS),
        past=quoted(over) or NOTHING,
        candidates=quoted(listed),
        none=NONE,
    )


MAX_RANKED = 5  # teams in a ranking
MAX_PHRASES = 5  # phrases of each kind
NOTHING = "(none)"
NOBODY = "none of them"  # a vote that no team of the group owns the incident

Phrases = Annotated[tuple[Annotated[str, Field(max_length=40)], ...], Field(max_length=MAX_PHRASES)]
TeamId = Annotated[str, Field(max_length=100)]
Part = Annotated[str, Field(max_length=600)]  # about twice what is asked for, so that no sentence ends in the middle


@dataclass(frozen=True, slots=True)
class Distilled:
    """The incident in the vocabulary of the team documents, its key phrases, and the services that it concerns (section 3.2)."""

    aligned: Annotated[str, Field(max_length=400)]
    location: Phrases
    symptoms: Phrases
    capability: Phrases
    services: Annotated[tuple[TeamId, ...], Field(max_length=MAX_PHRASES)]


@dataclass(frozen=True, slots=True)
class DocumentSummary:
    """The summary of a team's function document."""

    owns: Annotated[str, Field(max_length=300)]
    does_not_own: Annotated[str, Field(max_length=150)]


@dataclass(frozen=True, slots=True)
class Ranking:
    """Team ids, most probable owner first. Repetitions are ignored."""

    teams: Annotated[tuple[TeamId, ...], Field(min_length=1, max_length=MAX_RANKED)]


@dataclass(frozen=True, slots=True)
class MonitoringSummary:
    """The summary of a team's monitoring, in the three parts of section 3.3."""

    events: Part
    relation: Part
    suggestions: Part


@dataclass(frozen=True, slots=True)
class Ballot:
    """A manager's vote: the reason, and the id of the team or NOBODY."""

    reason: Part
    team: TeamId


def distil(incident: str, vocabulary: Iterable[str], weights: Mapping[str, float], services: Sequence[str]) -> Messages:
    """Return a prompt whose reply is `Distilled`."""
    listed = ", ".join(f"{word} {weight:.1f}" for word, weight in weights.items())
    return _task(
        "triage_distil",
        incident,
        vocabulary=quoted(", ".join(vocabulary)) or NOTHING,
        weights=quoted(listed) or NOTHING,
        services=_line(", ".join(services)) or NOTHING,
    )


def compress(team: str, document: str) -> Messages:
    """Return a prompt whose reply is `DocumentSummary`."""
    return _task("triage_compress", team=_line(team), document=quoted(document))


@dataclass(frozen=True, slots=True)
class TriageCase:
    """An incident with its key phrases. `discussion` is what the teams' monitoring shows; it grows as teams join."""

    incident: str
    distilled: Distilled
    discussion: tuple[str, ...] = ()

    def prompt(self, name: str, **places: str) -> Messages:
        """Return the prompt of this name about the case."""
        distilled = self.distilled
        phrases = (
            ("Where it fails", ", ".join(distilled.location)),
            ("How it fails", ", ".join(distilled.symptoms)),
            ("Capability needed", ", ".join(distilled.capability)),
            ("In the teams' words", distilled.aligned),
        )
        return _task(
            name,
            self.incident,
            phrases=quoted("\n".join(f"{label}: {_line(each)}" for label, each in phrases if each)) or NOTHING,
            monitored=quoted("\n".join(map(_line, self.discussion))) or NOTHING,
            **places,
        )


def rank(case: TriageCase, documents: Sequence[str], count: int) -> Messages:
    """Return a prompt whose reply is `Ranking`. `documents` are rendered by `document`."""
    return case.prompt("triage_rank", documents="\n".join(documents) or NOTHING, count=str(count))


def summarise_monitoring(case: TriageCase, team: str, document: str, monitoring: str) -> Messages:
    """Return a prompt whose reply is `MonitoringSummary`."""
    own = quoted(document) or NOTHING
    return case.prompt("triage_summarise", team=_line(team), document=own, monitoring=quoted(monitoring))


def vote(case: TriageCase, documents: Sequence[str], statements: Sequence[str], team: str, own: str) -> Messages:
    """Return a prompt whose reply is `Ballot`.

    `statements` contains the managers' statements of the previous round, `own` the document of the manager's team, if
    `documents` has it in short alone.
    """
    in_full = f" Your own team's document in full:\n=====\n{quoted(own)}\n=====" if own else ""
    return case.prompt(
        "triage_vote",
        documents="\n".join(documents) or NOTHING,
        said=quoted("\n".join(statements)) or NOTHING,
        team=_line(team),
        own=in_full,
        nobody=NOBODY,
    )


def document(team_id: str, name: str, text: str, facts: Sequence[str] = ()) -> str:
    """Return a team's function document, with other `facts` about it, as text of a prompt."""
    lines = (f"# Team {team_id} ({_line(name)})", text.strip(), *(f"Known: {_line(each)}." for each in facts))
    return quoted("\n".join(filter(None, lines)))


def _task(name: str, incident: str = "", **places: str) -> Messages:
    """Return the prompt of this name, after the rules of all prompts and, if it is about one, today's incident."""
    part = template("incident_opening").substitute(incident=quoted(incident)) if incident else ""
    return (
        ChatMessage(Role.SYSTEM, template("incident_system").substitute()),
        ChatMessage(Role.USER, part + template(name).substitute(places)),
    )


def opening(incident: str, tools: Sequence[Tool], steps: int) -> Messages:
    """Return the start of an investigation: the incident, the task and the tools."""
    return _task("rca_investigate", incident, tools="\n".join(map(_documented, tools)), steps=str(steps))


def step_taken(step: Step) -> Messages:
    """Return a step as two messages: the model's reply, and its observation or fault."""
    if step.action is None or step.fault:
        answer = template("rca_fault").substitute(advice=_line(step.fault))  # it names what others named
    else:
        answer = template("rca_observation").substitute(
            tool=step.action.tool, key=step.snapshot, shown=quoted(step.shown)
        )
    return ChatMessage(Role.ASSISTANT, step.reply), ChatMessage(Role.USER, answer)


def aggregate(findings: Sequence[Finding]) -> Messages:
    """Return the prompt that merges findings about one cause into one (section 3.4.1)."""
    reports = "\n\n".join(
        f"Report {number}: {_line(each.root_cause)}\nSolution: {_line(each.solution)}\nDisproof: {_line(each.disproof)}\n"
        f"Evidence:\n" + "\n".join(f"- {_line(quote)}" for quote in each.evidence)
        for number, each in enumerate(findings, start=1)
    )
    return _task("rca_aggregate", reports=quoted(reports))


def judge(results: Sequence[str], statements: Sequence[Named]) -> Messages:
    """Return the prompt that is to be answered with a word for each number of a statement of a finding, as JSON.

    A statement is named by itself; its text is the line of the results that is nearest to it.
    """
    listed = "\n\n".join(f"[{number}] {quoted(each)}" for number, each in enumerate(results, start=1))
    return _task("rca_judge", results=listed, **judged_statements(statements))


def _line(text: str) -> str:
    return " ".join(text.split())


def _documented(tool: Tool) -> str:
    names = ", ".join(parameter.name for parameter in tool.parameters)
    explained = " ".join(f"{parameter.name}: {parameter.description}." for parameter in tool.parameters)
    return f"- {tool.name}({names}): {tool.description} {explained}".rstrip()


MAX_NAMES = 4  # suggested after one definition


@dataclass(frozen=True, slots=True)
class CodeReading:
    """The relevant effect of a definition, and the classes and functions that should be read next."""

    analysis: Annotated[str, Field(max_length=400)]
    read_next: Annotated[tuple[Annotated[str, Field(max_length=100)], ...], Field(max_length=MAX_NAMES)]


@dataclass(frozen=True, slots=True)
class CodeSummary:
    """The summary of all that was read."""

    summary: Annotated[str, Field(max_length=800)]


def read_definition(definition: str, symbol: str) -> Messages:
    """Return a prompt whose reply is `CodeReading`. `symbol` is the name with which reading began."""
    return _task("rca_code_read", definition=quoted(definition), symbol=quoted(symbol))


def summarise_code(analyses: Sequence[str], symbol: str) -> Messages:
    """Return a prompt whose reply is `CodeSummary`."""
    return _task("rca_code_summary", analyses=quoted("\n\n".join(analyses)), symbol=quoted(symbol))


MAX_INTERPRETATIONS = 4  # per chunk
MAX_TOLD = 6  # interpretations kept in the summary


@dataclass(frozen=True, slots=True)
class Interpretation:
    """The meaning of log lines, and the lines as the model claims to have copied them."""

    meaning: Annotated[str, Field(max_length=300)]
    evidence: Annotated[str, Field(max_length=300)]


@dataclass(frozen=True, slots=True)
class ChunkReading:
    """The interpretations of a chunk; empty for normal operation."""

    interpretations: Annotated[tuple[Interpretation, ...], Field(max_length=MAX_INTERPRETATIONS)]


@dataclass(frozen=True, slots=True)
class LogSummary:
    """The summary of a log, and the numbers of the relevant interpretations."""

    summary: Annotated[str, Field(max_length=600)]
    interpretations: Annotated[tuple[int, ...], Field(max_length=MAX_TOLD)]


def read_chunk(chunk: str, examples: Sequence[str]) -> Messages:
    """Return a prompt whose reply is `ChunkReading`. `examples` are the titles of earlier incidents, with their causes."""
    listed = "\n".join(f"- {quoted(_line(each))}" for each in examples)
    return _task("rca_log_chunk", chunk=quoted(chunk), examples=listed or NOTHING)


def summarise_log(interpretations: Sequence[Interpretation]) -> Messages:
    """Return a prompt whose reply is `LogSummary`."""
    listed = "\n".join(
        f"{number}. {_line(each.meaning)}\n{each.evidence}" for number, each in enumerate(interpretations, start=1)
    )
    return _task("rca_log_summary", interpretations=quoted(listed))
