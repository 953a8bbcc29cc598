"""Examine a language model once, in the background, before any answer depends on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict

import structlog

from core.answering.model_exam import Marks, examined, skill_of, skill_under
from core.model.errors import InvalidReply, ModelUnavailable, PromptTooLong
from core.model.language_model import ModelRequest, Urgency
from core.model.team import Team
from core.model_calls.choice import Skill, Trust, Use
from core.model_calls.metered_model import MeteredModel, ModelBudget, Trace, untraced
from core.ports import LanguageModel
from core.triage.agents import TeamDocuments

DEADLINE = 600.0  # seconds per exam question; nobody waits for it

log = structlog.get_logger()


class ExaminedModel:
    """A language model, and how far it is trusted.

    `trust` is the operator's, by use; a use without one is measured. `load` returns the marks of an earlier exam of this
    model, or None; `save` stores them. A model that does not answer is examined again when it is next needed. Until it has
    passed, nobody waits for it. `trace` is told of what it does as an agent.
    """

    def __init__(
        self,
        model: LanguageModel,
        load: Callable[[], Marks | None] = lambda: None,
        save: Callable[[Marks], None] = lambda _: None,
        trust: Mapping[Use, Trust] | None = None,
        trace: Trace = untraced,
    ) -> None:
        self.model = model
        self.trace = trace
        self._load = load
        self._save = save
        self._trust = trust or {}
        self._marks: Marks | None = None
        self._exam: asyncio.Task[None] | None = None

    def skill(self, use: Use) -> Skill | None:
        """Return the skill of the model; None if it is not used. Starts an exam if one is needed and not known yet."""
        trust = self._trust.get(use, Trust.MEASURED)
        if trust is Trust.MEASURED and self._marks is None and (self._exam is None or self._exam.done()):
            self._exam = asyncio.create_task(self._examine())
        return skill_under(trust, self._marks)

    async def recall(self) -> None:
        """Load the outcome of an earlier exam, if the model answers."""
        with suppress(ModelUnavailable):
            await self.model.context_tokens()  # after this call, its name is known
            self._marks = self._load()

    async def close(self) -> None:
        """Cancel an exam that is under way."""
        if self._exam is not None:
            self._exam.cancel()
            with suppress(asyncio.CancelledError):
                await self._exam

    async def compress(self, documents: TeamDocuments, teams: Sequence[Team]) -> None:
        """Summarise the long documents of teams, if it plays their managers, before an incident needs them."""
        skill = self.skill(Use.OWNERS)
        if skill is not None and skill.writes:
            request = ModelRequest((), urgency=Urgency.BACKGROUND, requester="documents", deadline=DEADLINE)
            with suppress(ModelUnavailable):
                await documents.compress(self.model, request, teams)

    def within(self, limits: ModelBudget) -> MeteredExamined:
        """Return it with a meter over the model, for one question or one incident."""
        return MeteredExamined(self, limits)

    async def _examine(self) -> None:
        await self.recall()
        if self._marks is not None:
            return
        request = ModelRequest((), urgency=Urgency.BACKGROUND, requester="exam", deadline=DEADLINE)
        try:
            self._marks = await examined(self.model, request)
        except (ModelUnavailable, InvalidReply, PromptTooLong) as error:
            log.warning("the language model could not be examined", reason=str(error))
            return
        self._save(self._marks)
        log.info("the language model was examined", **asdict(self._marks), used=skill_of(self._marks) is not None)


class MeteredExamined(ExaminedModel):
    """An examined model, of which one question or one incident may use no more than its limits."""

    def __init__(self, examined: ExaminedModel, limits: ModelBudget) -> None:
        self.model: MeteredModel = MeteredModel(examined.model, limits)
        self._whole, self.trace = examined, examined.trace

    def skill(self, use: Use) -> Skill | None:
        return self._whole.skill(use)
