"""incident.io's webhooks: https://docs.incident.io/api-reference/webhooks

Supports incidents, and alerts of its on-call product. Private incidents and alerts are skipped, because only their ids
are sent.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from collections.abc import Iterable, Mapping

from pydantic import AwareDatetime, Field

from adapters.alerts import fields
from adapters.alerts.fields import AlertEvent, Format, Payload, State, Words
from core.model.alert import AlertEnd, AlertStatus, EndReason
from core.model.errors import MalformedInput

SERVICES = ("affected_service", "affected_services")
ACTIVE = frozenset({"triage", "active", "live", "paused"})
ENDS = {
    "resolved": EndReason.CURED,
    "closed": EndReason.CURED,
    "learning": EndReason.CURED,
    "declined": EndReason.CANCELED,
    "canceled": EndReason.CANCELED,
    "merged": EndReason.MERGED,
}
"""Ends by the category of an incident's status, or by the status of an alert."""

REHEARSALS = frozenset({"test", "tutorial"})  # modes of incidents
LEAD = "lead"  # the type of the role whose holder has taken an incident
TOLERANCE = 300.0  # seconds between the time that is signed and now, as in the signer's own libraries
SIGNER_PREFIX = "whsec_"  # of a signing secret, which is Base64


class _Named(Payload):
    name: Words = ""


class _Option(Payload):
    value: Words = ""


class _Value(Payload):
    """A value of a custom field, or of an alert's attribute."""

    label: Words = ""
    literal: Words = ""
    catalog_entry: _Named | None = None
    value_text: Words = ""
    value_numeric: Words = ""
    value_link: Words = ""
    value_option: _Option | None = None
    value_catalog_entry: _Named | None = None

    @property
    def text(self) -> str:
        entry, option = self.value_catalog_entry or self.catalog_entry, self.value_option
        named = (entry.name if entry else "", option.value if option else "", self.label, self.literal)
        return next(filter(None, (*named, self.value_text, self.value_numeric, self.value_link)), "")


class _Field(Payload):
    custom_field: _Named
    values: list[_Value] | None = None


class _Attribute(Payload):
    attribute: _Named
    value: _Value | None = None
    array_value: list[_Value] | None = None


class _Status(Payload):
    category: Words = ""


class _Role(Payload):
    role_type: Words = ""


class _Assignment(Payload):
    role: _Role
    assignee: _Named | None = None


class _Incident(Payload):
    id: str
    name: Words = ""
    reference: Words = ""
    summary: Words = ""
    mode: Words = ""
    permalink: Words = ""
    created_at: AwareDatetime | None = None
    updated_at: AwareDatetime | None = None
    incident_status: _Status = _Status()
    severity: _Named | None = None
    incident_role_assignments: list[_Assignment] | None = None
    custom_field_entries: list[_Field] | None = None


class _StatusUpdate(Payload):
    incident: _Incident
    new_status: _Status


class _Alert(Payload):
    id: str
    alert_source_id: Words = ""
    deduplication_key: Words = ""
    title: Words = ""
    description: Words = ""
    status: Words = ""
    source_url: Words = ""
    created_at: AwareDatetime | None = None
    updated_at: AwareDatetime | None = None
    attributes: list[_Attribute] | None = None


class _Webhook(Payload):
    event_type: str
    incident_created: _Incident | None = Field(None, alias="public_incident.incident_created_v2")
    incident_updated: _Incident | None = Field(None, alias="public_incident.incident_updated_v2")
    status_updated: _StatusUpdate | None = Field(None, alias="public_incident.incident_status_updated_v2")
    alert_created: _Alert | None = Field(None, alias="public_alert.alert_created_v1")
    alert_resolved: _Alert | None = Field(None, alias="public_alert.alert_resolved_v1")


TYPES = {field.alias: name for name, field in _Webhook.model_fields.items() if field.alias}


