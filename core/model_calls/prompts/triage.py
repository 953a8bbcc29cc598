"""Prompts of the agents that find an incident's owner (Triangle, sections 3.1 to 3.3).

All prompts about one case begin with the same bytes, the rules and the case, so that a server reads them once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from core.model.language_model import ChatMessage, Role
from core.model_calls.choice import NONE as NO_SERVICE
from core.model_calls.prompts import template
from core.model_calls.prompts.quoted import quoted

Messages = tuple[ChatMessage, ...]

MAX_RANKED = 5  # teams in a ranking
MAX_PHRASES = 5  # phrases of each kind
NONE = "(none)"
NOBODY = "none of them"  # a vote that no team of the group owns the incident

Phrases = Annotated[tuple[Annotated[str, Field(max_length=40)], ...], Field(max_length=MAX_PHRASES)]
TeamId = Annotated[str, Field(max_length=100)]
Part = Annotated[str, Field(max_length=600)]  # about twice what is asked for, so that no sentence ends in the middle


@dataclass(frozen=True, slots=True)
class Distilled:
    """The incident in the vocabulary of the team documents, and its key phrases (section 3.2)."""

    aligned: Annotated[str, Field(max_length=400)]
    location: Phrases
    symptoms: Phrases
    capability: Phrases


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


def distil(incident: str, vocabulary: Iterable[str], weights: Mapping[str, float]) -> Messages:
    """Return a prompt whose reply is `Distilled`."""
    listed = ", ".join(f"{word} {weight:.1f}" for word, weight in weights.items())
    return _messages(
        "triage_distil",
        incident=quoted(incident),
        vocabulary=quoted(", ".join(vocabulary)) or NONE,
        weights=quoted(listed) or NONE,
    )


def compress(team: str, document: str) -> Messages:
    """Return a prompt whose reply is `DocumentSummary`."""
    return _messages("triage_compress", team=_inline(team), document=quoted(document))


def rank(case: str, documents: Sequence[str], count: int) -> Messages:
    """Return a prompt whose reply is `Ranking`. `documents` are rendered by `document`."""
    return _continued(case, "triage_rank", documents="\n".join(documents) or NONE, count=str(count))


def locate(case: str, team: str, services: Sequence[str]) -> Messages:
    """Return a prompt that is answered with the name of a service or with NO_SERVICE."""
    listed = ", ".join(f'"{_inline(service)}"' for service in services)
    return _continued(case, "triage_locate", team=_inline(team), services=listed, none=NO_SERVICE)


def summarise(case: str, team: str, document: str, monitoring: str) -> Messages:
    """Return a prompt whose reply is `MonitoringSummary`."""
    own = quoted(document) or NONE
    return _continued(case, "triage_summarise", team=_inline(team), document=own, monitoring=quoted(monitoring))


def vote(case: str, documents: Sequence[str], statements: Sequence[str], team: str, own: str) -> Messages:
    """Return a prompt whose reply is `Ballot`.

    `statements` contains the managers' statements of the previous round, `own` the document of the manager's team.
    """
    return _continued(
        case,
        "triage_vote",
        documents="\n".join(documents) or NONE,
        said=quoted("\n".join(statements)) or NONE,
        team=_inline(team),
        own=quoted(own) or NONE,
        nobody=NOBODY,
    )


def document(team_id: str, name: str, text: str, facts: Sequence[str] = ()) -> str:
    """Return a team's function document, with other `facts` about it, as text of a prompt."""
    lines = (f"# Team {team_id} ({_inline(name)})", text.strip(), *(f"Known: {_inline(each)}." for each in facts))
    return quoted("\n".join(filter(None, lines)))


def _inline(text: str) -> str:
    """Return the text on one line, so that it cannot contain a fence."""
    return " ".join(text.split())


def _messages(name: str, **places: str) -> Messages:
    rules = ChatMessage(Role.SYSTEM, template("triage_system").substitute())
    return (rules, ChatMessage(Role.USER, template(name).substitute(places)))


def _continued(case: str, name: str, **places: str) -> Messages:
    rules = ChatMessage(Role.SYSTEM, template("triage_system").substitute())
    opening = template("triage_case").substitute(case=quoted(case))
    return (rules, ChatMessage(Role.USER, f"{opening}\n{template(name).substitute(places)}"))
