"""What the model's triage is about: an incident, its key phrases, and what the teams found out (Triangle, section 3.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.knowledge.terms import terms
from core.model.errors import InvalidReply
from core.model.language_model import ModelRequest
from core.model.team import Team
from core.model_calls.prompts import triage as prompts
from core.model_calls.structured_reply import structured
from core.ports import LanguageModel
from core.triage.distil import KeyPhrases, key_phrases
from core.triage.documents import rarity

MAX_INCIDENT = 3_000  # characters of the incident that are shown
VOCABULARY = 150  # words of the team documents that are shown, the rarest first
WEIGHTED = 40  # words of the incident shown with their weight
DISTIL_TOKENS = 1_300  # room for the longest distillation, also where a token is a byte


@dataclass(frozen=True, slots=True)
class TriageCase:
    """`discussion` is what the teams' monitoring shows, by team; it grows as teams join."""

    incident: str
    aligned: str
    phrases: KeyPhrases
    discussion: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """As it stands in a prompt."""
        phrases = self.phrases
        lines = (
            ("Where it fails", ", ".join(phrases.location)),
            ("How it fails", ", ".join(phrases.symptoms)),
            ("Capability needed", ", ".join(phrases.capability)),
            ("In the teams' words", self.aligned),
            ("As reported", self.incident),
            *(("Monitoring", found) for found in self.discussion),
        )
        return "\n".join(f"{label}: {_as_one(said)}" for label, said in lines if said)

    def enriched(self, found: Sequence[str]) -> TriageCase:
        return replace(self, discussion=(*self.discussion, *found))


def _as_one(said: str) -> str:
    """With its further lines set in: none of them passes for a line of its own, such as what monitoring shows."""
    return "\n  ".join(said.splitlines())


async def distil(model: LanguageModel, request: ModelRequest, incident: str, teams: Sequence[Team]) -> TriageCase:
    """The case with the model's alignment and key phrases; those of the evidence engine where it gives none.

    Raises ModelUnavailable and PromptTooLong.
    """
    text = incident[:MAX_INCIDENT]
    asked = replace(request, messages=_prompt(text, teams), max_tokens=DISTIL_TOKENS)
    try:
        found = await structured(model, asked, prompts.Distilled)
    except InvalidReply:
        return TriageCase(text, "", key_phrases(text, teams))
    return TriageCase(text, found.aligned, KeyPhrases(found.location, found.symptoms, found.capability))


def _prompt(text: str, teams: Sequence[Team]) -> prompts.Messages:
    """With the TF-IDF weights of the incident's words against the team documents."""
    rare = rarity(teams)
    counts = Counter(term for term in terms(text) if term in rare)
    weights = {term: count * rare[term] for term, count in counts.items()}
    heaviest = sorted(weights, key=lambda term: (-weights[term], term))[:WEIGHTED]
    vocabulary = sorted(rare, key=lambda term: (-rare[term], term))[:VOCABULARY]
    return prompts.distil(text, vocabulary, {term: weights[term] for term in heaviest})
