"""Prompts about answers: restate a question, choose an excerpt, write an answer from passages, and judge a sentence of it.

Those that estimate confidence are from LM-PACE (sections 4.2 and 4.3, figure 5).

Untrusted text is between fences that it cannot contain. All prompts about one question or case begin with the same bytes, up
to its end, so that a server reads the excerpts, passages or records once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from pydantic import Field

from core.model.conversation import Turn
from core.model.language_model import ChatMessage, Role
from core.model_calls.choice import NONE
from core.model_calls.prompts import Messages, Named, beginning, judged_statements, quoted, template

QuestionText = Annotated[str, Field(min_length=1, max_length=300)]


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A message as a standalone question, in its own language and in English."""

    follow_up: bool
    question: QuestionText
    language: Annotated[str, Field(max_length=30)]
    english: QuestionText


def rewrite(question: str, history: Sequence[Turn]) -> Messages:
    """Return the prompt that is to be answered with `Rewritten`."""
    turns = "\n".join(turn_line(turn) for turn in history)
    return _task(template("answering_rewrite").substitute(history=turns or "(none)", question=quoted(question)))


def choose(excerpts: Sequence[Named], question: str) -> Messages:
    """Return the prompt that is to be answered with the name of an excerpt or NONE.

    A small model copies the heading of the section that it has found; asked for a number, it guesses.
    """
    listed = "\n\n".join(f"# {excerpt.name}\n{beginning(excerpt.text)}" for excerpt in excerpts)
    read = template("answering_excerpts").substitute(excerpts=quoted(listed), question=quoted(question))
    return _task(read + template("answering_choose").substitute(none=NONE))


def call_tool(tools: Sequence[str], question: str) -> Messages:
    """Return the prompt that is to be answered with the tool and the service, as JSON."""
    return _task(template("answering_call_tool").substitute(tools=", ".join(tools), question=quoted(question)))


def turn_line(turn: Turn) -> str:
    """Return a turn of the conversation as a line of a prompt: JSON with escaped line ends."""
    return quoted(json.dumps({turn.speaker: turn.text}, ensure_ascii=False))


def _task(task: str) -> Messages:
    return (
        ChatMessage(Role.SYSTEM, template("answering_system").substitute()),
        ChatMessage(Role.USER, task),
    )


YES, NO = "yes", "no"


@dataclass(frozen=True, slots=True)
class Numbered:
    """A passage in a prompt: the number to cite it with, its name, and its text."""

    number: int
    name: str
    text: str


def write(passages: Sequence[Numbered], question: str) -> Messages:
    """Return the prompt that is to be answered with sentences and citation marks, or with NOT FOUND."""
    return _passages(passages, question, template("answering_write").substitute())


def judge(passages: Sequence[Numbered], question: str, statements: Sequence[Named]) -> Messages:
    """Return the prompt that is to be answered with a word for each number of a statement, as JSON.

    A statement is named by itself with its marks; its text is the sentence of the passages that is nearest to it.
    """
    return _passages(passages, question, template("answering_judge").substitute(judged_statements(statements)))


def suffices(passages: Sequence[Numbered], question: str) -> Messages:
    """Return the prompt that is to be answered with YES if the passages answer the question (LM-PACE, COE), else NO."""
    return _passages(passages, question, template("answering_suffices").substitute())


def rates(passages: Sequence[Numbered], question: str, answer: str) -> Messages:
    """Return the prompt that is to be answered with one of SCALE: how far the passages support an answer (LM-PACE, RCE)."""
    return _passages(passages, question, template("answering_rates").substitute(answer=quoted(answer)))


def translate(sentences: Sequence[str], question: str, language: str) -> Messages:
    """Return the prompt that is to be answered with each sentence in another language, as JSON."""
    return _task(
        template("answering_translate").substitute(
            question=quoted(question), sentences=quoted("\n".join(sentences)), language=language
        )
    )


def _passages(passages: Sequence[Numbered], question: str, task: str) -> Messages:
    listed = "\n\n".join(f"[{each.number}] {quoted(each.name)}\n{quoted(each.text)}" for each in passages)
    evidence = template("answering_passages").substitute(passages=listed, question=quoted(question))
    return _task(evidence + task)


SETTLED = "Yes"
YES_NO = (SETTLED, "No")
SCALE = ("1", "2", "3", "4", "5")


def coe_analysis(references: Sequence[str], situation: str) -> Messages:
    """Return a prompt for an analysis of whether the references can settle the case."""
    return _case(references, situation, template("confidence_coe_analysis").substitute())


def rce_analysis(references: Sequence[str], situation: str, conclusion: str) -> Messages:
    """Return a prompt for an analysis of how far the references support a conclusion, by rubric."""
    instruction = template("confidence_rce_analysis").substitute(conclusion=quoted(conclusion))
    return _case(references, situation, instruction)


def _case(references: Sequence[str], situation: str, instruction: str) -> Messages:
    listed = "\n\n".join(f"{number}. {quoted(reference)}" for number, reference in enumerate(references, start=1))
    case = template("confidence_case").substitute(references=listed or "(none)", situation=quoted(situation))
    return (
        ChatMessage(Role.SYSTEM, template("confidence_system").substitute()),
        ChatMessage(Role.USER, f"{case}\n{instruction}"),
    )


def _score(name: str, analysis_prompt: Messages, analysis: str) -> Messages:
    return (
        *analysis_prompt,
        ChatMessage(Role.ASSISTANT, analysis),
        ChatMessage(Role.USER, template(name).substitute()),
    )


# Return a prompt for one of YES_NO, and for one of SCALE, after an analysis.
coe_score, rce_score = partial(_score, "confidence_coe_score"), partial(_score, "confidence_rce_score")
