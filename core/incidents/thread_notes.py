"""Notes of people: the cause noted at the end, and in an incident's thread the service, changes and causes named or ruled out.

A claim is right if its cause agrees with the noted cause.

As in LM-PACE (section 5.1.1), agreement is a text similarity above a threshold, chosen by the best F1 on people's
labels.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from core.knowledge.terms import terms
from core.model.findings import Evidence, EvidenceKind, Explanation, Hypothesis, ThreadNote
from core.model.incident import Incident, Resolution
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
    is_question = _QUESTION.match(text) and not _is_named("not", text)
    return not is_question and any(pattern.search(text) is not None for pattern in (_DENIAL, _CAUSE, _CHANGE_ID))


def with_note(incident: Incident, note: ThreadNote) -> Incident:
    """Return the incident with one more note, unless it already has the note."""
    if note in (replace(each, readers=note.readers) for each in incident.notes):
        return incident
    return replace(incident, notes=tuple(sorted((*incident.notes, note), key=lambda each: each.at)[-MAX_NOTES:]))


def remarks(notes: Sequence[ThreadNote]) -> Iterator[Remark]:
    """Yield the remarks in the notes, clause by clause, oldest first."""
    for note in notes:
        for clause in _CLAUSE.split(note.text):
            words = frozenset(term for term in terms(clause) if len(term) > 1) - _GENERIC
            if words:
                yield Remark(note, clause.strip(), _DENIAL.search(clause) is not None, words)


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
    statements, lines = list(remarks(notes)), list(ruled_out)
    named, others = list[Hypothesis](), list[Hypothesis]()
    for hypothesis in explanation.hypotheses:
        change = hypothesis.change.id if hypothesis.change is not None else ""
        about = [remark for remark in statements if remark.means(hypothesis, change)]
        if not about:
            others.append(hypothesis)
        elif about[-1].denies:
            lines.append(f"{hypothesis.cause.rstrip('.')}: {DENIED}.")
        else:
            named.append(_with_evidence(hypothesis, about[-1].note))
    return replace(
        explanation,
        hypotheses=(*named, *others),
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


DEFAULT_THRESHOLD = 0.5  # used until MIN_LABELS claims have both a note and a person's label
MIN_LABELS = 20  # needed to fit the threshold
MAX_FIELD = 2_000  # characters per field of a note

NOTED = ("root_cause", "fix", "owner")  # the texts of a `Resolution`

_NAME = r"(?:root[ -]?cause|cause|fix(?:ed by)?|mitigation|resolution|owner|owning team)"
_MARKS = r"[^\w\n]{0,20}"  # list or emphasis marks; bounded, because it is tried at the start of every line
_FIELD = re.compile(
    rf"^{_MARKS}(?P<name>{_NAME}){_MARKS}:{_MARKS}(?:\n(?!{_MARKS}{_NAME}{_MARKS}:){_MARKS})?(?P<text>\S.*)$",
    re.IGNORECASE | re.MULTILINE,
)


def read_resolution(note: str) -> Resolution:
    """Return the fields of a note, separated by line ends or semicolons: “root cause: …; fix: …; owner: …”."""
    fields: dict[str, str] = {}
    for match in _FIELD.finditer(note.replace(";", "\n")):
        name = match["name"].lower()
        kind = "owner" if "own" in name else "root_cause" if "cause" in name else "fix"
        fields.setdefault(kind, match["text"].strip()[:MAX_FIELD])
    return Resolution(fields.get("root_cause", ""), fields.get("fix", ""), fields.get("owner", ""))


def is_resolution(text: str) -> bool:
    """Return whether a text begins with the name of a note's field and a colon."""
    return _FIELD.match(text.lstrip()) is not None


def completed(earlier: Resolution | None, note: Resolution) -> Resolution:
    """Return the note, with its empty fields taken from the earlier one."""
    if earlier is None:
        return note
    fields = [name for name in NOTED if not getattr(note, name)]
    kept = {name: getattr(earlier, name) for each in fields for name in (each, f"{each}_by")}
    return replace(note, readers=earlier.readers | note.readers, **kept)


def agreement(claimed: str, noted: str) -> float:
    """Return the share of the noted cause's terms that the claimed cause contains."""
    note = set(terms(noted))
    return len(note & set(terms(claimed))) / len(note) if note else 0.0


def fit_threshold(agreements: Sequence[float], correct: Sequence[bool]) -> float:
    """Return the agreement at which a claim counts as right: the best F1 on people's labels.

    Returns DEFAULT_THRESHOLD for fewer than MIN_LABELS labels, or if all are equal.
    """
    scores, labels = np.array(agreements, np.float64), np.array(correct, np.bool_)
    if len(labels) < MIN_LABELS or labels.all() or not labels.any():
        return DEFAULT_THRESHOLD
    levels = np.unique(scores)
    predictions = scores[:, None] >= levels[None, :]
    right = (predictions & labels[:, None]).sum(axis=0)
    f1 = 2 * right / (predictions.sum(axis=0) + labels.sum())
    best = int(np.argmax(f1))
    below = levels[best - 1] if best else 0.0
    return float((levels[best] + below) / 2)
