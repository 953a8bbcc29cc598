"""Post each message once, keep it up to date, and show a question in it from its arrival to its answer.

Every post is recorded before and after it is made. After a crash in between, the platform is searched for the message,
so that it is not posted twice.

Platforms with a waiting indicator (a status, a typing sign) show that instead.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any
from weakref import WeakSet

import structlog

from core.incidents.incident_questions import CommandName, parse_command
from core.model.conversation import MessageReference, Place, Platform, Question
from core.model.errors import (
    ChatBusy,
    ChatClosed,
    ConfigurationError,
    MessageNotFound,
    PlumblineError,
    Unavailable,
    Undeliverable,
    Withdrawn,
)
from core.model.messages import Message, Notice, NoticeKind, claim
from core.ports import Messenger, Store, Transaction

NEVER = (Undeliverable, ConfigurationError, MessageNotFound)  # retrying does not help until somebody acts


async def is_posted(intent: str, transaction: Transaction) -> bool:
    """Return whether the message of an intent was posted."""
    post = await transaction.posts.find(intent)
    return post is not None and post.reference is not None


class Poster:
    """Posts messages on the platform of their place, each intent once."""

    def __init__(self, store: Store, messengers: Mapping[Platform, Messenger]) -> None:
        self._store = store
        self._messengers = messengers

    def one_at_a_time(self, intent: str) -> AbstractAsyncContextManager[None]:
        """Return the lock that serialises writers of one message.

        Read the content inside it, so that no older state wins.
        """
        return self._store.lock(f"show {intent}")

    async def post_once(
        self, intent: str, place: Place, message: Message, version: str = "", *, again: bool = False
    ) -> MessageReference:
        """Post the message, unless this intent was posted before. `version` identifies the content.

        Raises Withdrawn if the message must no longer be shown, and Undeliverable if the chat refuses it. A refused
        message becomes a dead letter. It is retried only with `again`, unless it waits for the chat to be mended.
        """
        # The second of two writers, in any process, finds the message posted.
        async with self._store.lock(f"post {intent}"):
            return (await self._posted(intent, place, message, version, again=again))[0]

    async def _posted(
        self, intent: str, place: Place, message: Message, version: str, *, again: bool
    ) -> tuple[MessageReference, str]:
        """Return the message and the version of the content that it shows."""
        messenger = self._messenger(place)
        async with self._store.transaction() as transaction:
            post = await transaction.posts.attempt(intent, place)
            if post is not None and post.reference is not None and not post.withdrawn:
                return post.reference, post.content_hash
            letter = await transaction.dead_letters.get(intent) if post is not None else None
            if letter is not None and not (again or letter.waiting_since):
                raise Undeliverable(letter.reason)  # and the attempt is not recorded
        if post is not None and post.withdrawn:
            await self.withdraw(intent, place)  # in case it was being posted when it was withdrawn
            raise Withdrawn(f"The question that {intent} answers was deleted.")
        earlier = await messenger.find(place, intent) if post is not None and post.attempted else None
        reference = earlier or await self._post(intent, place, message)
        shown = "" if earlier else version  # a message that was found may show older content
        async with self._store.transaction() as transaction:
            may_stand = await transaction.posts.posted(intent, reference, shown, claim(message))
            if letter is not None:
                await transaction.dead_letters.remove(intent)
        if not may_stand:
            await self.withdraw(intent, place)
            raise Withdrawn(f"The question that {intent} answers was deleted.")
        return reference, shown

    async def post_or_edit(
        self,
        intent: str,
        place: Place,
        message: Message,
        version: str,
        *,
        again: bool = False,
        keeps: Callable[[str, str], bool] = lambda _shown, _version: False,
    ) -> MessageReference:
        """Post the message, or edit it if it shows another version, unless `keeps(shown, version)` is true.

        A message that somebody deleted is posted again, because an edit would be lost. `again` retries a dead letter,
        as in `post_once`.
        """
        async with self._store.lock(f"post {intent}"):
            reference, shown = await self._posted(intent, place, message, version, again=again)
        if shown == version or keeps(shown, version):
            return reference
        try:
            await self._messenger(place).edit(reference, message)
        except MessageNotFound:
            async with self._store.transaction() as transaction:
                await transaction.posts.forget(intent)
            return await self.post_once(intent, place, message, version, again=again)
        except NEVER as error:
            async with self._store.transaction() as transaction:
                await transaction.dead_letters.add(
                    intent,
                    place,
                    message,
                    str(error),
                    waits=not isinstance(error, Undeliverable) or isinstance(error, ChatClosed),
                )
            raise Undeliverable(str(error)) from error
        async with self._store.transaction() as transaction:
            await transaction.posts.edited(intent, version, claim(message))
            await transaction.dead_letters.remove(intent)
        return reference

    async def is_posted(self, intent: str) -> bool:
        """Return whether the message was posted."""
        async with self._store.transaction() as transaction:
            return await is_posted(intent, transaction)

    async def link(self, reference: MessageReference) -> str:
        """Return the address of a message for people who may read it; empty if unknown."""
        return await self._messenger(reference.place).link(reference)

    async def _post(self, intent: str, place: Place, message: Message) -> MessageReference:
        """Post a new message. A certain refusal is recorded, so that the platform is not searched for it next time."""
        try:
            return await self._messenger(place).post(place, message, intent)
        except ChatBusy:
            async with self._store.transaction() as transaction:
                await transaction.posts.forget(intent)
            raise
        except NEVER as error:
            if isinstance(error, MessageNotFound) and place.thread is not None:
                raise  # the thread was deleted, and with it the readers of this reply
            async with self._store.transaction() as transaction:
                await transaction.posts.forget(intent)
                await transaction.dead_letters.add(
                    intent,
                    place,
                    message,
                    str(error),
                    waits=not isinstance(error, Undeliverable) or isinstance(error, ChatClosed),
                )
            raise Undeliverable(str(error)) from error

    async def withdraw(self, intent: str, place: Place) -> None:
        """Delete the message if it exists, and prevent it from being posted later."""
        async with self._store.transaction() as transaction:
            post = await transaction.posts.withdraw(intent, place)
        messenger = self._messenger(place)
        reference = post.reference or (await messenger.find(place, intent) if post.attempted else None)
        if reference is not None:
            await messenger.delete(reference)

    def _messenger(self, place: Place) -> Messenger:
        messenger = self._messengers.get(place.platform)
        if messenger is None:
            raise ConfigurationError(f"A message is meant for {place.platform}, which is not configured here.")
        return messenger


SIGN_DELAY = 2.0  # seconds before the first waiting sign
INTERVAL = 5.0  # seconds between waiting signs

QUEUE_NOTICE_DELAY = 5.0  # seconds that a question waits in the queue before a notice is posted
CHECK_INTERVAL = 1.0  # seconds between checks of the queue
MOST = 5  # notices per check: under load, answers need the time more
IN_A_CHANNEL = 5.0  # seconds between notices in one channel: each uses the rate limit that an answer needs
MOST_QUEUED = 1_000  # queued questions watched; further ones get no notice

QUEUED = "Your question is in the queue, because many arrived at once. The answer will replace this message."
THINKING = "Reading what I found …"
WAITING = "Waiting for the language model: {position} in the queue …"
SEARCHED = "Searched the documents"
WAITED = "Waited for the language model"

SIGN, QUOTED, ANSWERED = "waiting", "quoted", "answer"  # what the message shows, the last word last
STAGES = (SIGN, QUOTED, ANSWERED)

log = structlog.get_logger()

_ENDINGS = {1: "st", 2: "nd", 3: "rd"}


def answer_intent(question_id: str) -> str:
    """Return the intent of the message that shows the waiting sign and then the answer."""
    return f"answer:{question_id}"


async def show_answer(message: Message, question: Question, stage: str, poster: Poster, part: str = "") -> None:
    """Show a stage of the answer, unless the message already shows a later stage.

    `stage` is one of STAGES; `part` distinguishes contents of the same stage. A resumed run replaces nothing that is
    further along, and a late run replaces no answer to an edited question.
    """
    named = f"{stage}:{question.revision}" if question.revision else stage
    version = f"{named}|{part}" if part else named
    await poster.post_or_edit(answer_intent(question.id), question.place, message, version, keeps=is_further)


def is_further(shown: str, version: str) -> bool:
    """Return whether `shown` belongs to a later wording of the question, or to a later stage of its answer."""
    return _stage(shown) > _stage(version)


def _stage(version: str) -> tuple[str, int]:
    stage, _, revision = version.partition("|")[0].partition(":")
    return (revision, STAGES.index(stage)) if stage in STAGES else ("", -1)


class Waiting:
    """Waiting signs for one answer."""

    def __init__(self, question: Question, position: Callable[[], int], poster: Poster, stop_id: str) -> None:
        self._done = asyncio.Event()
        self._telling = asyncio.create_task(_show_position(question, position, poster, self._done, stop_id))

    async def end(self) -> None:
        """Stop showing signs.

        A post that has begun is completed first, so that the answer replaces it and is not posted twice.
        """
        self._done.set()
        await asyncio.shield(self._telling)  # cancelling the caller does not cancel the post


@asynccontextmanager
async def shown_waiting(
    question: Question,
    position: Callable[[], int],
    *,
    poster: Poster,
    stop_id: str = "",
) -> AsyncGenerator[Waiting]:
    """Show waiting signs until the block ends, in the message of `answer_intent`. A block that ends soon shows none.

    `position` returns the question's place in the model queue, from 1; 0 while it is being worked on. With `stop_id`, the
    message has a button to stop a model.
    """
    waiting = Waiting(question, position, poster, stop_id)
    try:
        yield waiting
    finally:
        await waiting.end()


async def _show_position(
    question: Question, position: Callable[[], int], poster: Poster, done: asyncio.Event, stop_id: str
) -> None:
    pause = SIGN_DELAY
    steps: tuple[str, ...] = ()
    while not await _happens(done, pause):
        if place := position():
            steps, text = (SEARCHED,), WAITING.format(position=_ordinal(place))
        else:
            steps, text = (SEARCHED, WAITED) if steps else (), THINKING
        shown = Notice(text, NoticeKind.PROGRESS, steps=steps, stop_id=stop_id)
        try:
            await show_answer(shown, question, SIGN, poster, text)
        except Unavailable:
            return  # not worth a retry
        pause = INTERVAL


class QueuedQuestions:
    """Questions that this process accepted and has not started. Kept in memory only."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._waiting: dict[str, tuple[Question, float]] = {}  # by id, with the arrival time, oldest first
        self._notified_at: dict[tuple[Platform, str], float] = {}  # last notice per channel

    def arrived(self, question: Question) -> None:
        """Watch a question until its work starts. Commands are ignored, because their reply is another message."""
        is_question = parse_command(question.text).name is CommandName.ASK
        if is_question and (question.id in self._waiting or len(self._waiting) < MOST_QUEUED):
            _, since = self._waiting.get(question.id, (question, self._now()))
            self._waiting[question.id] = question, since

    def started(self, question_id: str) -> None:
        """Stop watching a question whose work has started."""
        self._waiting.pop(question_id, None)

    async def follow(self, poster: Poster) -> None:
        """Check the queue repeatedly, until cancelled."""
        while True:
            await asyncio.sleep(CHECK_INTERVAL)
            try:
                await self.check(poster)
            except Exception:  # a bug must not stop the notices for good
                log.exception("notices for queued questions failed")

    async def check(self, poster: Poster) -> None:
        """Post one notice for each question that has waited too long, MOST per call, the longest-waiting first."""
        await asyncio.gather(*(self._post_notice(question, poster) for question in self._due()))

    async def _post_notice(self, question: Question, poster: Poster) -> None:
        self.started(question.id)
        with suppress(PlumblineError):  # not worth a retry
            # A message, because a platform's waiting indicator disappears after minutes.
            await show_answer(Notice(QUEUED, NoticeKind.PROGRESS), question, SIGN, poster, QUEUED)

    def _due(self) -> list[Question]:
        now = self._now()
        self._notified_at = {channel: at for channel, at in self._notified_at.items() if now - at < IN_A_CHANNEL}
        due: list[Question] = []
        for question, since in self._waiting.values():
            channel = question.place.platform, question.place.channel
            if len(due) == MOST or now - since < QUEUE_NOTICE_DELAY:
                break
            if channel not in self._notified_at:
                self._notified_at[channel] = now
                due.append(question)
        return due


