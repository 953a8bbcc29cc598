"""The message of an answer: what it says and offers, decided once for every chat; the chats only draw it."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from core.incidents.incident_view import Control
from core.model.answer import RECORDS, Answer, Citation, Sentence
from core.model.badge import Badge
from core.model.messages import BUTTON_LABELS, ButtonAction

CLOSEST_MATCH = "Closest match"
DONT_KNOW = "I don’t know. Nothing that I can show here answers this."
NEAREST = "I don’t know. This is the closest match:"
CONFLICTING = "Sources disagree. Newest first:"
ALSO = "Also"  # before each further excerpt
ASK = "Ask:"  # before the teams that may know

MAX_CONTACTS = 3
MAX_FURTHER = 2
MAX_FURTHER_LINE = 140  # characters


@dataclass(frozen=True, slots=True)
class Further:
    """Another excerpt that may answer: its first or best words on one line (Markdown, untrusted), and its source."""

    text: str
    source: Citation


@dataclass(frozen=True, slots=True)
class AnswerView:
    """The message of an answer.

    `heading` is empty where the answer is shown as certain. `said` is Markdown (untrusted), piece by piece, each with the
    numbers of its sources. An abstention says nothing but names what is `nearest`. `buttons` are in sight, `more` is behind
    a menu.
    """

    heading: str
    said: tuple[Sentence, ...]
    conflicting: tuple[Citation, ...]
    sources: tuple[Citation, ...]
    further: tuple[Further, ...]
    nearest: tuple[Citation, ...]
    contacts: str
    badge: Badge | None
    note: str
    buttons: tuple[Control, ...]
    more: tuple[Control, ...]

    @property
    def summary(self) -> str:
        """Return the line that stands in for the message in a notification or a screen reader."""
        return " · ".join(filter(None, (self.heading, *(each.text for each in self.said))))

    @property
    def subjects(self) -> dict[ButtonAction, str]:
        """Return what can be pressed, and the id that each press is about."""
        offered = (*self.buttons, *self.more)
        return {control.verdict: control.subject for control in offered if control.verdict is not None}


def answer_view(answer: Answer) -> AnswerView:
    """Decide what the message of an answer says and offers."""
    further = tuple(
        Further(_cut(each.line), source)
        for each in answer.further[:MAX_FURTHER]
        for source in answer.citations
        if source.number == each.citation
    )
    offered_below = {each.source.number for each in further}
    badge = None if answer.engine == RECORDS and not answer.tentative else answer.badge  # a record is no estimate
    judged = (ButtonAction.HELPFUL, ButtonAction.WRONG) if answer.prediction_id else ()
    return AnswerView(
        heading=_heading(answer),
        said=answer.shown,
        conflicting=tuple(source for conflict in answer.conflicts for source in conflict.sources),
        sources=()
        if answer.abstained
        else tuple(each for each in answer.citations if each.number not in offered_below),
        further=further,
        nearest=answer.citations if answer.abstained else (),
        contacts=" · ".join(contact.text for contact in answer.contacts[:MAX_CONTACTS]),
        badge=badge,
        note=answer.note,
        buttons=tuple(_control(answer, verdict) for verdict in (*judged, ButtonAction.ASK_A_PERSON)),
        more=(_control(answer, ButtonAction.WHY_ANSWER),) if badge is not None else (),
    )


def _heading(answer: Answer) -> str:
    if answer.abstained:
        return NEAREST if answer.citations else DONT_KNOW
    return CLOSEST_MATCH if answer.tentative else ""


def _cut(line: str) -> str:
    """A line that fits, cut at a word; a code span that is cut is closed."""
    short = textwrap.shorten(line, MAX_FURTHER_LINE, placeholder=" …")
    return f"{short}`" if short.count("`") % 2 else short


def _control(answer: Answer, verdict: ButtonAction) -> Control:
    """An answer that is no prediction has nothing to be judged: then a person can be asked about the question."""
    return Control(BUTTON_LABELS[verdict], verdict, answer.prediction_id or answer.question_id)
