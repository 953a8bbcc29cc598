"""Prompts to write an answer from numbered passages, and to judge a sentence of it.

Untrusted text is between fences that it cannot contain. Both prompts about a question begin with the same bytes, so that
a server reads the passages once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.model.language_model import ChatMessage, Role
from core.model_calls.prompts import template
from core.model_calls.prompts.quoted import quoted

Messages = tuple[ChatMessage, ...]

YES, NO = "yes", "no"


@dataclass(frozen=True, slots=True)
class Numbered:
    """A passage in a prompt: the number to cite it with, its name, and its text."""

    number: int
    name: str
    text: str


def write(passages: Sequence[Numbered], question: str) -> Messages:
    """Return the prompt that is to be answered with sentences and citation marks, or with NOT FOUND."""
    return _messages(passages, question, template("answering_write").substitute())


def supports(passages: Sequence[Numbered], question: str, sentence: str, numbers: Sequence[int]) -> Messages:
    """Return the prompt that is to be answered with YES if the passages of these numbers say the sentence, else NO."""
    return _messages(
        passages,
        question,
        template("answering_supports").substitute(sentence=quoted(sentence), numbers=_marks(numbers)),
    )


def alters(
    passages: Sequence[Numbered], question: str, sentence: str, numbers: Sequence[int], suspicion: str
) -> Messages:
    """Return the prompt that is to be answered with YES if the sentence alters the passages as suspected, else NO."""
    task = template("answering_alters").substitute(
        sentence=quoted(sentence), numbers=_marks(numbers), suspicion=suspicion
    )
    return _messages(passages, question, task)


def suffices(passages: Sequence[Numbered], question: str) -> Messages:
    """Return the prompt that is to be answered with YES if the passages answer the question (LM-PACE, COE), else NO."""
    return _messages(passages, question, template("answering_suffices").substitute())


def translate(sentences: Sequence[str], question: str, language: str) -> Messages:
    """Return the prompt that is to be answered with each sentence in another language, as JSON."""
    task = template("answering_translate").substitute(
        question=quoted(question), sentences=quoted("\n".join(sentences)), language=language
    )
    return (ChatMessage(Role.SYSTEM, template("answering_system").substitute()), ChatMessage(Role.USER, task))


def _marks(numbers: Sequence[int]) -> str:
    return " and ".join(f"[{number}]" for number in numbers)


def _messages(passages: Sequence[Numbered], question: str, task: str) -> Messages:
    listed = "\n\n".join(f"[{each.number}] {quoted(each.name)}\n{quoted(each.text)}" for each in passages)
    evidence = template("answering_passages").substitute(passages=listed, question=quoted(question))
    return (
        ChatMessage(Role.SYSTEM, template("answering_system").substitute()),
        ChatMessage(Role.USER, evidence + task),
    )
