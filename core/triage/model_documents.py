"""Team function documents, as much of them as fits into the model's context (Triangle, Algorithm 1, steps 2 and 3)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from core.model.language_model import ModelRequest
from core.model.team import Team
from core.model_calls.context_budget import fit_context
from core.model_calls.prompts import triage as prompts
from core.model_calls.structured_reply import structured
from core.ports import LanguageModel

MAX_DOCUMENT = 6_000  # characters of a document that are read
MAX_KEPT = 1_000  # summaries that are remembered
COMPRESS_TOKENS = 600  # room for the longest summary, also where a token is a byte

Render = Callable[[Sequence[str]], prompts.Messages]


@dataclass(frozen=True, slots=True)
class Shown:
    """The teams whose documents fit, and these as they stand in the prompt."""

    teams: tuple[Team, ...]
    documents: tuple[str, ...]


class TeamDocuments:
    """Remembers the summaries: a document is read again only after it was changed."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self._summaries: dict[str, str] = {}

    async def fitting(self, teams: Sequence[Team], render: Render, request: ModelRequest) -> Shown:
        """The documents of `teams`, best first, in a prompt that `render` makes of them.

        Whole if all fit; otherwise all in short, and then without those at the end that do not fit. Raises
        PromptTooLong, ModelUnavailable and InvalidReply.
        """
        whole = [prompts.document(team.id, team.name, team.document[:MAX_DOCUMENT]) for team in teams]
        kept = await self._kept(whole, render, request)
        if len(kept) < len(teams):
            summaries = await asyncio.gather(*(self._summary(team, request) for team in teams))
            whole = [prompts.document(team.id, team.name, said) for team, said in zip(teams, summaries, strict=True)]
            kept = await self._kept(whole, render, request)
        return Shown(tuple(teams[place] for place in kept), tuple(whole[place] for place in kept))

    async def _kept(self, documents: Sequence[str], render: Render, request: ModelRequest) -> tuple[int, ...]:
        fitted = await fit_context(
            self._model, instructions=render(()), max_tokens=request.max_tokens, evidence=documents
        )
        return fitted.evidence

    async def _summary(self, team: Team, request: ModelRequest) -> str:
        document = team.document[:MAX_DOCUMENT]
        if not document.strip():
            return ""
        if document not in self._summaries:
            messages = prompts.compress(team.name, document)
            asked = replace(request, messages=messages, max_tokens=COMPRESS_TOKENS)
            found = await structured(self._model, asked, prompts.DocumentSummary)
            if len(self._summaries) >= MAX_KEPT:
                self._summaries.pop(next(iter(self._summaries)))
            self._summaries[document] = f"Owns: {found.owns}\nDoes not own: {found.does_not_own}"
        return self._summaries[document]
