"""Keep only those quotes of a model that are in the text that it was shown (RCAgent, algorithm 1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rapidfuzz.fuzz import partial_ratio_alignment

from core.model.explanation import Evidence, EvidenceKind
from core.rca.log_lines import quote_of
from core.rca.observation_tools import LIST_CHANGES, LIST_DEPENDENCIES, READ_METRICS
from core.rca.observations import Observations

MIN_QUOTE = 12  # characters; a shorter quote would be found anywhere
KINDS = {
    READ_METRICS: EvidenceKind.METRIC,
    LIST_CHANGES: EvidenceKind.CHANGE,
    LIST_DEPENDENCIES: EvidenceKind.TOPOLOGY,
}
"""The kinds of what tools return, by name. What others return is text, like a log."""
ALIKE = 90.0  # percent of a quote's characters that must be in the text in order (algorithm 1, line 17: 0.9)


def grounded(quotes: Iterable[str], read: Mapping[str, str], observations: Observations) -> tuple[Evidence, ...]:
    """Return the quotes found in one of the texts that were `read`, in the wording of that text, with their sources.

    `read` maps each text to the call that returned it. A quote that is not found, or is too short, is dropped.
    """
    evidence_list = [evidence for quote in quotes if (evidence := _evidence(quote, read, observations)) is not None]
    return tuple({evidence.quote: evidence for evidence in evidence_list}.values())


def _evidence(quote: str, read: Mapping[str, str], observations: Observations) -> Evidence | None:
    quote = " ".join(quote.split())
    if len(quote) < MIN_QUOTE:
        return None
    matches = ((match, call) for text, call in read.items() if (match := matched(quote, text)))
    verbatim, call = next(matches, ("", ""))
    return _located(verbatim, call, observations) if verbatim else None


def matched(quote: str, text: str) -> str:
    """Return the part of a text that a quote copies; empty if it copies none."""
    text = " ".join(text.split())
    if len(text) < len(quote):
        return ""
    alignment = partial_ratio_alignment(quote, text, score_cutoff=ALIKE)
    return text[alignment.dest_start : alignment.dest_end].strip() if alignment else ""


def _located(verbatim: str, call: str, observations: Observations) -> Evidence:
    """Return the log record or change that a quote comes from, otherwise what the call returned, without a time."""
    for line in observations.logs:
        if _same(quote_of(line.text), verbatim):
            return Evidence(EvidenceKind.LOG, f"log of {line.service}", quote_of(line.text), line.at)
    for change in observations.changes:
        if change.id in verbatim or _same(change.title, verbatim):
            source = f"{change.name} by {change.author or 'unknown'}"
            return Evidence(EvidenceKind.CHANGE, source, change.title, change.at, change.url)
    return Evidence(KINDS.get(call.partition("(")[0], EvidenceKind.LOG), call, verbatim)


def _same(original: str, verbatim: str) -> bool:
    original = " ".join(original.split())
    return bool(original) and (original in verbatim or verbatim in original)
