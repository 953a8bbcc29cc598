"""An answer in Slack: cited sentences, or an honest “I don’t know”."""

from __future__ import annotations

import re

from adapters.slack import blocks
from adapters.slack.blocks import Block, listing
from adapters.slack.mrkdwn import code_block, link, prose
from adapters.slack.parts import Rendered, badge_footnote, context, fallback, feedback_buttons, section
from core.answering.answer import Answer, Citation, Sentence
from core.messages import Verdict

DONT_KNOW = "I don’t know: nothing that I may show here answers this."
NEAREST = "I don’t know, this is the nearest that I have:"

_FENCE = re.compile(r"^```[^\n]*\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)

BUTTONS = (Verdict.HELPFUL, Verdict.WRONG, Verdict.ASK_A_PERSON)

MAX_MARKERS = 5  # citation markers after one sentence

SENTENCE = 900  # characters
MARKER = 300  # characters, the address in it included
SOURCE = 500  # characters, the address in it included
QUOTE = 300  # characters


def cited_answer(answer: Answer) -> Rendered:
    urls = {citation.number: citation.deep_link for citation in answer.citations}
    sentences = [_sentence(sentence, urls) for sentence in answer.sentences]
    return Rendered(
        fallback(sentence.text for sentence in answer.sentences),
        [
            blocks.section(listing(sentences, "sentences")),
            *context(listing([_source(citation) for citation in answer.citations], "sources")),
            *context(badge_footnote(answer.badge)),
            *_buttons(answer),
        ],
    )


def abstention(answer: Answer) -> Rendered:
    nearest = [f"• {_source_link(citation)}{_quoted(citation.quote)}" for citation in answer.citations]
    said = NEAREST if nearest else DONT_KNOW
    return Rendered(
        fallback([said]),
        [
            blocks.section(said),
            *section(listing(nearest, "documents")),
            *context(badge_footnote(answer.badge)),
            *_buttons(answer),
        ],
    )


def _sentence(sentence: Sentence, urls: dict[int, str]) -> str:
    markers = [link(urls.get(number, ""), f"[{number}]", MARKER) for number in sentence.citations[:MAX_MARKERS]]
    pieces = _FENCE.split(sentence.text[: 2 * SENTENCE])
    shown = [
        code_block(piece, SENTENCE // 2) if index % 2 else prose(piece, SENTENCE // 2 if len(pieces) > 1 else SENTENCE)
        for index, piece in enumerate(pieces[:3])
    ]
    return " ".join(["\n".join(filter(None, shown)), *markers])


def _source(citation: Citation) -> str:
    updated = f" · updated {citation.updated_at:%Y-%m-%d}" if citation.updated_at else ""
    return f"[{citation.number}] {_source_link(citation)}{updated}"


def _source_link(citation: Citation) -> str:
    return link(citation.deep_link, " › ".join(filter(None, (citation.title, citation.heading))), SOURCE)


def _quoted(quote: str) -> str:
    text = prose(quote, QUOTE)
    return f"\n> {text}" if text else ""


def _buttons(answer: Answer) -> list[Block]:
    if answer.prediction_id is None:
        return []
    return feedback_buttons((verdict, answer.prediction_id) for verdict in BUTTONS)
