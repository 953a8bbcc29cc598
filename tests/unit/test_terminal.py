"""Answers in a terminal."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import timedelta

from rich.console import Console

from adapters.terminal import render
from core.answering.answer_view import CLOSEST_MATCH
from core.model.answer import Answer, Contact, Contradiction
from core.model.messages import AnswerMessage, Message
from tests import samples as messages
from tests.cases import every_case
from tests.fakes.messages import telling


def shown(message: Message) -> str:
    file = io.StringIO()
    Console(file=file, width=200).print(render(message))
    return file.getvalue()


def said(answer: Answer) -> str:
    return shown(AnswerMessage(answer))


def test_an_answer_has_its_sentences_and_its_sources_with_their_dates() -> None:
    text = said(messages.answer())
    assert "During the freeze the release captain must agree first. [1][2]" in text
    assert "[2] Change freeze › Exceptions · updated 2026-02-11" in text


def test_only_a_tentative_answer_is_called_so() -> None:
    assert CLOSEST_MATCH in said(messages.answer(tentative=True))
    assert CLOSEST_MATCH not in said(messages.answer())


def test_what_contradicts_it_is_quoted() -> None:
    other = replace(messages.citation(3, "Old notes", ""), quote="It takes 10 minutes.")
    assert "[3] Old notes · updated 2026-02-11: It takes 10 minutes." in said(
        messages.answer(conflicts=(Contradiction((messages.citation(), other)),))
    )


def test_a_stale_source_is_called_so() -> None:
    stale = replace(messages.citation(), stale_for=timedelta(days=430))
    assert "updated 2026-02-11 · stale: last changed 14 months ago" in said(messages.answer(citations=(stale,)))


def test_an_abstention_says_whom_to_ask() -> None:
    text = said(messages.abstention(contacts=(Contact("Delivery", "ci-cd"), Contact("Platform"))))
    assert "Ask: Delivery (#ci-cd) · Platform" in text


@every_case("message", telling("[bold]x[/]").values())
def test_markup_in_outside_text_is_shown_as_it_is(message: Message) -> None:
    assert "[bold]x[/]" in shown(message)