def _is_signed(headers: Mapping[str, str], body: bytes, secret: str) -> bool:
    """Return whether one of the signatures is valid and new; there are several during a rotation of the secret."""
    id_, at, given = (headers.get(f"webhook-{name}", "") for name in ("id", "timestamp", "signature"))
    if not at.isascii() or not at.isdecimal() or abs(time.time() - float(at)) > TOLERANCE:
        return False
    signed = f"{id_}.{at}.".encode(errors="surrogateescape") + body
    expected = base64.b64encode(hmac.new(_key(secret), signed, hashlib.sha256).digest())
    return any(
        hmac.compare_digest(value.encode(errors="surrogateescape"), expected)
        for version, _, value in (each.partition(",") for each in given.split())
        if version == "v1"
    )


def _key(secret: str) -> bytes:
    """Return the key that a signing secret encodes, or the secret itself if it is not one of incident.io's."""
    try:
        return base64.b64decode(secret.removeprefix(SIGNER_PREFIX), validate=True)
    except ValueError:
        return secret.encode(errors="surrogateescape")


def _understood(webhook: _Webhook) -> AlertEvent | None:
    if webhook.event_type not in TYPES:
        if any(getattr(webhook, name) is not None for name in TYPES.values()):
            raise MalformedInput("The incident.io webhook has an unknown event_type; send it unchanged.")
        return None
    match getattr(webhook, TYPES[webhook.event_type]):
        case _StatusUpdate() as update:
            return _incident(update.incident, update.new_status, is_edit=update.new_status.category not in ACTIVE)
        case _Incident() as incident:
            return _incident(incident, incident.incident_status, is_edit=incident is webhook.incident_updated)
        case _Alert() as alert:
            ended = "" if alert.status == "firing" else alert.status
            is_over = bool(ended) or alert is webhook.alert_resolved
            return _alert(alert, AlertEnd(word=ended or "resolved") if is_over else AlertStatus.FIRING)
        case _:
            raise MalformedInput(f"The incident.io webhook lacks {webhook.event_type}; send it unchanged.")


def _incident(incident: _Incident, status: _Status, *, is_edit: bool) -> AlertEvent | None:
    if incident.mode in REHEARSALS:
        return None
    severity = incident.severity.name if incident.severity else ""
    going_on = AlertStatus.UPDATED if is_edit else AlertStatus.FIRING
    leads = (each.assignee for each in incident.incident_role_assignments or () if each.role.role_type == LEAD)
    by = next((lead.name for lead in leads if lead), None)
    custom = ((each.custom_field.name, each.values or ()) for each in incident.custom_field_entries or ())
    return AlertEvent(
        group=incident.id,
        title=incident.name,
        status=AlertEnd(word=status.category) if status.category in ENDS else going_on,
        severity=[severity],
        labels={"reference": incident.reference, "severity": severity} | _named(custom),
        is_unique=True,  # a body holds the time of its event
        services=SERVICES,
        description=incident.summary,
        url=incident.permalink,
        began=incident.created_at,
        as_of=incident.updated_at or incident.created_at,
        by=by if status.category not in ENDS else None,
    )


def _alert(alert: _Alert, status: State) -> AlertEvent:
    given = ((each.attribute.name, each.array_value or filter(None, (each.value,))) for each in alert.attributes or ())
    labels = _named(given)
    return AlertEvent(
        group=f"alert:{alert.alert_source_id}:{alert.deduplication_key or alert.id}",
        title=alert.title,
        status=status,
        severity=fields.severities(labels),
        labels=labels,
        is_unique=True,
        services=SERVICES,
        description=alert.description,
        url=alert.source_url,
        began=alert.created_at,
        as_of=alert.updated_at,
    )


def _named(given: Iterable[tuple[str, Iterable[_Value]]]) -> dict[str, str]:
    """Return the texts of fields by name, in the form of labels: `affected_service`."""
    return {"_".join(name.lower().split()): ", ".join(value.text for value in values) for name, values in given}


FORMAT = Format("incident_io", "incident.io", "send its own payload", _Webhook, ENDS, _understood, _is_signed)
