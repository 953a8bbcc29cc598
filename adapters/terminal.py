"""Messages in a terminal, for `plumbline ask` and `plumbline replay`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from core.answering.answer import Answer, Citation
from core.confidence.badge_explanation import BadgeExplanation
from core.conversation import MessageReference, Place
from core.incident import AskedTeam, Explanation, Hypothesis, Incident, OwnerProposal, Stage
from core.incident_story import (
    not_asked_label,
    on_call_told,
    owner_story,
    parts_counted,
    standing,
    suggested_duplicate,
    suggested_severity,
    suggestions_told,
    unclear_told,
    votes_told,
)
from core.messages import (
    ASK,
    ASK_WHAT_IS_RIGHT,
    CONFLICTING,
    COULD_IT_BE,
    I_AM_UNSURE,
    IS_IT_YOURS,
    JUDGED_BY,
    ON_CALL,
    ON_CALL_UNKNOWN,
    OR,
    PING,
    PROPOSED,
    TENTATIVE,
    WHICH_INCIDENT,
    WHOSE_IS_IT,
    WHY,
    AnswerMessage,
    BadgeMessage,
    CorrectionRequest,
    DriftAlarm,
    HandoverRequest,
    IncidentDetails,
    IncidentMessage,
    JoinRequest,
    Message,
    Notice,
    OwnerPing,
    OwnerQuestion,
    ProposalMessage,
)

SHOWN_EVIDENCE = 3  # lines quoted under a hypothesis


class TerminalMessenger:
    """Implements `core.ports.Messenger`: an edit is printed below what it replaces."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._ids = itertools.count(1)
        self._posted: dict[str, MessageReference] = {}

    async def post(self, place: Place, message: Message, intent: str) -> MessageReference:
        reference = MessageReference(place, str(next(self._ids)))
        self._posted[intent] = reference
        self._console.print(render(message))
        return reference

    async def edit(self, reference: MessageReference, message: Message) -> None:
        self._console.print(render(message))

    async def delete(self, reference: MessageReference) -> None:
        """What was printed stays printed."""

    async def link(self, reference: MessageReference) -> str:
        return ""

    async def find(self, place: Place, intent: str) -> MessageReference | None:
        return self._posted.get(intent)


def render(message: Message) -> RenderableType:
    """Plain `Text` throughout: markup in what a document, log or alert says is shown as it is."""
    match message:
        case AnswerMessage(answer):
            return _answer(answer)
        case IncidentMessage(incident):
            return Panel(_incident(message), title=Text(f"incident {incident.id}"), title_align="left")
        case IncidentDetails(incident):
            return Panel(_details(incident), title=Text("details"), title_align="left")
        case CorrectionRequest():
            return Text(ASK_WHAT_IS_RIGHT)
        case HandoverRequest():
            return Text(f"{WHOSE_IS_IT}\n{', '.join(name for _, name in message.teams)}")
        case JoinRequest():
            return Text(f"{WHICH_INCIDENT}\n{', '.join(title for _, title in message.incidents)}")
        case ProposalMessage(answer):
            return Text(f"{PROPOSED} {answer.question}\n{answer.text}\n{answer.attestation}")
        case BadgeMessage(explanation):
            return _badge_explanation(explanation)
        case OwnerPing() | OwnerQuestion():
            return Text(_call(message))
        case DriftAlarm():
            return Text(message.text)
        case Notice(text):
            return Text(text)


def _call(message: OwnerPing | OwnerQuestion) -> str:
    if isinstance(message, OwnerQuestion):
        return f"{_is_it_theirs([team for team, _ in message.teams])} {I_AM_UNSURE}"
    on_call = f" {ON_CALL}: {', '.join(message.on_call)}" if message.on_call else ""
    return f"{message.team_name}: {PING} {message.badge.text}{on_call}"


def _answer(answer: Answer) -> RenderableType:
    if answer.abstained:
        lines = [Text("I don't know." + (" This is the nearest that I have:" if answer.citations else ""))]
    else:
        lines = [Text(TENTATIVE, "dim")] if answer.tentative else []
        lines += [
            Text(f"{sentence.text} {''.join(f'[{number}]' for number in sentence.citations)}")
            for sentence in answer.sentences
        ]
    conflicts = [source for conflict in answer.conflicts for source in conflict.sources]
    if conflicts:
        lines += [Text(CONFLICTING, "bold"), *(Text(f"{_source(source)}: {source.quote}") for source in conflicts)]
    sources = [Text(_source(citation), "dim") for citation in answer.citations]
    contacts = [Text(f"{ASK} {' · '.join(contact.text for contact in answer.contacts)}")] if answer.contacts else []
    badge = [Text(answer.badge.text, "bold")] if answer.badge else []
    note = [Text(answer.note, "dim")] if answer.note else []
    return Group(*lines, Text(), *sources, *contacts, *badge, *note)


def _source(citation: Citation) -> str:
    heading = f" › {citation.heading}" if citation.heading else ""
    updated = f" · updated {citation.updated_at:%Y-%m-%d}" if citation.updated_at else ""
    stale = f" · {citation.staleness}" if citation.staleness else ""
    return f"[{citation.number}] {citation.title}{heading}{updated}{stale}"


