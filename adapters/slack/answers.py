"""An answer in Slack: cited sentences, or an honest “I don’t know”."""

from __future__ import annotations

import re

from adapters.slack import blocks
from adapters.slack.blocks import Block, listing
from adapters.slack.mrkdwn import code_block, cut, escape, link, prose
from adapters.slack.parts import LINE, Rendered, badge, context, dotted, fallback, feedback_buttons, section
from core.answering.answer import Answer, Citation, Sentence
from core.model.messages import ASK, CONFLICTING, TENTATIVE, Verdict

DONT_KNOW = "I don’t know: nothing that I may show here answers this."
NEAREST = "I don’t know, this is the nearest that I have:"

_FENCE = re.compile(r"^```[^\n]*\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)

BUTTONS = (Verdict.HELPFUL, Verdict.WRONG, Verdict.ASK_A_PERSON, Verdict.WHY_ANSWER)

MAX_MARKERS = 5  # citation markers after one sentence

SENTENCE = 900  # characters
SENTENCES = 5_000  # characters of all sentences: what is left of a message by sources, conflicts and the rest
WHOLE = 100_000  # characters of the file that holds an answer which is too long for a message
MARKER = 300  # characters, the address in it included
SOURCE = 500  # characters, the address in it included
QUOTE = 300  # characters
CONFLICTS = 2_500  # characters of all that contradicts an answer
MAX_CONTACTS = 3


def cited_answer(answer: Answer) -> Rendered:
    urls = {citation.number: citation.deep_link for citation in answer.citations}
    sentences = [_sentence(sentence, urls) for sentence in answer.shown]
    return Rendered(
        fallback(sentence.text for sentence in answer.shown),
        [
            *context(TENTATIVE if answer.tentative else ""),
            *blocks.sections(sentences, "sentences", SENTENCES),
            *_conflicts(answer),
            *context(listing([_source(citation) for citation in answer.citations], "sources")),
            *context(badge(answer.badge)),
            *context(escape(answer.note, LINE)),
            *_buttons(answer),
        ],
    )


def abstention(answer: Answer) -> Rendered:
    nearest = [f"• {_nearest(citation)}" for citation in answer.citations]
    said = NEAREST if nearest else DONT_KNOW
    return Rendered(
        fallback([said]),
        [
            blocks.section(said),
            *section(listing(nearest, "documents")),
            *context(_contacts(answer)),
            *context(badge(answer.badge)),
            *context(escape(answer.note, LINE)),
            *_buttons(answer),
        ],
    )


def whole_answer(answer: Answer) -> str:
    """All sentences and sources as plain text; empty if the message shows every sentence."""
    urls = {citation.number: citation.deep_link for citation in answer.citations}
    lines = [_sentence(sentence, urls) for sentence in answer.shown]
    if blocks.fitting(lines, "sentences", SENTENCES) == lines:
        return ""
    said = [f"{each.text} {''.join(f'[{number}]' for number in each.citations)}" for each in answer.shown]
    sources = [f"[{each.number}] {each.title} {each.deep_link}".rstrip() for each in answer.citations]
    return cut("\n\n".join([*said, *sources]), WHOLE) + "\n"


def _sentence(sentence: Sentence, urls: dict[int, str]) -> str:
    markers = [link(urls.get(number, ""), f"[{number}]", MARKER) for number in sentence.citations[:MAX_MARKERS]]
    pieces = _FENCE.split(sentence.text[: 2 * SENTENCE])
    shown = [
        code_block(piece, SENTENCE // 2) if index % 2 else prose(piece, SENTENCE // 2 if len(pieces) > 1 else SENTENCE)
        for index, piece in enumerate(pieces[:3])
    ]
    return " ".join(["\n".join(filter(None, shown)), *markers])


def _conflicts(answer: Answer) -> list[Block]:
    lines = [
        f"• {_source(source)}{_quoted(source.quote)}" for conflict in answer.conflicts for source in conflict.sources
    ]
    return section(f"⚠️ *{CONFLICTING}*\n{listing(lines, 'sources', CONFLICTS)}" if lines else "")


def _contacts(answer: Answer) -> str:
    names = [escape(contact.text, LINE) for contact in answer.contacts[:MAX_CONTACTS]]
    return f"{ASK} {' · '.join(names)}" if names else ""


def _source(citation: Citation) -> str:
    updated = f"updated {citation.updated_at:%Y-%m-%d}" if citation.updated_at else ""
    stale = f"⚠️ {citation.staleness}" if citation.staleness else ""
    return dotted(f"[{citation.number}] {_source_link(citation)}", updated, stale)


def _nearest(citation: Citation) -> str:
    return f"{dotted(_source_link(citation), citation.staleness)}{_quoted(citation.quote)}"


def _source_link(citation: Citation) -> str:
    return link(citation.deep_link, " › ".join(filter(None, (citation.title, citation.heading))), SOURCE)


def _quoted(quote: str) -> str:
    text = prose(quote, QUOTE)
    return f"\n> {text}" if text else ""


def _buttons(answer: Answer) -> list[Block]:
    if answer.prediction_id is None:
        return []
    return feedback_buttons((verdict, answer.prediction_id) for verdict in BUTTONS)
