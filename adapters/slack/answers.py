"""Answers in Slack, and the confidence in them."""

from __future__ import annotations

import re

import numpy as np

from adapters.diagrams import reliability_png
from adapters.slack import blocks
from adapters.slack.blocks import (
    LINE,
    Block,
    Rendered,
    badge,
    control_elements,
    dotted,
    fallback,
    feedback_block,
    listing,
    paragraph,
    small_text,
)
from adapters.slack.mrkdwn import bold, code_block, cut, escape, link, prose
from core.answering.answer_view import ALSO, ASK, CONFLICTING, HEADING_LINE, AnswerView, Further, answer_view
from core.model.answer import Answer, Citation, Sentence
from core.model.badge import BadgeExplanation
from core.model.messages import JUDGED_BY, JUDGEMENTS, WHY, DriftAlarm
from core.model.prediction import PredictionKind

_FENCE = re.compile(r"^```[^\n]*\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)

RATINGS = JUDGEMENTS[PredictionKind.ANSWER]
MAX_MARKERS = 5  # per sentence

SENTENCE = 900  # characters
SENTENCES = 5_000  # characters of all sentences, which leaves room for sources, conflicts and the rest
WHOLE = 100_000  # characters of the file with an answer that is too long for a message
MARKER = 300  # characters, including its address
SOURCE = 500  # characters, including its address
QUOTE = 300  # characters
FURTHER = 400  # characters, including escapes
CONFLICTS = 2_500  # characters of all contradictions


def answer_message(answer: Answer, *, newest: bool) -> Rendered:
    """Return the message of an answer, with Slack's own feedback buttons if `newest` is true."""
    view = answer_view(answer)
    rated = [each for each in view.buttons if newest and each.verdict in RATINGS]
    buttons = [each for each in view.buttons if each not in rated]
    heading = [
        *([escape(view.lead, SENTENCE)] if view.lead else []),
        *([bold(view.heading, LINE)] if view.heading else []),
    ]
    nearest = [f"• {_nearest(citation)}" for citation in view.nearest]
    return Rendered(
        fallback([view.summary]),
        [
            *blocks.sections([*heading, *_sentences(view)], "sentences", SENTENCES),
            *paragraph(listing(nearest, "documents")),
            *_conflicts(view),
            *small_text(listing([_source(citation) for citation in view.sources], "sources")),
            *small_text("\n".join(map(_further, view.further))),
            *small_text(f"{ASK} {escape(view.contacts, 3 * LINE)}" if view.contacts else ""),
            *small_text(dotted(badge(view.badge), escape(view.note, LINE))),
            *feedback_block(rated),
            blocks.actions(control_elements(buttons, (), view.more)),
        ],
    )


def whole_answer(answer: Answer) -> str:
    """Return all sentences and sources as plain text; empty if the message shows every sentence."""
    view = answer_view(answer)
    lines = _sentences(view)
    if blocks.fitting(lines, "sentences", SENTENCES) == lines:
        return ""
    sentences = [f"{each.text} {''.join(f'[{number}]' for number in each.citations)}" for each in view.said]
    sources = [f"[{each.number}] {each.title} {each.deep_link}".rstrip() for each in view.sources]
    return cut("\n\n".join([*sentences, *sources]), WHOLE) + "\n"


def _sentences(view: AnswerView) -> list[str]:
    urls = {citation.number: citation.deep_link for citation in view.sources}
    return [_sentence(sentence, urls) for sentence in view.said]


def _sentence(sentence: Sentence, urls: dict[int, str]) -> str:
    if headed := HEADING_LINE.match(sentence.text):
        return bold(headed[1], SENTENCE)
    markers = [link(urls.get(number, ""), f"[{number}]", MARKER) for number in sentence.citations[:MAX_MARKERS]]
    pieces = _FENCE.split(sentence.text[: 2 * SENTENCE])
    shown = [
        code_block(piece, SENTENCE // 2) if index % 2 else prose(piece, SENTENCE // 2 if len(pieces) > 1 else SENTENCE)
        for index, piece in enumerate(pieces[:3])
    ]
    return " ".join(["\n".join(filter(None, shown)), *markers])


def _conflicts(view: AnswerView) -> list[Block]:
    lines = [f"• {_source(source)}{_quoted(source.quote)}" for source in view.conflicting]
    return paragraph(f"⚠️ *{CONFLICTING}*\n{listing(lines, 'sources', CONFLICTS)}" if lines else "")


def _source(citation: Citation) -> str:
    stale = f"⚠️ {citation.staleness}" if citation.staleness else ""
    return dotted(f"[{citation.number}] {_source_link(citation)}", citation.updated, stale)


def _further(further: Further) -> str:
    return dotted(f"{ALSO}: {prose(further.text, FURTHER)}", _source_link(further.source))


def _nearest(citation: Citation) -> str:
    return f"{dotted(_source_link(citation), citation.staleness)}{_quoted(citation.quote)}"


def _source_link(citation: Citation) -> str:
    return link(citation.deep_link, citation.name, SOURCE)


def _quoted(quote: str) -> str:
    text = prose(quote, QUOTE)
    return f"\n> {text}" if text else ""


REFERENCE = 400  # characters, including its address


def badge_explanation(explanation: BadgeExplanation) -> Rendered:
    references = [f"• {link(each.url, each.title, REFERENCE)}" for each in explanation.references]
    if explanation.withheld:
        references.append(f"• {explanation.withheld}")
    title = f"*{JUDGED_BY}*\n"
    listed = title + blocks.listing(references, "references", blocks.MAX_TEXT - len(title)) if references else ""
    return Rendered(
        fallback([WHY, *explanation.sentences]),
        [
            blocks.section(dotted(f"*{WHY}*", badge(explanation.badge))),
            blocks.section("\n".join(f"• {escape(sentence, 2 * LINE)}" for sentence in explanation.sentences)),
            *small_text(listed),
            *small_text(escape(explanation.for_experts, 2 * LINE)),
        ],
    )


def drift_alarm(alarm: DriftAlarm) -> Rendered:
    return Rendered(fallback([alarm.text]), [blocks.section(f"⚠️ {escape(alarm.text, 4 * LINE)}")])


def alarm_diagram(alarm: DriftAlarm) -> bytes:
    """Return the reliability diagram as PNG. Drawing is slow: call this in a thread."""
    return reliability_png(alarm.title, np.array(alarm.shown), np.array(alarm.correct, dtype=np.float64))
