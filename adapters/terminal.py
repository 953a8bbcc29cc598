"""Messages in a terminal, for `plumbline ask` and `plumbline replay`."""

from __future__ import annotations

import itertools

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from core.answering.answer_view import ALSO, ASK, CONFLICTING, answer_view
from core.incidents.incident_details import Entry, incident_details
from core.incidents.incident_layout import Line
from core.incidents.incident_view import incident_view, is_it_theirs
from core.model import messages
from core.model.answer import Answer, Citation
from core.model.badge import BadgeExplanation
from core.model.conversation import MessageReference, Place
from core.model.incident import Incident


class TerminalMessenger:
    """Implements `core.ports.Messenger`. An edit is printed below the earlier version."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._ids = itertools.count(1)
        self._posted: dict[str, MessageReference] = {}

    async def post(self, place: Place, message: messages.Message, intent: str) -> MessageReference:
        reference = MessageReference(place, str(next(self._ids)))
        self._posted[intent] = reference
        self._console.print(render(message))
        return reference

    async def edit(self, reference: MessageReference, message: messages.Message) -> None:
        self._console.print(render(message))

    async def delete(self, reference: MessageReference) -> None:
        """Do nothing: a terminal cannot take back what was printed."""

    async def link(self, reference: MessageReference) -> str:
        return ""

    async def find(self, place: Place, intent: str) -> MessageReference | None:
        return self._posted.get(intent)


def render(message: messages.Message) -> RenderableType:
    """Return a message as plain `Text`, so that markup in documents, logs and alerts is shown literally."""
    match message:
        case messages.AnswerMessage(answer):
            return _answer(answer)
        case messages.IncidentMessage(incident):
            return Panel(_incident(message), title=Text(f"incident {incident.id}"), title_align="left")
        case messages.IncidentDetails(incident):
            return Panel(_details(incident), title=Text("details"), title_align="left")
        case (
            messages.CorrectionRequest()
            | messages.HandoverRequest()
            | messages.JoinRequest()
            | messages.FilingRequest()
        ):
            view = messages.request_view(message)
            draft = f"{view.draft.title}\n\n{view.draft.text}" if view.draft is not None else ""
            return Text("\n".join(filter(None, (view.asked, ", ".join(name for _, name in view.options), draft))))
        case messages.ProposalMessage(answer):
            return Text(f"{messages.PROPOSED} {answer.question}\n{answer.text}\n{answer.attestation}")
        case messages.BadgeMessage(explanation):
            return _badge_explanation(explanation)
        case messages.OwnerPing() | messages.OwnerQuestion():
            return Text(_call(message))
        case messages.DriftAlarm():
            return Text(message.text)
        case messages.Notice():
            return Text("\n".join(" ".join(filter(None, line)) for line in message.lines))


def _call(message: messages.OwnerPing | messages.OwnerQuestion) -> str:
    if isinstance(message, messages.OwnerQuestion):
        return f"{is_it_theirs([team for team, _ in message.teams])} {messages.I_AM_UNSURE}"
    on_call = f" {messages.ON_CALL}: {', '.join(message.on_call)}" if message.on_call else ""
    return f"{message.team_name}: {' '.join(filter(None, (messages.PING, message.badge.text)))}{on_call}"


def _answer(answer: Answer) -> RenderableType:
    view = answer_view(answer)
    sentences = (f"{each.text} {''.join(f'[{number}]' for number in each.citations)}".rstrip() for each in view.said)
    below = [
        *(Text(_source(citation), "dim") for citation in view.sources),
        *(Text(f"{_source(citation)}\n    {citation.quote}") for citation in view.nearest),
        *(Text(f"{ALSO}: {each.text} · {each.source.name}", "dim") for each in view.further),
        *([Text(f"{ASK} {view.contacts}")] if view.contacts else []),
        *([Text(view.badge.text, "bold")] if view.badge and view.badge.text else []),
        *([Text(view.note, "dim")] if view.note else []),
    ]
    conflicts = [Text(f"{_source(source)}: {source.quote}") for source in view.conflicting]
    return Group(
        *([Text(view.lead)] if view.lead else []),
        *([Text(view.heading, "bold")] if view.heading else []),
        *map(Text, sentences),
        *([Text(CONFLICTING, "bold")] if conflicts else []),
        *conflicts,
        Text(),
        *below,
    )


def _source(citation: Citation) -> str:
    return " · ".join(filter(None, (f"[{citation.number}] {citation.name}", citation.updated, citation.staleness)))


def _badge_explanation(explanation: BadgeExplanation) -> RenderableType:
    references = [f"• {each.title}" for each in explanation.references]
    references += [f"• {explanation.withheld}"] if explanation.withheld else []
    lines = [
        f"{messages.WHY} {explanation.badge.text}".rstrip(),
        *explanation.sentences,
        *([messages.JUDGED_BY] if references else []),
        *references,
        explanation.for_experts,
    ]
    return Text("\n".join(lines))


def _incident(message: messages.IncidentMessage) -> RenderableType:
    view = incident_view(message)
    working = [Text(f"… {view.progress}", "dim")] if view.progress else []
    return Group(Text(view.headline, "bold"), Text(view.state), *map(_line, view.lines), *working)


def _line(line: Line) -> Text:
    parts = filter(None, (line.text, line.code, *(link.text for link in line.links), line.badge))
    return Text((f"{line.label}: " if line.label else "") + " · ".join(parts), "dim" if line.subtle else "")


def _details(incident: Incident) -> RenderableType:
    lines: list[RenderableType] = []
    for section in incident_details(incident):
        lines += [Text(" · ".join(filter(None, (section.title, section.badge))), "bold"), *map(_entry, section.entries)]
    return Group(*lines) if lines else Text("Nothing was found.")


def _entry(entry: Entry) -> Text:
    at = f"{entry.at:%H:%M:%S}" if entry.at is not None else ""
    source = entry.link.text if entry.link is not None else ""
    return Text("  " + " ".join(filter(None, (at, source, entry.text, entry.quote))))
