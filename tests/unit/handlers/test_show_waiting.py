from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from core.model.conversation import Audience, Person, Place, Platform, Question
from core.model.messages import Notice, NoticeKind
from handlers.common import post_message
from handlers.common.post_message import (
    IN_A_CHANNEL,
    MOST,
    QUEUE_NOTICE_DELAY,
    QUEUED,
    SEARCHED,
    THINKING,
    WAITED,
    Poster,
    QueuedQuestions,
    answer_intent,
    shown_waiting,
)
from tests.fakes.messenger import RecordingMessenger, Trouble
from tests.fakes.store import InMemoryStore

THREAD = Place(Platform.SLACK, "C0ASK", "17.25")
ASKED_AT = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
QUESTION = Question("q1", "How?", Person(Platform.SLACK, "U1"), THREAD, Audience(), ASKED_AT)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(post_message, "SIGN_DELAY", 0.001)
    monkeypatch.setattr(post_message, "INTERVAL", 0.001)


async def shown(messenger: RecordingMessenger, position: list[int]) -> Poster:
    """The sign of waiting until all positions were looked up; the last one stays."""
    poster = Poster(InMemoryStore(), {Platform.SLACK: messenger})
    looked = asyncio.Event()

    def place() -> int:
        if len(position) == 1:
            looked.set()
            return position[0]
        return position.pop(0)

    async with shown_waiting(QUESTION, place, poster=poster):
        await looked.wait()
    return poster


async def test_the_place_in_the_queue_is_shown_in_one_message() -> None:
    messenger = RecordingMessenger()
    await shown(messenger, [3, 1, 0])
    assert list(messenger.standing.values()) == [Notice(THINKING, NoticeKind.PROGRESS, steps=(SEARCHED, WAITED))]
    assert "3rd in the queue" in str(messenger.posted[0])
    assert "1st in the queue" in str(messenger.edited[0])


async def test_the_answer_takes_the_place_of_the_sign() -> None:
    messenger = RecordingMessenger()
    poster = await shown(messenger, [0])
    await poster.post_or_edit(answer_intent(QUESTION.id), THREAD, Notice("The answer."), "answer")
    assert list(messenger.standing.values()) == [Notice("The answer.")]


async def test_a_chat_that_is_down_does_not_hold_up_the_answer() -> None:
    messenger = RecordingMessenger()
    messenger.trouble.append(Trouble.DOWN)
    await shown(messenger, [0])
    assert not messenger.posted


async def test_an_answer_that_comes_at_once_shows_nothing_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(post_message, "SIGN_DELAY", 60.0)
    messenger = RecordingMessenger()
    async with shown_waiting(QUESTION, lambda: 0, poster=Poster(InMemoryStore(), {Platform.SLACK: messenger})):
        pass
    assert not messenger.posted


@pytest.mark.parametrize(
    ("place", "said"), [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (12, "12th"), (21, "21st")]
)
async def test_places_are_said_as_people_say_them(place: int, said: str) -> None:
    messenger = RecordingMessenger()
    await shown(messenger, [place])
    assert f"{said} in the queue" in str(messenger.posted[0])


class Queue:
    """Questions that wait, at a time that the test sets."""

    def __init__(self) -> None:
        self.now = 0.0
        self.messenger = RecordingMessenger()
        self.poster = Poster(InMemoryStore(), {Platform.SLACK: self.messenger})
        self.questions = QueuedQuestions(lambda: self.now)

    def ask(self, number: int, channel: str = "", text: str = "How?") -> Question:
        place = Place(Platform.SLACK, channel or f"C{number}", f"{number}.1")
        question = replace(QUESTION, id=f"q{number}", place=place, text=text)
        self.questions.arrived(question)
        return question

    async def look_at(self, now: float) -> int:
        """How many messages were posted by then."""
        self.now = now
        await self.questions.check(self.poster)
        return len(self.messenger.posted)


async def test_a_question_that_waits_too_long_for_its_turn_is_told_so_once_and_answered_in_the_same_message() -> None:
    queue = Queue()
    question = queue.ask(1)
    assert [await queue.look_at(at) for at in (QUEUE_NOTICE_DELAY - 0.1, QUEUE_NOTICE_DELAY, 60.0)] == [0, 1, 1]
    assert list(queue.messenger.standing.values()) == [Notice(QUEUED, NoticeKind.PROGRESS)]
    await queue.poster.post_or_edit(answer_intent(question.id), question.place, Notice("The answer."), "answer")
    assert list(queue.messenger.standing.values()) == [Notice("The answer.")]


async def test_what_is_worked_on_in_time_and_what_is_a_command_is_not_spoken_of() -> None:
    queue = Queue()
    queue.questions.started(queue.ask(1).id)
    queue.ask(2, text="status")
    assert await queue.look_at(60.0) == 0


async def test_a_storm_of_questions_brings_few_signs_and_one_at_a_time_in_a_channel() -> None:
    queue = Queue()
    for number in range(3 * MOST):
        queue.ask(number)
    assert [await queue.look_at(at) for at in (10.0, 11.0, 12.0, 13.0)] == [MOST, 2 * MOST, 3 * MOST, 3 * MOST]
    queue = Queue()
    for number in range(3):
        queue.ask(number, "C0STORM")
    at = 10.0
    assert [await queue.look_at(at + passed) for passed in (0.0, IN_A_CHANNEL - 0.1, IN_A_CHANNEL)] == [1, 1, 2]


async def test_a_sign_does_not_replace_an_answer_that_another_process_gave() -> None:
    queue = Queue()
    question = queue.ask(1)
    await queue.poster.post_or_edit(answer_intent(question.id), question.place, Notice("The answer."), "answer")
    await queue.look_at(60.0)
    assert list(queue.messenger.standing.values()) == [Notice("The answer.")]
