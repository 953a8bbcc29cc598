"""Find the service that a text is about, and the changes and causes that people name or rule out in an incident's thread."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from core.knowledge.terms import terms
from core.model.explanation import Evidence, EvidenceKind, Explanation, Hypothesis, ThreadNote
from core.model.incident import Incident
from core.ports import Change
from core.rca.observations import Observations

MAX_NOTES = 20  # the latest notes of one incident
MAX_NOTE = 300  # characters kept of one note
MAX_READ = 1_000  # characters of a message; a longer one is a report, not a remark
DENIED = "ruled out by a person in the thread"
ENOUGH_TERMS = 0.5  # share of a remark's words that a hypothesis must contain, if the remark is about it

_QUESTION = re.compile(
    r"\W*(?:what|why|who|whose|when|where|which|how|is|are|was|were|does|did|do|can|could|should|would|has|have|any)\b",
    re.IGNORECASE,
)
_NOT = re.compile(r"\bnot\b", re.IGNORECASE)
_DENIAL = re.compile(
    r"\b(?:(?:it|this|that)(?:'s|’s| is| was)? ?(?:not|n't|n’t)|(?:is|was|were|are)(?: not|n't|n’t)|not (?:the|our|a|caused|due|"
    r"related)|ruled? out|nothing to do with|unrelated to|can exclude|innocent)\b",
    re.IGNORECASE,
)
_CAUSE = re.compile(
    r"\b(?:root cause|caused by|the cause|because of|due to|culprit|to blame|looks like|turns out|turned out|"
    r"(?:i|we) (?:think|suspect|bet|believe)|(?:it|this|that)(?:'s|’s| is| was) (?:the|our|a|an|probably|likely|most likely)|"
    r"it (?:broke|began|started) (?:after|with|when))\b",
    re.IGNORECASE,
)
_CHANGE_ID = re.compile(r"\b[A-Z][A-Z0-9]{1,9}-\d{1,9}\b|\b(?=[a-f]{0,39}\d)[0-9a-f]{7,40}\b|(?<!\w)[#!]\d{1,7}\b")
_CHANGE_SOURCE = re.compile(r"\S+ (\S+) by ")  # of evidence of the kind CHANGE
_CLAUSE = re.compile(r"[.;,!\n]\s|\s(?:but|although|however|rather|instead)\s", re.IGNORECASE)
_GENERIC = frozenset(
    term
    for word in (
        "it this that is was not isn't the a an our cause caused root because due to of by looks like turns out turned "
        "culprit blame think suspect bet believe probably likely most rule ruled nothing do with unrelated can exclude "
        "innocent i we change deploy here now already checked sure definitely really just service issue problem incident "
        "alert fault wrong be no so and on in at for since from after before with what there"
    ).split()
    for term in terms(word)
)


@dataclass(frozen=True, slots=True)
class Remark:
    """A clause of a note that blames or rules out something. `words` are its specific terms, `said` is its text."""

    note: ThreadNote
    said: str
    denies: bool
    words: frozenset[str]

    def means_change(self, change: Change) -> bool:
        """Return whether it names a change by its id, or consists only of words of that change."""
        if _is_named(change.id, self.said):
            return True
        if _CHANGE_ID.search(self.said):
            return False
        text = frozenset(terms(f"{change.service}\n{change.title}\n{change.detail}"))
        return bool(self.words) and self.words <= text

    def means_service(self, service: str) -> bool:
        """Return whether it names a service and no single change."""
        return bool(service) and _is_named(service, self.said) and not _CHANGE_ID.search(self.said)

    def means(self, hypothesis: Hypothesis, change: str) -> bool:
        """Return whether it is about a hypothesis that blames the change with this id (empty for none)."""
        if change and _is_named(change, self.said):
            return True
        if _CHANGE_ID.search(self.said):
            return False
        text = "\n".join([hypothesis.cause, hypothesis.service, *(each.quote for each in hypothesis.evidence)])
        return bool(self.words) and len(self.words.intersection(terms(text))) >= ENOUGH_TERMS * len(self.words)


def bears_on_cause(text: str) -> bool:
    """Return whether a message says what did or did not cause an incident, or names a change, and is not a question."""
    if len(text) > MAX_READ or text.rstrip().endswith("?"):
        return False
    is_question = _QUESTION.match(text) and not _NOT.search(text)
    return not is_question and any(pattern.search(text) is not None for pattern in (_DENIAL, _CAUSE, _CHANGE_ID))


def with_note(incident: Incident, note: ThreadNote) -> Incident:
    """Return the incident with one more note, unless it already has the note."""
    if note in (replace(each, readers=note.readers) for each in incident.notes):
        return incident
    return replace(incident, notes=tuple(sorted((*incident.notes, note), key=lambda each: each.at)[-MAX_NOTES:]))


def remarks(notes: Sequence[ThreadNote]) -> list[Remark]:
    """Return the remarks in the notes, clause by clause, oldest first."""
    clauses: list[Remark] = []
    for note in notes:
        for clause in _CLAUSE.split(note.text):
            words = frozenset(term for term in terms(clause) if len(term) > 1) - _GENERIC
            if words:
                clauses.append(Remark(note, clause.strip(), _DENIAL.search(clause) is not None, words))
    return clauses


def without_denied(observations: Observations) -> tuple[Observations, tuple[str, ...]]:
    """Return the observations without what people ruled out, and a line for each ruled-out change and service.

    The data of the incident's own service stays, because it is what has to be explained.
    """
    denied = [remark for remark in remarks(observations.incident.notes) if remark.denies]
    ruled_out = {
        f"{change.name} of {change.service}": remark
        for remark in denied
        for change in observations.changes
        if remark.means_change(change) or remark.means_service(change.service)
    }
    kept = tuple(change for change in observations.changes if f"{change.name} of {change.service}" not in ruled_out)
    others = set(observations.services) - {observations.incident.service}
    services = {service: remark for remark in denied for service in others if remark.means_service(service)}
    left = replace(
        observations,
        changes=kept,
        logs=tuple(line for line in observations.logs if line.service not in services),
        series=tuple(series for series in observations.series if series.service not in services),
    )
    return left, tuple(f"{what}: {DENIED}." for what in (*ruled_out, *services))


def named_first(explanation: Explanation, notes: Sequence[ThreadNote], ruled_out: Collection[str]) -> Explanation:
    """Return the explanation with the causes that people named first, citing them, and without those they ruled out."""
    statements = remarks(notes)
    kept: list[tuple[bool, Hypothesis]] = []
    lines = list(ruled_out)
    for hypothesis in explanation.hypotheses:
        about = [remark for remark in statements if remark.means(hypothesis, _change_of(hypothesis))]
        latest = about[-1] if about else None
        if latest is not None and latest.denies:
            lines.append(f"{hypothesis.cause.rstrip('.')}: {DENIED}.")
            continue
        kept.append((latest is None, hypothesis if latest is None else _with_evidence(hypothesis, latest.note)))
    kept.sort(key=lambda each: each[0])  # stable: the others stay in their order
    return replace(
        explanation,
        hypotheses=tuple(hypothesis for _, hypothesis in kept),
        ruled_out=(*lines, *explanation.ruled_out),
        rechecked_after=notes[-1] if notes else None,
    )


def _with_evidence(hypothesis: Hypothesis, note: ThreadNote) -> Hypothesis:
    return replace(
        hypothesis,
        evidence=(
            Evidence(EvidenceKind.NOTE, note.person, note.text, note.at, readers=note.readers),
            *hypothesis.evidence,
        ),
    )


def _change_of(hypothesis: Hypothesis) -> str:
    """Return the id of the change that a hypothesis is about; empty if it is about none."""
    changes = (each.source for each in hypothesis.evidence if each.kind is EvidenceKind.CHANGE)
    match = _CHANGE_SOURCE.match(next(changes, ""))
    return match[1] if match else ""


def _is_named(name: str, text: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text, re.IGNORECASE) is not None


def service_in(text: str, services: Iterable[str]) -> str:
    """Return the service that a text names first; empty if it names none.

    Of several that start at the same position the longest counts: `pg-booking`, not `pg`.
    """
    places = {service: place for service in services if (place := _place_of(service, text)) is not None}
    return min(places, key=lambda service: (places[service], -len(service), service), default="")


def _place_of(service: str, text: str) -> int | None:
    """Return the position of the first mention of a service, ignoring case; None if there is none.

    A part of a longer word, such as `till` in “until”, does not count, nor does the beginning of a host's name. Letters
    of scripts without spaces between words may be adjacent.
    """
    match = re.search(rf"(?<![^\W_]){re.escape(service)}(?![^\W_]|\.[\w-]+\.)", text, re.IGNORECASE | re.ASCII)
    return match.start() if match else None
