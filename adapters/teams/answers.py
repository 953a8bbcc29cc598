"""Answers in Teams, and the confidence in them."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import replace
from typing import Any

import numpy as np

from adapters.diagrams import reliability_png
from adapters.teams.elements import (
    MAX_SUMMARY,
    SIZE_BUDGETS,
    SPACE,
    Card,
    Element,
    Run,
    SizeBudget,
    about_message,
    card,
    container,
    control_actions,
    dotted,
    heading,
    line,
    listing,
    note,
    plain,
    prose,
    run,
    titled,
)
from core.answering.answer_view import ALSO, ASK, CONFLICTING, AnswerView, Further, answer_view, shown_sentences
from core.model.answer import Answer, Citation, Sentence
from core.model.badge import BadgeExplanation, BadgeReference
from core.model.messages import JUDGED_BY, WHY, DriftAlarm

SMALL: dict[str, Any] = {"size": "Small", "isSubtle": True}
MAX_MARKERS = 5  # per sentence
MAX_CITED = 10  # citations in the entity for Teams
FEEDBACK_LOOP = {"feedbackLoop": {"type": "default"}}  # thumbs below the message, which come back as submitAction
_FENCE = re.compile(r"^```[^\n]*\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)
MAX_FURTHER = 160  # characters of a further excerpt


def answer_card(answer: Answer, budget: SizeBudget) -> Card:
    view = answer_view(answer)
    urls = {citation.number: citation.deep_link for citation in view.sources}
    sentences = listing(view.said, budget, "sentences", lambda sentence: _sentence(sentence, urls, budget))
    nearest = listing(view.nearest, budget, "documents", lambda source: _nearest(source, budget))
    return _card(answer, view, [*sentences, *nearest], budget)


def spoken(answer: Answer) -> str:
    """Return the sentences of an answer as plain text for streaming. Further sentences only append to it."""
    return "\n".join(_plain_sentence(sentence) for sentence in shown_sentences(answer))


def footer_card(answer: Answer, budget: SizeBudget) -> Card:
    """Return the card below the streamed sentences of an answer."""
    return _card(answer, answer_view(answer), [], budget)


def _card(answer: Answer, view: AnswerView, body: list[Element], budget: SizeBudget) -> Card:
    titles = [*line([run(view.lead, budget.characters)]), *([heading(view.heading)] if view.heading else [])]
    actions = control_actions(view.buttons, (), view.more)
    return replace(
        card([*titles, *body, *_below(view, budget)], actions, view.summary),
        entities=about_message(by_model=answer.is_composed, citations=view.sources[: min(budget.entries, MAX_CITED)]),
        channel_data=FEEDBACK_LOOP if answer.prediction_id else None,
    )


def _plain_sentence(sentence: Sentence) -> str:
    words = "".join(each["text"] for each in prose(sentence.text, SIZE_BUDGETS[0].characters))
    return " ".join([words, *(f"[{number}]" for number in sentence.citations[:MAX_MARKERS])])


def _below(view: AnswerView, budget: SizeBudget) -> list[Element]:
    """Return contradictions, sources, further excerpts, contacts and the badge."""
    sources = [
        *titled("Sources", listing(view.sources, budget, "sources", lambda source: _source(source, budget))),
        *(element for each in view.further for element in _further(each, budget)),
    ]
    contacts = f"{ASK} {view.contacts}" if view.contacts else ""
    badge = [run(view.badge.text, 80, weight="Bolder", size="Small")] if view.badge is not None else []
    return [
        *titled(
            f"⚠️ {CONFLICTING}",
            listing(
                view.conflicting, budget, "sources", lambda source: [*_source(source, budget), *_quote(source, budget)]
            ),
        ),
        *([container(sources, separator=True, spacing="Medium")] if sources else []),
        *line([run(contacts, budget.characters, size="Small")]),
        *line(dotted(badge, [run(view.note, MAX_SUMMARY, **SMALL)])),
    ]


def _sentence(sentence: Sentence, urls: dict[int, str], budget: SizeBudget) -> list[Element]:
    markers: list[Run] = []
    for number in sentence.citations[:MAX_MARKERS]:
        markers += [SPACE, run(f"[{number}]", 10, url=urls.get(number, ""), color="Accent", size="Small")]
    shown: list[list[Run]] = []
    for index, piece in enumerate(_FENCE.split(sentence.text[: 2 * budget.characters])):
        if index % 2:
            shown += [_code_line(each, budget) for each in piece.splitlines() if each.strip()]
        elif piece.strip():
            shown.append(prose(piece, budget.characters))
    *others, last = shown or [[]]
    return [*(element for runs in others for element in line(runs, "None")), *line([*last, *markers])]


def _code_line(text: str, budget: SizeBudget) -> list[Run]:
    shown = run(text, budget.characters, fontType="Monospace")
    return [shown | {"text": f"{' ' * (len(text) - len(text.lstrip(' ')))}{shown['text']}"}]


def _source(citation: Citation, budget: SizeBudget) -> list[Element]:
    number = run(f"[{citation.number}]", 12, size="Small")
    updated = run(citation.updated, 30, **SMALL)
    return line([number, SPACE, *dotted([_title(citation, budget)], [updated], [_staleness(citation)])])


def _further(further: Further, budget: SizeBudget) -> list[Element]:
    excerpt = prose(further.text, min(budget.characters, MAX_FURTHER), **SMALL)
    return line([run(f"{ALSO}:", 10, **SMALL), SPACE, *dotted(excerpt, [_title(further.source, budget)])])


def _nearest(citation: Citation, budget: SizeBudget) -> list[Element]:
    titles = dotted([_title(citation, budget)], [_staleness(citation)])
    return [*line([run("•", 1), SPACE, *titles]), *_quote(citation, budget)]


def _quote(citation: Citation, budget: SizeBudget) -> list[Element]:
    return line(prose(citation.quote, budget.characters, **SMALL), "None")


def _staleness(citation: Citation) -> Run:
    return run(f"⚠️ {citation.staleness}" if citation.staleness else "", 60, size="Small")


def _title(citation: Citation, budget: SizeBudget) -> Run:
    return run(citation.name, min(budget.characters, 200), url=citation.deep_link, size="Small")


PICTURE_SCALE = 1.0  # small enough for a card: Teams limits a message to 28 KB
MAX_SENTENCE = 500  # characters


def badge_card(explanation: BadgeExplanation, budget: SizeBudget) -> Card:
    body = [
        heading(WHY),
        *line([run(explanation.badge.text, MAX_SUMMARY, weight="Bolder", color="Accent")]),
        *[element for sentence in explanation.sentences for element in line([run(sentence, MAX_SENTENCE)])],
        *titled(
            JUDGED_BY, listing(explanation.references, budget, "references", lambda each: _reference(each, budget))
        ),
        *note(explanation.withheld, MAX_SUMMARY),
        *note(explanation.for_experts, MAX_SENTENCE),
    ]
    return card(body, (), f"{WHY} {explanation.badge.text}".rstrip())


def _reference(reference: BadgeReference, budget: SizeBudget) -> list[Element]:
    return line(
        [run("•", 1), SPACE, run(reference.title, min(budget.characters, 200), url=reference.url, size="Small")]
    )


def alarm_card(alarm: DriftAlarm, picture: bytes) -> Card:
    """Return the card of an alarm. `picture` is the reliability diagram as PNG; empty to omit it."""
    elements = line([run(f"⚠ {alarm.text}", 1_000)])
    if not picture:
        return card(elements, (), alarm.text)
    data = f"data:image/png;base64,{b64encode(picture).decode()}"
    return card([*elements, {"type": "Image", "url": data, "altText": plain(alarm.title, 100)}], (), alarm.text)


def alarm_picture(alarm: DriftAlarm) -> bytes:
    """Return the diagram as PNG. Drawing is slow: call this in a thread."""
    shown, correct = np.array(alarm.shown), np.array(alarm.correct, dtype=np.float64)
    return reliability_png(alarm.title, shown, correct, PICTURE_SCALE)
