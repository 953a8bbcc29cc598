"""Confidence in Slack: what a badge rests on, a call for the owner, and the alarm when badges no longer hold."""

from __future__ import annotations

import re

import numpy as np

from adapters.diagrams import reliability_png
from adapters.slack import blocks
from adapters.slack.mrkdwn import escape, link
from adapters.slack.parts import LINE, NAME, Rendered, badge, context, dotted, fallback
from core.confidence.badge_explanation import BadgeExplanation
from core.messages import JUDGED_BY, ON_CALL, PING, WHY, DriftAlarm, OwnerPing

REFERENCE = 400  # characters, the address in it included
USER_GROUP = re.compile(r"^S[A-Z0-9]{2,20}$")  # an id of anything else, as of a whole channel, mentions nobody


def badge_explanation(explanation: BadgeExplanation) -> Rendered:
    references = [f"• {link(each.url, each.title, REFERENCE)}" for each in explanation.references]
    if explanation.withheld:
        references.append(f"• {explanation.withheld}")
    listed = f"*{JUDGED_BY}*\n{blocks.listing(references, 'references')}" if references else ""
    return Rendered(
        fallback([WHY, *explanation.sentences]),
        [
            blocks.section(dotted(f"*{WHY}*", badge(explanation.badge))),
            blocks.section("\n".join(f"• {escape(sentence, 2 * LINE)}" for sentence in explanation.sentences)),
            *context(listed),
        ],
    )


def owner_ping(ping: OwnerPing) -> Rendered:
    group = f"<!subteam^{ping.mention}>" if USER_GROUP.match(ping.mention) else f"*{escape(ping.team_name, NAME)}*"
    on_call = f"{ON_CALL}: {escape(', '.join(ping.on_call), LINE)}" if ping.on_call else ""
    text = dotted(f"{group}: {PING}", badge(ping.badge), on_call)
    return Rendered(text, [blocks.section(text)])


def drift_alarm(alarm: DriftAlarm) -> Rendered:
    return Rendered(fallback([alarm.text]), [blocks.section(f"⚠️ {escape(alarm.text, 4 * LINE)}")])


def alarm_diagram(alarm: DriftAlarm) -> bytes:
    """The reliability diagram as PNG. Takes about a second: drawn in a thread."""
    return reliability_png(alarm.title, np.array(alarm.shown), np.array(alarm.correct, dtype=np.float64))
