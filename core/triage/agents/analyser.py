"""The Analyser: semantic distillation of an incident (Triangle, section 3.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from core.knowledge.terms import terms
from core.model.errors import InvalidReply
from core.model.team import Team
from core.model_calls.prompts import triage as prompts
from core.triage.agents.session import Session
from core.triage.candidates import rarity

MAX_INCIDENT = 3_000  # characters read of the incident
VOCABULARY = 150  # words of the team documents that are shown, the rarest first
WEIGHTED = 40  # words of the incident shown with their weight
DISTIL_TOKENS = 1_300  # room for the longest reply, also if a token is a byte

NOT_DISTILLED = prompts.Distilled("", (), (), ())


@dataclass(frozen=True, slots=True)
class TriageCase:
    """An incident with its key phrases. `discussion` is what the teams' monitoring shows; it grows as teams join."""

    incident: str
    distilled: prompts.Distilled
    discussion: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Return the case as a prompt shows it."""
        distilled = self.distilled
        lines = (
            ("Where it fails", ", ".join(distilled.location)),
            ("How it fails", ", ".join(distilled.symptoms)),
            ("Capability needed", ", ".join(distilled.capability)),
            ("In the teams' words", distilled.aligned),
            ("As reported", self.incident),
            *(("Monitoring", shown) for shown in self.discussion),
        )
        # Further lines are indented, so that none of them passes for a line of its own, such as what monitoring shows.
        return "\n".join(f"{label}: {_indented(value)}" for label, value in lines if value)


def _indented(text: str) -> str:
    return "\n  ".join(text.splitlines())


async def distilled_case(session: Session, incident: str, teams: Sequence[Team]) -> TriageCase:
    """Return the incident aligned with the words of the team documents, with its key phrases.

    Words weigh by TF-IDF against these documents. Without key phrases if the model gives none. Raises ModelUnavailable
    and PromptTooLong.
    """
    text, rare = incident[:MAX_INCIDENT], rarity(teams)
    counts = Counter(term for term in terms(text) if term in rare)
    weights = {term: count * rare[term] for term, count in counts.items()}
    heaviest = sorted(weights, key=lambda term: (-weights[term], term))[:WEIGHTED]
    vocabulary = sorted(rare, key=lambda term: (-rare[term], term))[:VOCABULARY]
    messages = prompts.distil(text, vocabulary, {term: weights[term] for term in heaviest})
    try:
        return TriageCase(text, await session.ask(messages, prompts.Distilled, DISTIL_TOKENS))
    except InvalidReply:
        return TriageCase(text, NOT_DISTILLED)
