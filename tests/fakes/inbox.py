"""An inbox that remembers what was handed in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from core.model.alert import Posted
from core.model.conversation import Place, Question
from core.model.message_view import Feedback, Reaction


class FakeInbox:
    """`broken` makes it raise, as a database does that is down."""

    def __init__(self) -> None:
        self.questions: list[Question] = []
        self.overheard: list[Question] = []
        self.names: list[str] = []
        self.feedback: list[Feedback] = []
        self.reactions: list[Reaction] = []
        self.retracted: list[tuple[str, Place]] = []
        self.posted: list[Posted] = []
        self.joined: list[Place] = []
        self.broken: Exception | None = None

    async def ask(self, question: Question) -> None:
        if self.broken is not None:
            raise self.broken
        if question.key not in {known.key for known in self.questions}:
            self.questions.append(question)

    async def overhear(self, remark: Question, name: Callable[[], Awaitable[str]]) -> None:
        if self.broken is not None:
            raise self.broken
        self.overheard.append(remark)
        self.names.append(await name())

    async def retract(self, question_id: str, place: Place, *, edited: bool = False) -> None:
        if self.broken is not None:
            raise self.broken
        if not edited or question_id in {known.id for known in self.questions}:
            self.retracted.append((question_id, place))

    async def react(self, reaction: Reaction) -> None:
        if self.broken is not None:
            raise self.broken
        if reaction.id not in {known.id for known in self.reactions}:
            self.reactions.append(reaction)

    async def post(self, posted: Posted) -> None:
        if self.broken is not None:
            raise self.broken
        self.posted.append(posted)

    async def join(self, place: Place) -> None:
        if self.broken is not None:
            raise self.broken
        self.joined.append(place)

    async def press(self, feedback: Feedback) -> None:
        if self.broken is not None:
            raise self.broken
        if feedback.id not in {known.id for known in self.feedback}:
            self.feedback.append(feedback)
