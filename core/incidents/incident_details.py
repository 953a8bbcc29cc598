"""The details of an incident, as sections that are the same in every chat."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from core.incidents.incident_view import irregularities, is_by_model
from core.model.badge import Badge
from core.model.findings import Evidence, Explanation, GapReason, Hypothesis, SimilarIncident, Vote
from core.model.incident import Hop, Incident
from core.model.language_model import Trajectory
from core.model.message_view import Line, Link, Listing, MessageView

MAX_HYPOTHESES = 3  # shown in full

DETAILS = "Details"
TIMELINE = "Timeline (UTC)"


def details_view(incident: Incident) -> MessageView:
    """Return the reply in the incident's thread: evidence, similar incidents, timeline, what would disprove the cause."""
    parts = incident_details(incident) or (Line("Nothing is known yet."),)
    return MessageView("details", f"{DETAILS}: {incident.title}", parts, title=DETAILS, by_model=is_by_model(incident))


def incident_details(incident: Incident) -> tuple[Listing, ...]:
    """Return the sections that are not empty."""
    return tuple(section for section in _sections(incident) if section.entries)


def _sections(incident: Incident) -> Iterator[Listing]:
    explanation = incident.findings.explanation
    yield Listing("What the alert says", tuple(_alerts(incident)), "lines")
    yield Listing("Also", tuple(map(Line, irregularities(incident))), "lines")
    yield Listing("Why this owner", tuple(map(Line, owner_story(incident))), "reasons")
    yield Listing("How the teams voted", tuple(map(Line, format_votes(incident))), "votes")
    if explanation is not None:
        yield from _causes(explanation)
        yield Listing("Ruled out", tuple(map(Line, explanation.ruled_out)))
        yield Listing("Not checked", tuple(map(Line, explanation.unchecked)))
    yield Listing("Similar incidents", tuple(map(_similar, incident.findings.precedents)))
    if explanation is not None:
        yield Listing(TIMELINE, tuple(Line(entry.text, at=entry.at) for entry in explanation.timeline), "entries")
        yield Listing(
            "Steps of the language model",
            tuple(map(Line, (*_steps(explanation.trajectory), *filter(None, incident.findings.asked.split("; "))))),
            "steps",
        )
        passed = dict.fromkeys(gap.detail for gap in explanation.gaps if gap.reason.is_read)
        unread = dict.fromkeys(gap.text for gap in explanation.gaps if not gap.reason.is_read)
        yield Listing("No failed build", tuple(map(Line, passed)), "builds")
        yield Listing("Not read", tuple(map(Line, unread)))


def _alerts(incident: Incident) -> Iterator[Line]:
    """Yield the first alerts, each with its text beyond the incident's title."""
    for alert in incident.alerts[:3]:
        texts = (text for text in (alert.summary, alert.description) if text and text != incident.title)
        yield Line(" ".join(dict.fromkeys(texts)), source=Link(alert.name, alert.url), at=alert.starts_at)


def _steps(trajectory: Trajectory | None) -> Iterator[str]:
    """Yield the calls of a language model, with its reasons, and how many of its replies were of no use."""
    if trajectory is None:
        return
    if trajectory.finding is None:
        yield f"It came to no finding: {trajectory.ending}."
    yield from (step.summary for step in trajectory.steps if not step.fault)
    counts = (
        ("Replies that could not be used", sum(bool(step.fault) for step in trajectory.steps)),
        ("Sentences left out of its finding, because nothing that it read says so", trajectory.left_out),
    )
    yield from (f"{name}: {number}" for name, number in counts if number)


def _causes(explanation: Explanation) -> Iterator[Listing]:
    if not explanation.hypotheses:
        yield Listing("No cause found", (Line("Nothing that I read explains this incident."),))
    for number, hypothesis in enumerate(explanation.hypotheses[:MAX_HYPOTHESES], 1):
        badge = explanation.badge if number == 1 else hypothesis.badge
        yield _cause(f"{number}. {hypothesis.cause.rstrip('.')}", hypothesis, badge)
    missing = len(explanation.hypotheses) - MAX_HYPOTHESES
    if missing > 0:
        yield Listing("Other causes", (Line(f"and {missing} more hypotheses"),))


def _cause(title: str, hypothesis: Hypothesis, badge: Badge | None) -> Listing:
    """Return a cause, first what a chat that shows few lines must not leave out: who found it, and what to do."""
    entries = (
        *_remarks(
            ("Found by the language model", hypothesis.found_by),
            ("Solution proposed by the language model", hypothesis.solution),
        ),
        *map(_evidence, hypothesis.evidence),
        *(_evidence(each, "Evidence against it: ") for each in hypothesis.contradicting),
        *_remarks(
            ("Would disprove it", hypothesis.disproof),
            ("Next check", hypothesis.next_check),
            ("Where to fix it", str(hypothesis.responsibility or "")),
        ),
    )
    return Listing(title, entries, "lines of evidence", badge)


