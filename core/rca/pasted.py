"""A text that somebody pasted after `rca`, as what it is: the output of a tool, or the log of a build."""

from __future__ import annotations

import re

from core.model.incident import Incident
from core.ports import FailedBuild
from core.rca.build_failure import is_build_log
from core.rca.tool_outputs.clues import ToolOutput

PASTED = "pasted text"  # stands for the tool
QUESTION = "question"  # source of the incident that a pasted text is made into
LEAST_LINES = 2  # of a text that holds more than what is asked
MAX_LINKS = 5  # to builds, that are followed

_LINK = re.compile(r"https?://[^\s<>|\"'`]+")
_BUILD = re.compile(r"\b(?:builds?|pipelines?|workflows?|CI|jenkins|compil\w+)\b", re.IGNORECASE)
_FAILED = re.compile(r"\b(?:fail\w*|broke\w*|red|errors?)\b", re.IGNORECASE)


def investigation_intent(question_id: str) -> str:
    """The intent of the message that shows what was found out for a question."""
    return f"investigation:{question_id}"


def pasted_build(incident: Incident) -> FailedBuild | None:
    """The build whose log was pasted; None if none was."""
    text = _pasted(incident)
    if text is None or not is_build_log(text):
        return None
    return FailedBuild("", incident.service, incident.service, "", "", text)


def pasted_output(incident: Incident) -> ToolOutput | None:
    """What was pasted of some tool's output; None if only a question was asked."""
    text = _pasted(incident)
    return ToolOutput(PASTED, {}, text) if text is not None else None


def build_links(incident: Incident) -> tuple[str, ...]:
    """The first MAX_LINKS addresses in what the alerts say, any of which may lead to a build."""
    texts = [incident.description]
    texts += [text for alert in incident.alerts[:MAX_LINKS] for text in (alert.url, *alert.labels.values())]
    found = [link.rstrip(".,;:)]}>") for text in texts for link in _LINK.findall(text)]
    return tuple(dict.fromkeys(found))[:MAX_LINKS]


def is_about_a_build(incident: Incident) -> bool:
    """Whether the alerts or the question speak of a build that failed."""
    text = f"{incident.description}\n{' '.join(incident.labels.values())}"
    return _BUILD.search(text) is not None and _FAILED.search(text) is not None


def _pasted(incident: Incident) -> str | None:
    if incident.source != QUESTION or not incident.alerts:
        return None
    text = incident.alerts[0].description
    return text if sum(1 for line in text.splitlines() if line.strip()) >= LEAST_LINES else None
