"""A language model is examined before anybody's answer depends on it, once, in the background."""

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

DEADLINE = 600.0  # seconds for one question of the exam: it is in nobody's way

log = structlog.get_logger()


def not_kept() -> int | None:
    """Return None: no outcome is known from before."""
    return None


def keep_not(_right: int) -> None:
    """Keep no outcome for later."""


class ExaminedModel:
    """A language model, and what it is good for.

    `load` returns the outcome of an earlier exam of this model, if it is known, and `save` keeps one. A model that does not
    answer is examined again when it is next wanted; until it has passed, nobody waits for it.
    """

    def __init__(
        self,
        model: LanguageModel,
        load: Callable[[], int | None] = not_kept,
        save: Callable[[int], None] = keep_not,
    ) -> None:
        self.model = model
        self._load = load
        self._save = save
        self._right: int | None = None
        self._exam: asyncio.Task[None] | None = None

    @property
    def skill(self) -> Skill | None:
        """The worth of the model; None if it has not passed. Where that is not known yet, an exam begins."""
        if self._right is None and (self._exam is None or self._exam.done()):
            self._exam = asyncio.create_task(self._examine())
        return skill_of(self._right) if self._right is not None else None

    async def recall(self) -> None:
        """Look up the outcome of an earlier exam."""
        with suppress(ModelUnavailable):
            await self.model.context_tokens()  # from then on it tells its name
            self._right = self._load()

    async def close(self) -> None:
        """End an exam that is under way."""
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