def _remarks(*remarks: tuple[str, str]) -> Iterator[Line]:
    return (Line(f"{name}: {text}") for name, text in remarks if text)


def _evidence(evidence: Evidence, against: str = "") -> Line:
    link = Link(evidence.source, evidence.url)
    return Line(f"{against}{evidence.kind}", quote=evidence.quote, source=link, at=evidence.at)


def _similar(past: SimilarIncident) -> Line:
    facts = (("owner", past.owner), ("cause", past.root_cause), ("fix", past.fix))
    summary = ". ".join(f"{name}: {value.rstrip('.')}" for name, value in facts if value)
    same = "same cause. " if past.same_cause else ""
    return Line(f"{same}{summary}", source=Link(f"{past.id} {past.title}", past.url))


def owner_story(incident: Incident) -> tuple[str, ...]:
    """Return the reasons for the owner, and the reassignments by people. Untrusted."""
    owner = incident.findings.likely_owner
    names = _names(incident)
    return (*(owner.reasons if owner is not None else ()), *(_hop(hop, names) for hop in incident.hops))


def format_votes(incident: Incident) -> tuple[str, ...]:
    """Return every vote, the last round first. Each reason is listed once, and not if it is a reason for the owner."""
    votes = incident.findings.owner.votes if incident.findings.owner is not None else ()
    names = _names(incident)
    reasons = {reason.casefold().rstrip(".") for reason in owner_story(incident)}
    rounds = {(vote.hop, vote.round) for vote in votes}
    latest_first = sorted(votes, key=lambda vote: (-vote.hop, -vote.round))
    return tuple(dict.fromkeys(_vote(each, names, reasons, names_round=len(rounds) > 1) for each in latest_first))


def _names(incident: Incident) -> dict[str, str]:
    """Return the names of the teams that took part, by team id."""
    if incident.findings.owner is None:
        return {}
    voters = {vote.voter: vote.voter_name for vote in incident.findings.owner.votes if vote.voter_name}
    return voters | {candidate.team_id: candidate.team_name for candidate in incident.findings.owner.candidates}


def _hop(hop: Hop, names: dict[str, str]) -> str:
    decision = f"Not {names.get(hop.turned_away, hop.turned_away)}'s" if hop.turned_away else "Sent on"
    given = f", given to {names.get(hop.given_to, hop.given_to)}" if hop.given_to else ""
    reason = f": {hop.reason}" if hop.reason else ""
    return f"{decision}, says {hop.person}{given}{reason}"


def _vote(vote: Vote, names: dict[str, str], listed: set[str], *, names_round: bool) -> str:
    """Return a vote with those of its reasons that are not yet `listed`, and add them to it."""
    choice = names.get(vote.choice, vote.choice) if vote.choice else "nobody"
    voter = names.get(vote.voter, vote.voter)
    reasons: list[str] = []
    for reason in vote.reason.replace("; ", ". ").split(". "):
        bare = reason.removeprefix(f"{choice}: ").removeprefix(f"For {voter}: ").strip()
        if bare and bare.casefold().rstrip(".") not in listed:
            listed.add(bare.casefold().rstrip("."))
            reasons.append(f"for {voter}: {bare}" if reason.startswith(f"For {voter}: ") and voter != choice else bare)
    hop = f"Hop {vote.hop}, " if vote.hop else ""
    when = f"{hop}round {vote.round}: ".capitalize() if names_round else ""
    return f"{when}{voter} votes for {choice}" + (f" ({'; '.join(reasons)})" if reasons else "")


@dataclass(frozen=True, slots=True)
class ToolGaps:
    """The number of incidents in which a tool could not be read, and the reasons, most frequent first."""

    tool: str
    incidents: int
    reasons: tuple[tuple[GapReason, int], ...]

    @property
    def text(self) -> str:
        """Return “timed out 2, access refused 1”."""
        return ", ".join(f"{reason} {count}" for reason, count in self.reasons)


def gaps_by_tool(incidents: Iterable[Incident]) -> list[ToolGaps]:
    """Return the tools that could not be read in these incidents, the most frequent first."""
    reasons: defaultdict[str, Counter[GapReason]] = defaultdict(Counter)
    affected: Counter[str] = Counter()
    for incident in incidents:
        recorded = incident.findings.explanation.gaps if incident.findings.explanation is not None else ()
        gaps = [gap for gap in recorded if not gap.reason.is_read]
        affected.update({gap.system for gap in gaps})
        for tool, reason in {(gap.system, gap.reason) for gap in gaps}:
            reasons[tool][reason] += 1
    return [ToolGaps(tool, count, tuple(reasons[tool].most_common())) for tool, count in affected.most_common()]
