"""Prompts for answering a question (Ericsson chatbot, section V-B, figures 3 and 6).

Documents travel as one line of JSON for each section, other text between fences that it cannot hold: no text can end
its own quotation. All prompts about one choice of documents begin with the same bytes, up to the end of the documents.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated

from pydantic import Field

from core.model.conversation import Turn
from core.model.language_model import ChatMessage, Role
from core.model_calls.prompts.quoted import quoted
from core.model_calls.prompts.template import template

Messages = tuple[ChatMessage, ...]

YES = "yes"
YES_NO = (YES, "no")

MAX_SENTENCES = 5  # of an answer
MAX_CITED = 4  # statements cited by one sentence
MAX_CHOSEN = 24  # statements that compression may keep

SentenceText = Annotated[str, Field(max_length=300)]
QuestionText = Annotated[str, Field(min_length=1, max_length=300)]


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A message as a question that stands alone: in its own language, and in English."""

    follow_up: bool
    question: QuestionText
    language: Annotated[str, Field(max_length=30)]
    english: QuestionText


@dataclass(frozen=True, slots=True)
class Chosen:
    """The numbers of the statements that help. Here and below, a number that none of them has names nothing."""

    statements: Annotated[tuple[int, ...], Field(max_length=MAX_CHOSEN)]


@dataclass(frozen=True, slots=True)
class ComposedSentence:
    """A sentence and the numbers of the statements that are said to support it."""

    text: SentenceText
    statements: Annotated[tuple[int, ...], Field(max_length=MAX_CITED)]


@dataclass(frozen=True, slots=True)
class Composed:
    """An answer; no sentences where the documents do not answer."""

    sentences: Annotated[tuple[ComposedSentence, ...], Field(max_length=MAX_SENTENCES)]


@dataclass(frozen=True, slots=True)
class Translated:
    """The sentences of an answer in another language, in their order."""

    sentences: Annotated[tuple[SentenceText, ...], Field(max_length=MAX_SENTENCES)]


@dataclass(frozen=True, slots=True)
class Section:
    """Statements by number, and where they stand."""

    document: str
    heading: str
    statements: Mapping[int, str]


def rewrite(question: str, history: Sequence[Turn]) -> Messages:
    """To be answered with `Rewritten`."""
    said = "\n".join(turn_line(turn) for turn in history)
    return _asked("", "rewrite", history=said or "(none)", question=quoted(question))


def compress(sections: Sequence[Section], question: str) -> Messages:
    """To be answered with `Chosen`."""
    return _asked(documents(sections), "compress", question=quoted(question))


def compose(sections: Sequence[Section], question: str) -> Messages:
    """To be answered with `Composed`."""
    return _asked(documents(sections), "compose", question=quoted(question))


def verdict(sections: Sequence[Section], sentence: str, numbers: Sequence[int]) -> Messages:
    """To be answered with one of YES_NO."""
    listed = ", ".join(str(number) for number in numbers)
    return _asked(documents(sections), "verdict", sentence=quoted(sentence), numbers=listed)


def translate(sentences: Sequence[str], question: str, language: str) -> Messages:
    """To be answered with `Translated`."""
    lines = "\n".join(_line(sentence) for sentence in sentences)
    return _asked("", "translate", sentences=lines, question=quoted(question), language=" ".join(language.split()))


def same_meaning(sentence: str, translation: str) -> Messages:
    """To be answered with one of YES_NO."""
    return _asked("", "same_meaning", sentence=quoted(sentence), translation=quoted(translation))


def documents(sections: Sequence[Section]) -> str:
    """The part of a prompt that holds the documents."""
    return template("answering_documents").substitute(documents="\n".join(section_line(one) for one in sections))


def section_line(section: Section) -> str:
    """A section as it stands in a prompt."""
    return _line(asdict(section))


def turn_line(turn: Turn) -> str:
    """A turn of the conversation as it stands in a prompt."""
    return _line({turn.speaker: turn.text})


def _asked(data: str, task: str, **values: str) -> Messages:
    return (
        ChatMessage(Role.SYSTEM, template("answering_system").substitute()),
        ChatMessage(Role.USER, data + template(f"answering_{task}").substitute(values)),
    )


def _line(value: object) -> str:
    """JSON, whose line ends are escaped; of those that JSON leaves as they are, none can begin a fence."""
    return quoted(json.dumps(value, ensure_ascii=False))