class AnswersUnderWay:
    """Answers that this process is working on. An answer in another process is withheld when it is to be posted."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[Any]] = {}
        self._stopped = WeakSet[asyncio.Task[Any]]()

    async def run(self, question_id: str, work: Coroutine[Any, Any, None]) -> None:
        """Run the work to its end. Raises Withdrawn if the question is deleted or edited meanwhile."""
        task = self._tasks[question_id] = asyncio.ensure_future(work)
        try:
            await asyncio.wait([task])
        finally:
            if self._tasks.get(question_id) is task:  # not that of a second run of the same step
                del self._tasks[question_id]
            task.cancel()  # no effect on a finished task
        if task.cancelled():
            raise Withdrawn(f"{question_id} was deleted or changed.")
        task.result()

    async def stop(self, question_id: str) -> None:
        """Cancel the work for a question, and wait until it has ended. Unknown ids are ignored."""
        if (task := self._tasks.get(question_id)) is not None:
            if task not in self._stopped:  # a second cancellation would interrupt its clean-up
                self._stopped.add(task)
                task.cancel()
            await asyncio.wait([task])


def _ordinal(number: int) -> str:
    return f"{number}{'th' if number % 100 in (11, 12, 13) else _ENDINGS.get(number % 10, 'th')}"


async def _happens(event: asyncio.Event, seconds: float) -> bool:
    with suppress(TimeoutError):
        return await asyncio.wait_for(event.wait(), seconds)
    return False
