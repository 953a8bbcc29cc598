"""While a person waits for an answer that takes long, the chat says what is going on; then it becomes the answer.

Where the platform has a sign for that (a status, a typing person) it is shown; elsewhere the answer's message says it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress

import structlog

from core.incidents.command import CommandName, parse_command
from core.model.conversation import Platform, Question
from core.model.errors import PlumblineError, Unavailable
from core.model.messages import Message, Notice, NoticeKind
from handlers.questions.post_message import Poster

PATIENCE = 2.0  # seconds after which people wonder whether they were heard
INTERVAL = 5.0  # seconds between two looks at the queue

QUEUE_PATIENCE = 5.0  # seconds that a question waits for its turn before the chat says so
LOOK = 1.0  # seconds between two looks at the questions that wait for their turn
MOST = 5  # signs shown after one look: in a storm the answers need the time more
IN_A_CHANNEL = 5.0  # seconds between two signs there: each takes a turn that an answer could have
MOST_QUEUED = 1_000  # questions watched at once; those beyond are answered without a sign

QUEUED = "Your question is in the queue, because many arrived at once. The answer will replace this message."
THINKING = "Reading what I found …"
WAITING = "Waiting for the language model: {position} in the queue …"

SIGN, QUOTED, ANSWERED = "waiting", "quoted", "answer"  # what the message shows, the last word last
STAGES = (SIGN, QUOTED, ANSWERED)

log = structlog.get_logger()

_ENDINGS = {1: "st", 2: "nd", 3: "rd"}


def answer_intent(question_id: str) -> str:
    """Return the intent of the message that first shows that somebody waits, and then the answer."""
    return f"answer:{question_id}"


async def show_answer(message: Message, question: Question, stage: str, poster: Poster, part: str = "") -> None:
    """Show what there is by now in the message of `answer_intent`, unless that says more already.

    `stage` is one of STAGES, and `part` tells its contents apart. A run that is resumed takes back nothing that was shown
    before, and one that is late nothing that answers the question as it was put since.
    """
    named = f"{stage}:{question.revision}" if question.revision else stage
    version = f"{named}|{part}" if part else named
    await poster.post_or_edit(answer_intent(question.id), question.place, message, version, keeps=says_more)


def says_more(shown: str, version: str) -> bool:
    """Return whether a version is of a later wording of the question than another one, or of a later stage
    of its answer.
    """
    return _stage(shown) > _stage(version)


def _stage(version: str) -> tuple[str, int]:
    stage, _, revision = version.partition("|")[0].partition(":")
    return (revision, STAGES.index(stage)) if stage in STAGES else ("", -1)


class Waiting:
    """The signs of waiting for one answer."""

    def __init__(self, question: Question, position: Callable[[], int], poster: Poster) -> None:
        self._done = asyncio.Event()
        self._telling = asyncio.create_task(_tell(question, position, poster, self._done))

    async def end(self) -> None:
        """Show no more of them: there is something better to show.

        A post that has begun is finished, so that the answer replaces it and does not come twice.
        """
        self._done.set()
        await asyncio.shield(self._telling)  # whoever gives up waiting for it does not break it off


@asynccontextmanager
async def shown_waiting(question: Question, position: Callable[[], int], *, poster: Poster) -> AsyncGenerator[Waiting]:
    """Show how far it is until the block ends, in the message of `answer_intent`; nothing if that is soon.

    `position` is the question's place in the queue for the model, from 1; 0 while it is being worked on.
    """
    waiting = Waiting(question, position, poster)
    try:
        yield waiting
    finally:
        await waiting.end()


async def _tell(question: Question, position: Callable[[], int], poster: Poster, done: asyncio.Event) -> None:
    pause = PATIENCE
    while not await _happens(done, pause):
        pause = INTERVAL
        place = position()
        text = WAITING.format(position=_ordinal(place)) if place else THINKING
        try:
            if not await poster.signal(question.place, text):
                await show_answer(Notice(text, NoticeKind.PROGRESS), question, SIGN, poster, text)
        except Unavailable:
            return  # a sign of waiting is not worth a second try


class QueuedQuestions:
    """Questions that this process accepted or claimed and that nobody works on yet; none of it outlives the process."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._waiting: dict[str, tuple[Question, float]] = {}  # by id, with the time since when, oldest first
        self._told_at: dict[tuple[Platform, str], float] = {}  # of channels

    def arrived(self, question: Question) -> None:
        """Watch a question until it is worked on; not a command, whose reply is no answer's message."""
        is_question = parse_command(question.text).name is CommandName.ASK
        if is_question and (question.id in self._waiting or len(self._waiting) < MOST_QUEUED):
            _, since = self._waiting.get(question.id, (question, self._now()))
            self._waiting[question.id] = question, since

    def begun(self, question_id: str) -> None:
        """Somebody works on it: whoever does shows what there is to show."""
        self._waiting.pop(question_id, None)

    async def follow(self, poster: Poster) -> None:
        """Look again and again until cancelled."""
        while True:
            await asyncio.sleep(LOOK)
            try:
                await self.look(poster)
            except Exception:  # a mistake of ours: no question would be spoken of any more
                log.exception("questions in the queue cannot be spoken of")

    async def look(self, poster: Poster) -> None:
        """Say once of the questions that have waited longest, and too long, that they wait: MOST of them."""
        await asyncio.gather(*(self._tell(question, poster) for question in self._due()))

    async def _tell(self, question: Question, poster: Poster) -> None:
        self.begun(question.id)
        with suppress(PlumblineError):  # a sign of waiting is not worth a second try
            # A message, since a platform's own sign goes away after minutes, and the queue may be longer than that.
            await show_answer(Notice(QUEUED, NoticeKind.PROGRESS), question, SIGN, poster, QUEUED)

    def _due(self) -> list[Question]:
        now = self._now()
        self._told_at = {channel: at for channel, at in self._told_at.items() if now - at < IN_A_CHANNEL}
        due: list[Question] = []
        for question, since in self._waiting.values():
            channel = question.place.platform, question.place.channel
            if len(due) == MOST or now - since < QUEUE_PATIENCE:
                break
            if channel not in self._told_at:
                self._told_at[channel] = now
                due.append(question)
        return due


def _ordinal(number: int) -> str:
    teen = number % 100 in (11, 12, 13)
    return f"{number}{'th' if teen else _ENDINGS.get(number % 10, 'th')}"


async def _happens(event: asyncio.Event, seconds: float) -> bool:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    return True
