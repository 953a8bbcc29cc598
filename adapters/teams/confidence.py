"""Rendering of badge explanations and drift alarms in Teams."""

from __future__ import annotations

from base64 import b64encode

import numpy as np

from adapters.diagrams import reliability_png
from adapters.teams.elements import (
    MAX_SUMMARY,
    SPACE,
    Card,
    Element,
    SizeBudget,
    card,
    heading,
    line,
    listing,
    note,
    plain,
    run,
    titled,
)
from core.confidence.badge_explanation import BadgeExplanation, BadgeReference
from core.model.messages import JUDGED_BY, WHY, DriftAlarm

PICTURE_SCALE = 1.0  # small enough for a card: a message of Teams holds 28 KB in all
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
    return card(body, (), f"{WHY} {explanation.badge.text}")


def _reference(reference: BadgeReference, budget: SizeBudget) -> list[Element]:
    return line(
        [run("•", 1), SPACE, run(reference.title, min(budget.characters, 200), url=reference.url, size="Small")]
    )


def alarm_card(alarm: DriftAlarm, picture: bytes) -> Card:
    """Return the card of an alarm. `picture` is the reliability diagram as PNG; empty to omit it."""
    said = line([run(f"⚠ {alarm.text}", 1_000)])
    if not picture:
        return card(said, (), alarm.text)
    data = f"data:image/png;base64,{b64encode(picture).decode()}"
    return card([*said, {"type": "Image", "url": data, "altText": plain(alarm.title, 100)}], (), alarm.text)


def alarm_picture(alarm: DriftAlarm) -> bytes:
    """The diagram as PNG, drawn in a thread."""
    shown, correct = np.array(alarm.shown), np.array(alarm.correct, dtype=np.float64)
    return reliability_png(alarm.title, shown, correct, PICTURE_SCALE)
