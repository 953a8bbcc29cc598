"""Prompts for finding an incident's owner (Triangle, sections 3.1 to 3.3).

All prompts about one case begin with the same bytes: the rules and the case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from core.model.language_model import ChatMessage, Role
from core.model_calls.prompts.quoted import quoted
from core.model_calls.prompts.template import template

Messages = tuple[ChatMessage, ...]

MAX_RANKED = 5  # teams that the decider may name
MAX_PHRASES = 5  # of each kind
NONE = "(none)"
NOBODY = "none of them"  # a vote that no team of the group owns the incident

Phrases = Annotated[tuple[Annotated[str, Field(max_length=40)], ...], Field(max_length=MAX_PHRASES)]
TeamId = Annotated[str, Field(max_length=100)]
Part = Annotated[str, Field(max_length=600)]  # about twice what is asked for, so that no sentence ends in the middle


@dataclass(frozen=True, slots=True)
class Distilled:
    """The incident in the words of the team documents, and its key phrases (section 3.2)."""

    aligned: Annotated[str, Field(max_length=400)]
    location: Phrases
    symptoms: Phrases
    capability: Phrases


@dataclass(frozen=True, slots=True)
class DocumentSummary:
    """A team's function document in short."""

    owns: Annotated[str, Field(max_length=300)]
    does_not_own: Annotated[str, Field(max_length=150)]


@dataclass(frozen=True, slots=True)
class Ranking:
    """Ids of teams, the likeliest owner first; one that is named twice counts once."""

    teams: Annotated[tuple[TeamId, ...], Field(min_length=1, max_length=MAX_RANKED)]


@dataclass(frozen=True, slots=True)
class MonitoringSummary:
    """The summary of a team's monitoring, in the three parts of section 3.3."""

    events: Part
    relation: Part
    suggestions: Part


@dataclass(frozen=True, slots=True)
class Ballot:
    """A manager's vote: why, and the id of the team, or NOBODY."""

    reason: Part
    team: TeamId


def distil(incident: str, vocabulary: Iterable[str], weights: Mapping[str, float]) -> Messages:
    """To be answered with `Distilled`."""
    listed = ", ".join(f"{word} {weight:.1f}" for word, weight in weights.items())
    return _asked(
        "triage_distil",
        incident=quoted(incident),
        vocabulary=quoted(", ".join(vocabulary)) or NONE,
        weights=quoted(listed) or NONE,
    )


def compress(team: str, document: str) -> Messages:
    """To be answered with `DocumentSummary`."""
    return _asked("triage_compress", team=quoted(team), document=quoted(document))


def rank(case: str, documents: Sequence[str], count: int) -> Messages:
    """To be answered with `Ranking`; `documents` are rendered by `document`."""
    return _continued(case, "triage_rank", documents="\n".join(documents) or NONE, count=str(count))


def summarise(case: str, team: str, monitoring: str) -> Messages:
    """To be answered with `MonitoringSummary`."""
    return _continued(case, "triage_summarise", team=quoted(team), monitoring=quoted(monitoring))


def vote(case: str, documents: Sequence[str], said: Sequence[str], team: str) -> Messages:
    """To be answered with `Ballot`; `said` is what the managers said in the round before."""
    told = quoted("\n".join(said)) or NONE
    listed = "\n".join(documents) or NONE
    return _continued(case, "triage_vote", documents=listed, said=told, team=quoted(team), nobody=NOBODY)


def document(team_id: str, name: str, text: str) -> str:
    """A team's function document as it stands in a prompt."""
    return quoted(f"# Team {team_id} ({name})\n{text.strip()}")


def _asked(name: str, **places: str) -> Messages:
    rules = ChatMessage(Role.SYSTEM, template("triage_system").substitute())
    return (rules, ChatMessage(Role.USER, template(name).substitute(places)))


def _continued(case: str, name: str, **places: str) -> Messages:
    rules = ChatMessage(Role.SYSTEM, template("triage_system").substitute())
    told = template("triage_case").substitute(case=quoted(case))
    return (rules, ChatMessage(Role.USER, f"{told}\n{template(name).substitute(places)}"))
