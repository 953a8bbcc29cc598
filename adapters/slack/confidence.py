"""Rendering of badge explanations and drift alarms in Slack."""

from __future__ import annotations

import numpy as np

from adapters.diagrams import reliability_png
from adapters.slack import blocks
from adapters.slack.mrkdwn import escape, link
from adapters.slack.parts import LINE, Rendered, badge, context, dotted, fallback
from core.confidence.badge_explanation import BadgeExplanation
from core.model.messages import JUDGED_BY, WHY, DriftAlarm

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
            *context(listed),
            *context(escape(explanation.for_experts, 2 * LINE)),
        ],
    )


def drift_alarm(alarm: DriftAlarm) -> Rendered:
    return Rendered(fallback([alarm.text]), [blocks.section(f"⚠️ {escape(alarm.text, 4 * LINE)}")])


def alarm_diagram(alarm: DriftAlarm) -> bytes:
    """The reliability diagram as PNG, drawn in a thread."""
    return reliability_png(alarm.title, np.array(alarm.shown), np.array(alarm.correct, dtype=np.float64))
