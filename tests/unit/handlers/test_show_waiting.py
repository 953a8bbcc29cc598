from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from core.conversation import Audience, Person, Place, Platform, Question
from core.messages import Notice, NoticeKind
from handlers import show_waiting
from handlers.post_message import Poster
from handlers.show_waiting import THINKING, answer_intent, shown_waiting
from tests.fakes.messenger import RecordingMessenger, Trouble
from tests.fakes.store import InMemoryStore

THREAD = Place(Platform.SLACK, "C0ASK", "17.25")
ASKED_AT = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
QUESTION = Question("q1", "How?", Person(Platform.SLACK, "U1"), THREAD, Audience(), ASKED_AT)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(show_waiting, "PATIENCE", 0.001)
    monkeypatch.setattr(show_waiting, "INTERVAL", 0.001)


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
    assert list(messenger.standing.values()) == [Notice(THINKING, NoticeKind.PROGRESS)]
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
    monkeypatch.setattr(show_waiting, "PATIENCE", 60.0)
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


class SignallingMessenger(RecordingMessenger):
    """A chat with a sign of its own for waiting, where there is a thread."""

    def __init__(self) -> None:
        super().__init__()
        self.signals: list[str] = []

    async def signal(self, place: Place, text: str) -> bool:
        self.signals.append(text)
        return place.thread is not None


async def test_a_chat_with_a_sign_for_waiting_is_not_written_to() -> None:
    messenger = SignallingMessenger()
    await shown(messenger, [3, 0])
    assert "3rd in the queue" in messenger.signals[0]
    assert messenger.posted == []


async def test_where_the_sign_cannot_be_shown_the_message_says_it(monkeypatch: pytest.MonkeyPatch) -> None:
    messenger = SignallingMessenger()
    monkeypatch.setattr(__name__ + ".QUESTION", replace(QUESTION, place=replace(THREAD, thread=None)))
    await shown(messenger, [0])
    assert messenger.signals
    assert list(messenger.standing.values()) == [Notice(THINKING, NoticeKind.PROGRESS)]
