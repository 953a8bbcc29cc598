"""The alerts that bots posted in the channels of a Slack export, as the entries of an export of incidents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from adapters.posted.recognise import recognise
from adapters.posted.slack import posted_of
from adapters.sources.section import open_archive
from core.incidents.thread_notes import read_resolution
from core.model.alert import AlertStatus, Posted, PostedKind, Recognised
from core.model.errors import MalformedInput, SourceUnavailable

PRIVATE = "groups.json"  # channels


def posted_alerts(export: Path) -> list[dict[str, Any]]:
    """Return an entry for each time that an alert fired until it ended, oldest first. Raises MalformedInput.

    An export has of an edited message its last form alone: one that tells an end began when it was posted. What people said
    of the cause and the owner in the thread (“root cause: …; owner: …”) are the labels.
    """
    try:
        with open_archive(export) as archive:
            channels = [(row, name == PRIVATE) for name in ("channels.json", PRIVATE) for row in archive.rows(name)]
            messages = [
                (message, str(channel.get("id")), is_private)
                for channel, is_private in channels
                for file in archive.files(str(channel.get("name")))
                for message in archive.rows(file)
            ]
    except SourceUnavailable as error:
        raise MalformedInput(str(error)) from None
    entries, latest = list[dict[str, Any]](), dict[tuple[str, str], dict[str, Any]]()
    for message, channel, is_private in sorted(messages, key=lambda each: str(each[0].get("ts"))):
        root = (channel, str(message.get("thread_ts") or message.get("ts")))
        posted = posted_of(message, channel)
        if posted is None:
            if root in latest:
                _label(latest[root], str(message.get("text")))
            continue
        recognised = recognise(posted)
        entry = next((latest[each] for each in (root, *_groups(posted, recognised)) if each in latest), None)
        (alert,) = recognised.delivery.alerts
        if entry is None or entry["resolved_at"]:
            if recognised.kind is not PostedKind.ALERT or posted.place.thread is not None:
                continue
            if alert.status is AlertStatus.RESOLVED and not posted.revision:
                continue  # of an alert that fired before the export begins
            entry = _entry(posted, recognised) | {"private": is_private}
            entries.append(entry)
        if alert.status is AlertStatus.RESOLVED:
            entry["resolved_at"] = posted.at.timestamp()
        latest |= dict.fromkeys((root, *_groups(posted, recognised)), entry)
    return entries


def _groups(posted: Posted, recognised: Recognised) -> list[tuple[str, str]]:
    return [(posted.sender, key) for key in recognised.keys]


def _entry(posted: Posted, recognised: Recognised) -> dict[str, Any]:
    (alert,) = recognised.delivery.alerts
    return {
        "id": f"{posted.place.channel}:{posted.message_id}",
        "title": recognised.title,
        "description": alert.description,
        "service": alert.service,
        "severity": str(alert.severity),
        "started_at": float(posted.message_id),
        "resolved_at": None,
        "url": alert.url,
    }


def _label(entry: dict[str, Any], text: str) -> None:
    note = read_resolution(text)
    labels = {"owner": note.owner, "root_cause": note.root_cause}
    entry.update({name: text for name, text in labels.items() if text})
