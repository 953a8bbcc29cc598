"""What is suggested about an incident in Slack: how severe it looks, and of which one it is probably another sign."""

from __future__ import annotations

from collections.abc import Sequence

from adapters.slack import blocks
from adapters.slack.blocks import Block
from adapters.slack.mrkdwn import escape
from adapters.slack.parts import LINE, NAME, badge, dotted
from core.incident import Incident
from core.incident_story import suggested_duplicate, suggested_severity
from core.messages import Verdict


def suggestions(incident: Incident) -> list[Block]:
    """One section, each suggestion with what says so; none where nothing is suggested."""
    severity, duplicate = incident.suggested_severity, incident.suggested_duplicate
    shown: list[str] = []
    if said := suggested_severity(incident):
        shown.append(f"*Severity*  {dotted(escape(said, NAME), badge(severity.badge if severity else None))}")
        shown += _why(severity.evidence[:1] if severity else ())
    if duplicate is not None:
        said = escape(suggested_duplicate(incident), LINE)
        shown.append(f"*Duplicate*  {dotted(said, badge(None if incident.duplicate_of else duplicate.badge))}")
        shown += _why(duplicate.evidence)
    return [blocks.section("\n".join(shown))] if shown else []


def suggestion_buttons(incident: Incident) -> list[tuple[Verdict, str]]:
    """Yes and no to each suggestion, with the claim that it is."""
    offered: list[tuple[Verdict, str]] = []
    if incident.suggested_severity is not None:
        severity = incident.suggested_severity.prediction_id
        offered += [(Verdict.SEVERITY_RIGHT, severity), (Verdict.SEVERITY_WRONG, severity)]
    if incident.suggested_duplicate is not None:
        duplicate = incident.suggested_duplicate.prediction_id
        offered += [(Verdict.DUPLICATE_RIGHT, duplicate), (Verdict.DUPLICATE_WRONG, duplicate)]
    return offered


def _why(evidence: Sequence[str]) -> list[str]:
    return [f"_{escape('; '.join(evidence), LINE)}_"] if evidence else []
