"""Fill the placeholders of a runbook's command from the labels of an incident's alerts."""

from __future__ import annotations

import re
from functools import partial

from core.model.incident import Incident

_PLACEHOLDER = re.compile(
    r"<([A-Za-z][\w .-]*)>|\{\{\s*(?:\$?labels\.|\$)?([A-Za-z_]\w*)\s*\}\}|\$\{?([A-Za-z_]\w*)\}?|(?<!\S)(?:\.{3}|…)(?!\S)"
)
_FILLERS = frozenset({"your", "the", "name"})  # words of a placeholder that say nothing: <your pod name>


def filled_command(command: str, incident: Incident) -> str:
    """Return a runbook's command with each placeholder filled; empty if one cannot be.

    A value is filled in if all alerts that state it agree on it, and if a shell takes it as one plain word. Variables that
    the command itself sets are no placeholders.
    """
    try:
        return _PLACEHOLDER.sub(partial(_filled, incident), command)
    except LookupError:
        return ""


def _filled(incident: Incident, match: re.Match[str]) -> str:
    words = match.string.replace(";", " ").split()
    is_literal = match.string[: match.start()].count("'") % 2 == 1  # a shell expands nothing in single quotes
    is_set = match[3] in words or any(word.startswith(f"{match[3]}=") for word in words)  # `for pod in`, `pod=$(…)`
    if match[3] and (is_literal or is_set):
        return match[0]
    key = _key(match[1] or match[2] or match[3] or "")
    stated = [{"service": incident.service}, *(alert.labels for alert in incident.alerts)]
    values = {value for labels in stated for name, value in labels.items() if key and value and _key(name) == key}
    value = values.pop() if len(values) == 1 else ""
    is_plain = value.isascii() and all(character.isalnum() or character in "._:/@-" for character in value)
    if not value or not is_plain or value.startswith("-"):
        raise LookupError(match[0])
    return value


def _key(name: str) -> str:
    words = name.lower().replace("-", " ").replace("_", " ").replace(".", " ").split()
    return "".join(word for word in words if word not in _FILLERS)
