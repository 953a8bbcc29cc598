"""Questions that people asked in the channels of a Slack export: what would have been said, beside what people answered."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from time import perf_counter
from typing import Generic, TypeVar, cast

from pydantic import BaseModel, ConfigDict, ValidationError
from rich.console import Console
from rich.prompt import Prompt

from adapters.sources.section import messages_in, open_archive
from adapters.sources.slack_history import Message, SlackWorkspace, names_of, text_of
from adapters.terminal import render
from bot.backtest.exports import Recorded
from core.knowledge.redactor import redacted
from core.model.conversation import PUBLIC, Audience, Person, Place, Platform, Question
from core.model.errors import MalformedInput, SourceUnavailable
from core.model.messages import AnswerMessage
from handlers.common.ports import Ports
from handlers.questions.answer_question import prepare_answer

HERE, ASKER = Place(Platform.TERMINAL, "backtest"), Person(Platform.TERMINAL, "backtest")
EVERYBODY = Audience(frozenset({PUBLIC}))
NONE, UNKNOWN = "none", "unknown"


class Replayed(BaseModel):
    """A replayed thing, as it is kept beside the page. `digest` identifies the data that it was made of."""

    model_config = ConfigDict(frozen=True)

    id: str
    digest: str


R = TypeVar("R", bound=Replayed)


class Kept(Generic[R]):
    """The results of one kind, kept with their labels in a file beside the page: `replayed` are those of this run."""

    def __init__(self, file: Path, kind: type[R], label: Callable[[R], R]) -> None:
        self.replayed = list[R]()
        self._latest = dict[str, R]()
        self._file, self._label = file, label
        for line in file.read_text("utf-8").splitlines() if file.exists() else ():
            with suppress(ValidationError):  # of another kind, or the line at which a run was broken off
                result = kind.model_validate_json(line)
                self._latest[result.id] = result

    async def of(self, data: Recorded | Asked, config: str, replay: Callable[[str], Awaitable[R]]) -> R:
        """Return what is kept of these data and this configuration, else what `replay` returns for their digest."""
        digest = hashlib.blake2b(f"{data} {config}".encode(), digest_size=8).hexdigest()
        before = self._latest.get(data.id)
        result = before if before is not None and before.digest == digest else await replay(digest)
        result = self._label(result)
        if result != before:
            with self._file.open("a", encoding="utf-8") as opened:
                opened.write(f"{result.model_dump_json()}\n")
        self.replayed.append(result)
        return result


class Asked(BaseModel):
    """A question, and what people answered. Untrusted."""

    model_config = ConfigDict(frozen=True)

    id: str
    asked_at: datetime
    question: str
    people: tuple[str, ...]


class Answered(Asked, Replayed):
    """A replayed question. `shown` are the quotes, the likeliest first; `is_sure` if it was told as the answer.

    `right` is the number of the quote that answers, 0 for none, None if nobody said.
    """

    message: str
    shown: tuple[str, ...]
    is_sure: bool
    right: int | None = None
    seconds: float


def questions_in(export: Path) -> list[Asked]:
    """Return the threads of a Slack export that begin with a person's question and have another person's answer.

    Oldest first; none for another kind of export. Raises MalformedInput.
    """
    if not (export.is_dir() or export.suffix.lower() == ".zip"):
        return []
    threads = defaultdict[tuple[str, str], list[Message]](list)
    try:
        with open_archive(export) as archive:
            channels = archive.rows("channels.json")
            people = {str(user.get("id")): names_of(user) for user in archive.rows("users.json")}
            for channel in channels:
                for file in archive.files(str(channel.get("name"))):
                    for message in messages_in(archive.rows(file), Message, archive.left_out, file):
                        threads[str(channel.get("id")), message.thread_ts or message.ts].append(message)
    except SourceUnavailable as error:
        raise MalformedInput(str(error)) from None
    workspace = SlackWorkspace(people, {str(row.get("id")): str(row.get("name")) for row in channels})
    return sorted(
        filter(None, (_question_of(f"{channel}:{ts}", each, workspace) for (channel, ts), each in threads.items())),
        key=lambda each: (each.asked_at, each.id),
    )


def _question_of(thread: str, messages: Sequence[Message], workspace: SlackWorkspace) -> Asked | None:
    talk = sorted((each for each in messages if each.is_said and not each.is_by_bot), key=lambda each: each.ts)
    if not talk or not thread.endswith(f":{talk[0].ts}") or "?" not in talk[0].seen:
        return None
    people = [text_of(each, workspace) for each in talk if each.user != talk[0].user]
    asked_at, question = datetime.fromtimestamp(float(talk[0].ts), UTC), text_of(talk[0], workspace)
    return Asked(id=thread, asked_at=asked_at, question=question, people=tuple(people)) if any(people) else None


async def answer_again(thread: Asked, digest: str, ports: Ports) -> Answered:
    """Answer a question as everybody in the workspace may read it, with the ports as of its time."""
    began = perf_counter()
    text, *people = [redacted(each, ports.redact) for each in (thread.question, *thread.people)]
    answer = await prepare_answer(
        Question(f"backtest:{thread.id}", text, ASKER, HERE, EVERYBODY, thread.asked_at), ports
    )
    paper = Console(file=StringIO(), width=100)
    paper.print(render(AnswerMessage(answer)))
    quotes = [each.text for each in (*answer.excerpts, *answer.further)] if not answer.sentences else [answer.text]
    return Answered(
        id=thread.id,
        asked_at=thread.asked_at,
        question=text,
        people=tuple(people),
        digest=digest,
        message=cast("StringIO", paper.file).getvalue().strip(),
        shown=tuple(quotes[:3]),
        is_sure=not (answer.abstained or answer.tentative),
        seconds=round(perf_counter() - began, 2),
    )


def label_answer(one: Answered, out: Console) -> Answered:
    """Return the question with the number of the quote that answers, for which a person is asked once."""
    if one.right is not None or not one.shown:
        return one
    numbered = [f"{number}. {text}" for number, text in enumerate(one.shown, 1)]
    out.print("\n\n".join((one.question, *(f"  — {each}" for each in one.people), *numbered)), markup=False)
    choices = [*map(str, range(1, len(one.shown) + 1)), NONE, UNKNOWN]
    choice = Prompt.ask("Which of these answers it?", console=out, choices=choices, default=UNKNOWN)
    return one if choice == UNKNOWN else one.model_copy(update={"right": 0 if choice == NONE else int(choice)})


def question_figures(answers: Sequence[Answered]) -> dict[str, int | float]:
    """Return the counts of the page: of what was shown, and of what somebody judged."""
    judged = [each for each in answers if each.right is not None]
    return {
        "questions": len(answers),
        "shown": sum(bool(each.shown) for each in answers),
        "sure": sum(each.is_sure for each in answers),
        "judged": len(judged),
        "sure_judged": sum(each.is_sure for each in judged),
        "sure_right": sum(each.is_sure and each.right == 1 for each in judged),
        "among_three": sum(bool(each.right) for each in judged),
        "question_seconds": round(sum(each.seconds for each in answers), 1),
    }
