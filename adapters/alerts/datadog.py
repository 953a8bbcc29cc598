"""Datadog's webhooks: https://docs.datadoghq.com/integrations/webhooks/

Users configure the payload. This format reads Datadog's default payload, whose title states whether a monitor triggered
or recovered, and fields named after the variables: `"alert_id": "$ALERT_ID"`.
"""

from __future__ import annotations

import re

from adapters.alerts import fields
from adapters.alerts.fields import AlertEvent, Format, Payload, State, Words
from core.model.alert import AlertEnd, AlertStatus, EndReason
from core.model.errors import MalformedInput

ENDS = {"recovered": EndReason.CURED}
STATUSES: dict[str, State] = {
    "recovered": AlertEnd(word="recovered"),
    "triggered": AlertStatus.FIRING,
    "re-triggered": AlertStatus.FIRING,
    "no data": AlertStatus.FIRING,
    "re-no data": AlertStatus.FIRING,
    "warn": AlertStatus.FIRING,
    "re-warn": AlertStatus.FIRING,
    "renotify": AlertStatus.FIRING,
}
"""Alert states by the value of $ALERT_TRANSITION, or by the text in brackets of the title."""

NO_DATA = frozenset({"no data", "re-no data"})
WARNINGS = frozenset({"warn", "re-warn"})

TITLE = re.compile(
    r"(?P<test>\[test\]\s*)?(\[(?P<priority>p[1-5])\]\s*)?"
    rf"(\[(?P<transition>{'|'.join(STATUSES)})(\s+on\s+\{{(?P<scope>[^{{}}\]]*)\}})?\]\s*)?(?P<name>.*)",
    re.IGNORECASE | re.DOTALL,
)


_PICTURE = re.compile(r"\[?!\[[^\[\]]{0,200}\]\([^()\s]{1,2000}\)(?:\]\([^()\s]{1,2000}\))?")
_HANDLE = re.compile(r"(?<!\S)@[\w.@-]{1,200}(?!\S)")
_FOOTER = re.compile(r"- - -$|\[\[[^\[\]]{1,100}\]\(http|The monitor was last triggered at ")
_BLANK = re.compile(r"\n{3,}")


class _Webhook(Payload):
    id: Words = ""
    title: Words = ""
    body: Words = ""
    date: Words = ""
    last_updated: Words = ""
    alert_id: Words = ""
    alert_title: Words = ""
    alert_transition: Words = ""
    alert_type: Words = ""
    alert_priority: Words = ""
    alert_scope: Words = ""
    hostname: Words = ""
    tags: Words = ""
    link: Words = ""


def _understood(webhook: _Webhook) -> AlertEvent | None:
    title = TITLE.fullmatch((webhook.title or webhook.alert_title)[: fields.MAX_SUMMARY_LENGTH])
    assert title is not None, "every part of it may be missing"
    if title["test"]:
        return None
    transition = _filled_in(webhook.alert_transition).lower() or (title["transition"] or "").lower()
    status = STATUSES.get(transition)
    if status is None:
        raise MalformedInput(
            "The Datadog webhook does not say whether its monitor was triggered or has recovered: "
            'add "alert_transition": "$ALERT_TRANSITION" to its payload.'
        )
    monitor = _filled_in(webhook.alert_id) or title["name"]
    scope = _filled_in(webhook.alert_scope) or title["scope"] or _filled_in(webhook.hostname)
    priority = _filled_in(webhook.alert_priority) or title["priority"] or ""
    kind = "" if isinstance(status, AlertEnd) else _filled_in(webhook.alert_type)  # then `success`
    return AlertEvent(
        group=monitor,
        instance=fields.digest(monitor, scope),  # one monitor alerts for each host, or each group of its configuration
        title=f"No data for “{title['name']}”" if transition in NO_DATA else title["name"],
        status=status,
        severity=[priority, "warning" if transition in WARNINGS else "", kind],
        labels=fields.tags(f"{scope},{_filled_in(webhook.tags)}".split(",")),
        description=_monitor_text(_filled_in(webhook.body)),
        url=webhook.link,
        began=fields.sent_time(webhook.date),
        as_of=fields.sent_time(webhook.last_updated) or fields.sent_time(webhook.date),
    )


def _monitor_text(body: str) -> str:
    """Return the text of a monitor, without the marks, notified handles, pictures and links that Datadog puts around it."""
    lines = (
        _HANDLE.sub("", _PICTURE.sub("", line)).strip()
        for line in body.replace("%%%", "").replace("**", "").splitlines()
    )
    return _BLANK.sub("\n\n", "\n".join(line for line in lines if not _FOOTER.match(line))).strip()


def _filled_in(value: str) -> str:
    """Return the value; empty if its variable has no meaning for the event."""
    return "" if value.lower() in {"null", "none"} or value.startswith("$") else value


FORMAT = Format(
    "datadog", "Datadog", "send Datadog's own payload or fields named after its variables", _Webhook, ENDS, _understood
)