def _badge_explanation(explanation: BadgeExplanation) -> RenderableType:
    references = [f"• {each.title}" for each in explanation.references]
    references += [f"• {explanation.withheld}"] if explanation.withheld else []
    lines = [
        f"{WHY} {explanation.badge.text}",
        *explanation.sentences,
        *([JUDGED_BY] if references else []),
        *references,
    ]
    return Text("\n".join(lines))


def _incident(message: IncidentMessage) -> RenderableType:
    incident = message.incident
    lines = [
        Text(f"{incident.severity.upper()} · {incident.state} · {incident.title}", "bold"),
        Text(f"since {incident.started_at:%Y-%m-%d %H:%M} UTC · {incident.alert_count} alert(s) · {incident.service}"),
    ]
    lines += [Text(said) for said in standing(incident)]
    if message.parts:
        lines.append(Text(f"Explains {parts_counted(message.parts)}"))
    if incident.acknowledged:
        lines.append(Text(f"Acknowledged by {incident.acknowledged.by or 'somebody'} in {incident.source}"))
    if incident.owner:
        lines.append(_owner(incident.owner, asks=message.asks_owner))
    if incident.explanation:
        lines.append(_cause(incident.explanation, asks=message.asks_cause))
    if severity := suggested_severity(incident):
        badge = f" {incident.suggested_severity.badge.text}" if incident.suggested_severity else ""
        lines.append(Text(f"Severity: {severity}{badge}"))
    if incident.suggested_duplicate:
        lines.append(Text(f"Duplicate: {suggested_duplicate(incident)} {incident.suggested_duplicate.badge.text}"))
    if incident.stage is not Stage.DONE:
        lines.append(Text(f"… {incident.stage} {incident.progress}".rstrip(), "dim"))
    return Group(*lines)


def _owner(proposal: OwnerProposal, *, asks: bool) -> Text:
    if proposal.owner is None:
        unclear = f"{unclear_told(proposal)} {proposal.badge.text}"
        question = f" · {_is_it_theirs(proposal.asked)}" if proposal.asked else ""
        rest = not_asked_label(proposal)
        others = ", ".join(candidate.team_name for candidate in proposal.not_asked[:2])
        return Text(f"Owner: {unclear}{question}" + (f" · {rest.lower()}: {others}" if others else ""))
    unknown = ON_CALL_UNKNOWN.format(name=proposal.on_call_unknown) if proposal.on_call_unknown else ""
    people = unknown or ", ".join(proposal.on_call)
    on_call = f" · on call: {people}" if people else ""
    team = proposal.owner.team_name
    named = IS_IT_YOURS.format(team=team) if asks else team
    return Text(f"Owner: {named} {proposal.badge.text}{on_call}")


def _is_it_theirs(teams: Sequence[AskedTeam]) -> str:
    asked = [(team.team_name, on_call_told(team)) for team in teams]
    return IS_IT_YOURS.format(team=OR.join(f"{name} ({on_call})" if on_call else name for name, on_call in asked))


def _cause(explanation: Explanation, *, asks: bool) -> Text:
    if explanation.cause is None:
        return Text("Cause: no culprit found")
    badge = f" {explanation.badge.text}" if explanation.badge else ""
    cause = explanation.told
    named = COULD_IT_BE.format(cause=cause) if asks else cause
    return Text(f"Cause: {named}{badge}\nNext check: {explanation.cause.next_check}")


def _details(incident: Incident) -> RenderableType:
    lines: list[RenderableType] = []
    lines += [Text(f"Why this owner: {each}") for each in owner_story(incident)]
    lines += [Text(f"Vote: {each}", "dim") for each in votes_told(incident)]
    lines += [Text(each, "dim") for each in suggestions_told(incident)]
    if incident.explanation:
        if incident.explanation.cause is None:
            lines.append(Text("No culprit found.", "bold"))
        for hypothesis in incident.explanation.hypotheses:
            lines += _hypothesis(hypothesis)
        lines += [Text(f"Ruled out: {reason}") for reason in incident.explanation.ruled_out]
        lines += [Text(f"Could not be read: {each}", "dim") for each in incident.explanation.unavailable]
        lines += [
            Text(f"Similar: {similar.id} {similar.title} → {similar.root_cause}")
            for similar in incident.explanation.similar
        ]
        lines += [Text(f"{entry.at:%H:%M:%S} {entry.text}", "dim") for entry in incident.explanation.timeline]
        if incident.explanation.trajectory is not None:
            lines += [Text(f"The model: {step.told}", "dim") for step in incident.explanation.trajectory.steps]
    return Group(*lines) if lines else Text("Nothing was found.")


def _hypothesis(hypothesis: Hypothesis) -> list[RenderableType]:
    return [
        Text(f"Possible cause: {hypothesis.cause}", "bold"),
        *(Text(f"  {line.kind} {line.source}: {line.quote}") for line in hypothesis.evidence[:SHOWN_EVIDENCE]),
        *(Text(f"  Speaks against it: {line.source}: {line.quote}") for line in hypothesis.contradicting),
        Text(f"  Disproved if: {hypothesis.disproof}"),
        Text(f"  Next check: {hypothesis.next_check}"),
        *([Text(f"  Responsible: {hypothesis.responsibility}")] if hypothesis.responsibility else []),
    ]
