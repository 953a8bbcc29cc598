"""The webhook of a job runner, which signs its requests in the header X-Nightly-Signature."""

from __future__ import annotations

from typing import Annotated

from pydantic import AwareDatetime, Field

from adapters.alerts.fields import AlertEvent, Format, Payload, Words, matches
from core.model.alert import AlertEnd, AlertStatus, EndReason

ENDS = {"succeeded": EndReason.CURED, "disabled": EndReason.PAUSED}  # by the runner's words
FAILED = "failed"


class _Run(Payload):
    job: Annotated[str, Field(min_length=1)]  # identifies the incident, so it may not be missing or empty
    state: Annotated[str, Field(min_length=1)]
    title: Words = ""
    message: Words = ""
    service: Words = ""
    level: Words = ""
    runbook: Words = ""
    since: AwareDatetime | None = None
    at: AwareDatetime | None = None


def _understood(run: _Run) -> AlertEvent | None:
    if run.state == "test":
        return None
    going_on = AlertStatus.FIRING if run.state == FAILED else AlertStatus.UPDATED  # a word that is unknown ends nothing
    return AlertEvent(
        group=run.job,
        title=run.title,
        status=AlertEnd(word=run.state) if run.state in ENDS else going_on,
        severity=[run.level],
        labels={"job": run.job},
        service=run.service,
        description=run.message,
        runbook=run.runbook,
        began=run.since,
        as_of=run.at,
    )


FORMAT = Format(
    source="nightly",
    name="Nightly",
    remedy="send one run of a job",
    body=_Run,
    ends=ENDS,
    understand=_understood,
    is_signed=lambda headers, body, secret: matches(headers.get("X-Nightly-Signature", ""), body, secret),
)
