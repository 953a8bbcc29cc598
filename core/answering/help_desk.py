"""Facts about an answer that only the workspace knows: which sources are out of date, and who can be asked instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from core.model.answer import Answer, Citation, Contact
from core.model.conversation import Question
from core.model.team import Team
from core.triage.documents import matches

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
        if owners := [team for team in self.teams if not named.isdisjoint(map(str.casefold, team.services))]:
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
