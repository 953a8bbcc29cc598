"""One click makes one of the closest matches the answer, and labels the claim that the first one answers."""

from __future__ import annotations

import pytest

from core.knowledge.retriever import Retriever
from core.model.conversation import Audience, Person, Platform
from core.model.message_view import Feedback
from core.model.messages import CHOOSING, AnswerMessage, ButtonAction
from handlers.common.post_message import Poster
from handlers.feedback.record_feedback import take_feedback
from handlers.questions.answer_question import answer_question
from tests.fakes.clock import FakeClock
from tests.fakes.messenger import RecordingMessenger
from tests.fakes.ports import some_ports
from tests.fakes.store import InMemoryStore
from tests.unit.answering.pages import question, retriever

__all__ = ["retriever"]  # the fixture

UNSURE = question("how do I drain a runner in a storm?")  # no page speaks of storms
BO = Person(Platform.SLACK, "U0BO", "Bo Lindgren")


class Choice:
    """A question whose answer is not certain, and the message that stands."""

    def __init__(self, retriever: Retriever) -> None:
        self.store, self.chat = InMemoryStore(), RecordingMessenger()
        poster = Poster(self.store, {UNSURE.place.platform: self.chat})
        self.ports = some_ports(retriever=retriever, store=self.store, poster=poster, clock=FakeClock())

    @property
    def standing(self) -> AnswerMessage:
        (message,) = self.chat.standing.values()
        assert isinstance(message, AnswerMessage)
        return message

    async def press(self, verdict: ButtonAction, audience: Audience = UNSURE.audience) -> None:
        subject = self.standing.answer.prediction_id or next(iter(self.store.predictions.by_id))
        await take_feedback(
            Feedback("press", verdict, subject, BO, UNSURE.place, UNSURE.asked_at, audience=audience), self.ports
        )


@pytest.fixture
async def choice(retriever: Retriever) -> Choice:
    shown = Choice(retriever)
    await answer_question(UNSURE, shown.ports)
    assert shown.standing.answer.quotes
    return shown


@pytest.mark.parametrize("place", range(2))
async def test_the_chosen_quote_is_the_answer_in_the_same_message(choice: Choice, place: int) -> None:
    offered = choice.standing.answer
    await choice.press(CHOOSING[place])
    chosen = choice.standing.answer
    assert (chosen.quotes, chosen.excerpts, chosen.tentative) == ((), (offered.quotes[place],), False)
    assert [each.number for each in chosen.citations] == [offered.quotes[place].citation]
    assert "Bo Lindgren" in chosen.note


async def test_a_choice_labels_whether_the_first_quote_answers(choice: Choice) -> None:
    (prediction,) = choice.store.predictions.by_id
    for verdict, correct in ((CHOOSING[1], False), (CHOOSING[0], True)):
        await choice.press(verdict)
        async with choice.store.transaction() as transaction:
            labels = await transaction.predictions.labels_of(prediction)
        assert [each.correct for each in labels] == [correct]


async def test_a_quote_that_may_not_be_read_here_any_more_is_not_shown_again(choice: Choice) -> None:
    offered = choice.standing
    await choice.press(CHOOSING[1], Audience(frozenset({"channel:other"})))
    assert choice.standing == offered


async def test_a_quote_beyond_those_that_were_shown_changes_nothing(choice: Choice) -> None:
    offered = choice.standing
    if len(offered.answer.quotes) < len(CHOOSING):
        await choice.press(CHOOSING[-1])
        assert choice.standing == offered
