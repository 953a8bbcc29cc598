"""Prompts for answering questions (Ericsson chatbot, section V-B, figures 3 and 6).

Documents are passed as one line of JSON per section, other text between fences that it cannot contain, so no text can
end its own quotation. All prompts about one selection of documents share the same bytes up to the end of the documents.
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

MAX_SENTENCES = 5  # per answer
MAX_CITED = 4  # statements cited per sentence
MAX_CHOSEN = 24  # statements kept by compression

SentenceText = Annotated[str, Field(max_length=300)]
QuestionText = Annotated[str, Field(min_length=1, max_length=300)]


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A message as a standalone question, in its own language and in English."""

    follow_up: bool
    question: QuestionText
    language: Annotated[str, Field(max_length=30)]
    english: QuestionText


@dataclass(frozen=True, slots=True)
class Chosen:
    """The numbers of the relevant statements. Here and below, unknown numbers are ignored."""

    statements: Annotated[tuple[int, ...], Field(max_length=MAX_CHOSEN)]


@dataclass(frozen=True, slots=True)
class ComposedSentence:
    """A sentence, and the numbers of the statements that it cites as support."""

    text: SentenceText
    statements: Annotated[tuple[int, ...], Field(max_length=MAX_CITED)]


@dataclass(frozen=True, slots=True)
class Composed:
    """An answer; no sentences if the documents do not answer the question."""

    sentences: Annotated[tuple[ComposedSentence, ...], Field(max_length=MAX_SENTENCES)]


@dataclass(frozen=True, slots=True)
class Translated:
    """The sentences of an answer in another language, in order."""

    sentences: Annotated[tuple[SentenceText, ...], Field(max_length=MAX_SENTENCES)]


@dataclass(frozen=True, slots=True)
class Section:
    """Statements by number, with their document and heading."""

    document: str
    heading: str
    statements: Mapping[int, str]


def rewrite(question: str, history: Sequence[Turn]) -> Messages:
    """Return a prompt whose reply is `Rewritten`."""
    said = "\n".join(turn_line(turn) for turn in history)
    return _asked("", "rewrite", history=said or "(none)", question=quoted(question))


def compress(sections: Sequence[Section], question: str) -> Messages:
    """Return a prompt whose reply is `Chosen`."""
    return _asked(documents(sections), "compress", question=quoted(question))


def compose(sections: Sequence[Section], question: str) -> Messages:
    """Return a prompt whose reply is `Composed`."""
    return _asked(documents(sections), "compose", question=quoted(question))


def verdict(sections: Sequence[Section], sentence: str, numbers: Sequence[int]) -> Messages:
    """Return a prompt whose reply is one of YES_NO."""
    listed = ", ".join(str(number) for number in numbers)
    return _asked(documents(sections), "verdict", sentence=quoted(sentence), numbers=listed)


def translate(sentences: Sequence[str], question: str, language: str) -> Messages:
    """Return a prompt whose reply is `Translated`."""
    lines = "\n".join(_line(sentence) for sentence in sentences)
    return _asked("", "translate", sentences=lines, question=quoted(question), language=" ".join(language.split()))


def same_meaning(sentence: str, translation: str) -> Messages:
    """Return a prompt whose reply is one of YES_NO."""
    return _asked("", "same_meaning", sentence=quoted(sentence), translation=quoted(translation))


def documents(sections: Sequence[Section]) -> str:
    """Return the part of a prompt that contains the documents."""
    return template("answering_documents").substitute(documents="\n".join(section_line(one) for one in sections))


def section_line(section: Section) -> str:
    """Return a section as one line of a prompt."""
    return _line(asdict(section))


def turn_line(turn: Turn) -> str:
    """Return a turn of the conversation as one line of a prompt."""
    return _line({turn.speaker: turn.text})


def _asked(data: str, task: str, **values: str) -> Messages:
    return (
        ChatMessage(Role.SYSTEM, template("answering_system").substitute()),
        ChatMessage(Role.USER, data + template(f"answering_{task}").substitute(values)),
    )


def _line(value: object) -> str:
    """Return a value as one line of JSON, in which no remaining line break can begin a fence."""
    return quoted(json.dumps(value, ensure_ascii=False))
