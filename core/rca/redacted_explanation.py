"""An explanation without what must not be shown of the texts that systems gave."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from core.model.incident import BlamedChange, Evidence, Explanation, Hypothesis

Clean = Callable[[str], str]


def redacted_explanation(explanation: Explanation, clean: Clean) -> Explanation:
    """The causes, quotes and timeline as `clean` leaves them; where they come from stays as it is."""
    return replace(
        explanation,
        hypotheses=tuple(_hypothesis(each, clean) for each in explanation.hypotheses),
        ruled_out=tuple(clean(line) for line in explanation.ruled_out),
        timeline=tuple(replace(entry, text=clean(entry.text)) for entry in explanation.timeline),
    )


def _hypothesis(hypothesis: Hypothesis, clean: Clean) -> Hypothesis:
    return replace(
        hypothesis,
        cause=clean(hypothesis.cause),
        next_check=clean(hypothesis.next_check),
        evidence=_evidence(hypothesis.evidence, clean),
        contradicting=_evidence(hypothesis.contradicting, clean),
        change=_change(hypothesis.change, clean) if hypothesis.change else None,
        subject=clean(hypothesis.subject),
        followed=tuple(
            replace(each, subject=clean(each.subject), what=clean(each.what)) for each in hypothesis.followed
        ),
    )


def _change(change: BlamedChange, clean: Clean) -> BlamedChange:
    return replace(
        change,
        title=clean(change.title),
        files=tuple(map(clean, change.files)),
        moved=tuple(map(clean, change.moved)),
        shared=tuple(map(clean, change.shared)),
    )


def _evidence(evidence: Iterable[Evidence], clean: Clean) -> tuple[Evidence, ...]:
    return tuple(replace(each, quote=clean(each.quote)) for each in evidence)
