"""Examine a language model once, in the background, before any answer depends on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

import structlog

from core.answering.model_exam import QUESTIONS, examined, skill_of
from core.model.errors import InvalidReply, ModelUnavailable, PromptTooLong
from core.model.language_model import ModelRequest, Urgency
from core.model_calls.choice import Skill
from core.ports import LanguageModel

DEADLINE = 600.0  # seconds per exam question; nobody waits for it

log = structlog.get_logger()


def no_outcome() -> int | None:
    """Return None: the outcome of no earlier exam is stored."""
    return None


def discard_outcome(_right: int) -> None:
    """Discard the outcome."""


class ExaminedModel:
    """A language model with the skill that it showed in its exam.

    `load` returns the number of right answers in an earlier exam of this model, or None; `save` stores it. A model that
    does not answer is examined again when it is next needed. Until it has passed, nobody waits for it.
    """

    def __init__(
        self,
        model: LanguageModel,
        load: Callable[[], int | None] = no_outcome,
        save: Callable[[int], None] = discard_outcome,
    ) -> None:
        self.model = model
        self._load = load
        self._save = save
        self._right: int | None = None
        self._exam: asyncio.Task[None] | None = None

    @property
    def skill(self) -> Skill | None:
        """Return the skill of the model; None if it has not passed. Starts an exam if the outcome is not known yet."""
        if self._right is None and (self._exam is None or self._exam.done()):
            self._exam = asyncio.create_task(self._examine())
        return skill_of(self._right) if self._right is not None else None

    async def recall(self) -> None:
        """Load the outcome of an earlier exam, if the model answers."""
        with suppress(ModelUnavailable):
            await self.model.context_tokens()  # after this call, its name is known
            self._right = self._load()

    async def close(self) -> None:
        """Cancel an exam that is under way."""
        if self._exam is not None:
            self._exam.cancel()
            with suppress(asyncio.CancelledError):
                await self._exam

    async def _examine(self) -> None:
        await self.recall()
        if self._right is not None:
            return
        request = ModelRequest((), urgency=Urgency.BACKGROUND, requester="exam", deadline=DEADLINE)
        try:
            self._right = await examined(self.model, request)
        except (ModelUnavailable, InvalidReply, PromptTooLong) as error:
            log.warning("the language model could not be examined", reason=str(error))
            return
        self._save(self._right)
        used = skill_of(self._right) is not None
        log.info("the language model was examined", right=self._right, of=len(QUESTIONS), chooses_answers=used)
