"""The part of an incident that an audience may read: an audience belongs to a piece of text, not to an incident."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from core.incidents.thread_notes import DENIED, NOTED, read_resolution
from core.model.badge import Policy
from core.model.conversation import PUBLIC, Audience, Channel, Place, channel_audience, current_readers
from core.model.findings import Evidence, EvidenceKind, Explanation, Origin, OwnerProposal, RelationKind, Runbook
from core.model.incident import Incident, IncidentState, Resolution, may_see_incident
from core.model.messages import ButtonAction, IncidentMessage, RelatedIncident

NONE_OPEN = "No incident that I can show here is open."


def visible(incidents: Iterable[Incident], audience: Audience, channels: Sequence[Channel]) -> list[Incident]:
    """Return the incidents that an audience may see, each as far as it may read it.

    Here and below, `channels` are the channels as they are now.
    """
    return [readable(each, audience, channels) for each in incidents if may_see_incident(audience, each, channels)]


def readable(incident: Incident, audience: Audience, channels: Sequence[Channel]) -> Incident:
    """Return an incident without the texts that this audience may not read.

    A person's words are for the readers of the place where they were said. Quotations of documents and past incidents
    are for those who may read everything that the investigation might quote, and still may read all that it quotes. The
    rest is for all who see the incident.
    """
    basis = incident.placement.audience(channels).basis if incident.findings.basis is None else incident.findings.basis

    def may_read(readers: Sequence[str]) -> bool:
        return audience.may_read(current_readers(readers, channels))

    quotes = audience.readers.issuperset(basis) and all(map(may_read, incident.findings.quoted))

    def may_quote(evidence: Evidence) -> bool:
        if evidence.kind is EvidenceKind.NOTE:
            return may_read(evidence.readers)
        return quotes or evidence.kind is not EvidenceKind.PAST_INCIDENT

    notes = tuple(note for note in incident.notes if may_read(note.readers))
    explanation = incident.findings.explanation and _with_evidence(
        incident.findings.explanation, may_quote, may_read, quotes=quotes, denials=len(notes) == len(incident.notes)
    )
    silenced = incident.silenced
    if silenced is not None and silenced.readers is not None and not may_read(silenced.readers):
        silenced = replace(silenced, reason="")
    seen = replace(
        incident.with_findings(explanation=explanation),
        relations=tuple(each for each in incident.relations if each.readers is None or may_read(each.readers)),
        silenced=silenced,
        notes=notes,
        hops=tuple(hop if may_read(hop.readers) else replace(hop, reason="") for hop in incident.hops),
        filings=tuple(each for each in incident.filings if each.filed or may_read(each.readers)),
        resolution=_resolution(incident, audience, channels),
    )
    if not (quotes and PUBLIC in audience.readers):  # the reasons quote the teams' documents
        seen = seen.with_findings(owner=seen.findings.owner and _without_reasons(seen.findings.owner))
        seen = seen.without_relation(RelationKind.MAY_BE_PART_OF)
    return seen if quotes else _without_quotations(seen)


def note_readers(incident: Incident, channels: Sequence[Channel]) -> Mapping[str, tuple[frozenset[str], ...]]:
    """Return the readers of each text of the note on its end, except of texts that came with an alert.

    An audience must be among all readers of a text: those of its place, or of every place if its place is unknown.
    """
    note = incident.resolution or Resolution()
    sent = {getattr(read_resolution(alert.note), name) for alert in incident.alerts if alert.note for name in NOTED}
    names = [name for name in NOTED if getattr(note, name) not in {"", *sent}]
    stored = {name: (current_readers(readers, channels),) for name, readers in note.readers.items()}
    everywhere = tuple(channel_audience(place, channels).disclosed_to for place in incident.placement.places)
    return {name: stored.get(name, everywhere) for name in names}


def _resolution(incident: Incident, audience: Audience, channels: Sequence[Channel]) -> Resolution | None:
    readers = note_readers(incident, channels)
    hidden = {name: "" for name in readers if not all(map(audience.may_read, readers[name]))}
    if incident.resolution is None or not hidden:
        return incident.resolution
    left = replace(incident.resolution, **hidden)
    return left if any(getattr(left, name) for name in NOTED) else None


def _with_evidence(
    explanation: Explanation,
    may_quote: Callable[[Evidence], bool],
    may_read: Callable[[Sequence[str]], bool],
    *,
    quotes: bool,
    denials: bool,
) -> Explanation:
    """Return the explanation with the evidence that may be quoted; without `denials`, also without what people ruled out.

    The model that wrote a trajectory may have read everything, so its own causes and solutions are quotations too.
    """
    causes, badge, prediction_id = explanation.hypotheses, explanation.badge, explanation.prediction_id
    last, ruled_out = explanation.rechecked_after, explanation.ruled_out
    if not quotes and explanation.trajectory is not None:
        own = [each for each in causes if each.origin is not Origin.OTHER]
        if own[:1] != list(causes[:1]):
            badge, prediction_id = (own[0].badge, own[0].prediction_id) if own else (None, None)
        causes = tuple(replace(each, solution="") for each in own)
    return replace(
        explanation,
        hypotheses=tuple(
            replace(
                each,
                evidence=tuple(filter(may_quote, each.evidence)),
                contradicting=tuple(filter(may_quote, each.contradicting)),
            )
            for each in causes
        ),
        ruled_out=tuple(line for line in ruled_out if denials or not line.endswith(f"{DENIED}.")),
        rechecked_after=last if last is not None and may_read(last.readers) else None,
        similar=explanation.similar if quotes else (),
        trajectory=explanation.trajectory if quotes else None,
        badge=badge,
        prediction_id=prediction_id,
    )


def _without_reasons(owner: OwnerProposal) -> OwnerProposal:
    named = owner.owner and replace(owner.owner, reasons=())
    return replace(
        owner, owner=named, candidates=tuple(replace(each, reasons=()) for each in owner.candidates), votes=()
    )


def _without_quotations(incident: Incident) -> Incident:
    """Return an incident without quotations of documents and other incidents, beside those in its explanation."""
    runbook = incident.findings.runbook
    return incident.with_findings(
        owner=incident.findings.owner and replace(incident.findings.owner, precedents=()),
        runbook=Runbook(runbook.url) if runbook is not None and runbook.url else None,
    )


@dataclass(frozen=True, slots=True)
class Related:
    """Incidents of which another one's message tells: its parent, the last one of its alert, and its parts."""

    parent: Incident | None
    last: Incident | None
    parts: Sequence[Incident]

    @property
    def all(self) -> list[Incident]:
        return [each for each in (self.parent, self.last, *self.parts) if each is not None]

    def visible_to(self, audience: Audience, incident: Incident, channels: Sequence[Channel]) -> Related:
        """Return those that may be told in the message of this incident, to this audience."""
        own = incident.placement.audience(channels)
        shared = [each for each in self.all if own.shares_with(each.placement.audience(channels))]
        seen = {each.id: each for each in visible(shared, audience, channels)}
        parent, last = (seen.get(each.id) if each is not None else None for each in (self.parent, self.last))
        return Related(parent, last, [seen[part.id] for part in self.parts if part.id in seen])


