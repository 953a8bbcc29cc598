"""Facts about an answer that only the workspace knows: which sources are out of date, and who can be asked instead.

The owner of a thing that is no service, such as infrastructure, a contract or a page, is whom documents name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import IntEnum

from core.knowledge.markdown import BlockKind, blocks, plain
from core.knowledge.terms import distinct_terms
from core.model.answer import Answer, Citation, Contact
from core.model.conversation import Question
from core.model.document import DocumentKind, Passage
from core.model.naming import name_key
from core.model.team import Team, team_named
from core.triage.candidates import matches, turns_away

MAX_CONTACTS = 2
_PUNCTUATION = ".,;:!?()[]\"'`“”"
NEAR_BEST = 0.75  # share of the best team's match that a second team needs to be named too


@dataclass(frozen=True, slots=True)
class HelpDesk:
    """The workspace's facts about answers. `fresh_for` maps a source to the time after which its documents are stale.

    `teams` can be asked. `channels` holds the names of public channels; a private one is not named.
    """

    fresh_for: Mapping[str, timedelta] = field(default_factory=dict[str, timedelta])
    teams: Sequence[Team] = ()
    channels: frozenset[str] = frozenset()

    def completed(self, answer: Answer, question: Question) -> Answer:
        """Return the answer with its stale sources marked and, if Plumbline abstains, with the teams to ask."""
        at = question.asked_at
        conflicts = tuple(
            replace(each, sources=tuple(self._dated(source, at) for source in each.sources))
            for each in answer.conflicts
        )
        return replace(
            answer,
            citations=tuple(self._dated(source, at) for source in answer.citations),
            conflicts=conflicts,
            contacts=self.contacts(question.text) if answer.abstained else (),
        )

    def contacts(self, text: str) -> tuple[Contact, ...]:
        """Return the owners of a service that the question names; else the teams whose document fits best, best first."""
        named = {word.strip(_PUNCTUATION) for word in text.casefold().split()}
        if owners := [team for team in self.teams if not named.isdisjoint(map(name_key, team.services))]:
            return tuple(map(self._contact, owners[:MAX_CONTACTS]))
        scores = {team_id: match.score for team_id, match in matches(text, self.teams).items()}
        least = NEAR_BEST * max(scores.values(), default=0.0)
        fitting = sorted(
            (team for team in self.teams if scores.get(team.id, -1.0) >= least), key=lambda team: -scores[team.id]
        )
        return tuple(self._contact(team) for team in fitting[:MAX_CONTACTS])

    def _contact(self, team: Team) -> Contact:
        return Contact(team.name, team.channel if team.channel in self.channels else "", team.on_call[:1])

    def _dated(self, source: Citation, at: datetime) -> Citation:
        limit = self.fresh_for.get(source.document_id.partition("/")[0])
        if limit is None or source.updated_at is None or at - source.updated_at <= limit:
            return source
        return replace(source, stale_for=at - source.updated_at)


_OWNS = re.compile(
    r"\b(?:own(?:s|ed|ership)?|responsib\w+|maintain\w*|in charge|looks? after|scope|services)\b", re.IGNORECASE
)
# an owner of at most six words; what stands in parentheses after it explains it
_PASSED_ON = re.compile(r"^(?P<thing>[^:]+): (?P<owner>[^\s:.;,()]+(?: [^\s:.;,()]+){0,5})(?: \([^()]*\))?[.;]?$")
_PAGE = distinct_terms("page pages wiki document doc article guide runbook playbook manual")


class Standing(IntEnum):
    """Firmness with which a line of a team's document says who owns something, the firmest first."""

    OWNED = 0  # it is listed among what the team owns
    PASSED_ON = 1  # it is listed among what others own, with their name
    MENTIONED = 2  # it is mentioned elsewhere


@dataclass(frozen=True, slots=True)
class OwnershipLine:
    """A line of the document of the team `author`, and the owner that it names: a team, or others in its own words."""

    standing: Standing
    owner: str
    author: str
    line: str

    @property
    def sentence(self) -> str:
        """Return the claim as a sentence."""
        match self.standing:
            case Standing.OWNED:
                return f"According to its own document, {self.owner} owns: {self.line}"
            case Standing.PASSED_ON:
                return f"The document of {self.author} names {self.owner}: “{self.line}”"
            case Standing.MENTIONED:
                return f"The document of {self.author} mentions it: “{self.line}”"


def claims(thing: str, teams: Sequence[Team]) -> list[OwnershipLine]:
    """Return the lines of team documents with every word of a thing, the firmest first and of these the shortest."""
    thing_terms = distinct_terms(thing)
    matches = [claim for team in teams for claim in _claims(thing_terms, team, teams)] if thing_terms else []
    return sorted(matches, key=lambda claim: (claim.standing, len(claim.line)))


def _claims(thing_terms: frozenset[str], team: Team, teams: Sequence[Team]) -> Iterator[OwnershipLine]:
    for block in blocks(team.document):
        line = plain(block.text).lstrip("-+•. ")
        if block.kind is BlockKind.HEADING or not thing_terms <= distinct_terms(line):
            continue
        if not turns_away(block.heading):
            standing = Standing.OWNED if _OWNS.search(block.heading) else Standing.MENTIONED
            yield OwnershipLine(standing, team.name, team.name, line)
        elif (passed := _PASSED_ON.match(line)) and thing_terms <= distinct_terms(passed["thing"]):
            owner = team_named(passed["owner"], teams)
            yield OwnershipLine(Standing.PASSED_ON, owner.name if owner else passed["owner"], team.name, line)


def names_page(thing: str) -> bool:
    """Return whether the words for a thing say that it is a page."""
    return not _PAGE.isdisjoint(distinct_terms(thing))


def pages_titled(thing: str, passages: Sequence[Passage]) -> list[Passage]:
    """Return the pages that have an owner, and the words of a thing in their title: one passage of each."""
    thing_terms = distinct_terms(thing) - _PAGE
    titled = {
        passage.document_id: passage
        for passage in reversed(passages)
        if passage.kind is DocumentKind.PAGE
        and passage.owner
        and thing_terms
        and thing_terms <= distinct_terms(passage.title)
    }
    return [passage for passage in dict.fromkeys(passages) if titled.get(passage.document_id) is passage]