def incident_message(
    incident: Incident,
    related: Related,
    links: Mapping[str, str],
    policy: Policy,
    filing: tuple[ButtonAction, ...],
    joins_within: timedelta | None = None,
) -> IncidentMessage:
    """Return the message of an incident and of related ones, each as far as the place may read it.

    `links` map the ids of related incidents to the addresses of their messages, as far as they are known. It is shown in
    the thread of the last incident if it `joins_within` this time of its end; None for a place where it never is.
    """

    def linked(other: Incident) -> RelatedIncident:
        is_open, url = other.state is IncidentState.OPEN, links.get(other.id, "")
        return RelatedIncident(other.id, other.title, other.alert_count, is_open, url, other.service, other.severity)

    owner, explanation, last = incident.findings.owner, incident.findings.explanation, related.last
    return IncidentMessage(
        incident,
        policy.asks(owner.badge if owner is not None else None),
        policy.asks(explanation.badge if explanation is not None else None),
        leader=linked(related.parent) if related.parent is not None else None,
        parts=tuple(map(linked, related.parts)),
        filing=filing,
        last=linked(last) if last is not None else None,
        note=known_before(last) if last is not None else "",
        old_thread=old_thread(incident, last, joins_within) if joins_within is not None else None,
    )


def old_thread(incident: Incident, last: Incident | None, within: timedelta) -> Place | None:
    """Return the thread of the last incident, if this one is shown there: in the same channel, `within` a time of its end.

    What a bot posted has a thread of its own.
    """
    message = last.placement.message if last is not None else None
    if last is None or last.resolved_at is None or message is None:
        return None
    is_here = replace(message.thread, thread=None) == incident.placement.place
    is_recent = incident.opened_at - last.resolved_at <= within
    return message.thread if is_here and is_recent else None


def known_before(last: Incident) -> str:
    """Return the cause and the fix of the last incident: what people said counts before what was found. Empty if unknown."""
    noted, explanation = last.resolution or Resolution(), last.findings.explanation
    summary = explanation.summary.rstrip(".") if explanation is not None and explanation.cause is not None else ""
    fix = f"fix: {noted.fix}" if noted.fix else ""
    return "; ".join(filter(None, (noted.root_cause or summary, fix)))
