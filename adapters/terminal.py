"""Messages in a terminal, for `plumbline ask` and `plumbline replay`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from core.model.answer import Citation
from core.model.conversation import MessageReference, Place
from core.model.message_view import (
    Line,
    Listing,
    MessageView,
    Part,
    Picker,
    Sources,
    Statements,
    TextField,
    link_text,
    piece_text,
)
from core.model.messages import Message
from core.views import message_view


class TerminalMessenger:
    """Implements `core.ports.Messenger`. An edit is printed below the earlier version."""

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
        """Do nothing: a terminal cannot take back what was printed."""

    async def link(self, reference: MessageReference) -> str:
        return ""

    async def find(self, place: Place, intent: str) -> MessageReference | None:
        return self._posted.get(intent)


def render(message: Message) -> RenderableType:
    """Return a message as plain `Text`, so that markup in documents, logs and alerts is shown literally."""
    view = message_view(message)
    title = view.title or (f"incident {view.incident_id}" if view.incident_id else "")
    return Panel(Group(*_shown(view)), title=Text(title), title_align="left") if title else Group(*_shown(view))


def _shown(view: MessageView) -> Iterator[Text]:
    yield from (Text(text, style) for text, style in ((view.headline, "bold"), (view.state, "")) if text)
    for part in view.parts:
        yield from _part(part)
    if view.progress:
        yield Text(f"… {view.progress}", "dim")


def _part(part: Part) -> Iterator[Text]:
    match part:
        case Line():
            yield _line(part)
        case Listing(title, entries, badge=badge):
            if shown := _dotted(title, badge.text if badge is not None else ""):
                yield Text(shown, "bold")
            yield from (Text("  ") + _line(each) if title else _line(each) for each in entries)
        case Statements(sentences, title=title):
            if title:
                yield Text(title, "bold")
            for each in sentences:
                yield Text(f"{each.text} {''.join(f'[{number}]' for number in each.citations)}".rstrip())
        case Sources(citations, title):
            yield Text(title, "bold")
            for each in citations:
                quote = f": {each.quote}" if part.is_quoted and not part.is_small and each.quote else ""
                yield Text(f"{_source(each)}{quote}", "dim" if part.is_small else "")
        case Picker(_, options):
            yield Text(", ".join(name for _, name in options))
        case TextField(value=value) if value:
            yield Text(value)


def _line(line: Line) -> Text:
    label = f"{line.label}: " if line.label else ""
    at = f"{line.at:%H:%M:%S}" if line.at is not None else ""
    text = line.text + "".join(map(piece_text, line.verbatim))
    source = line.source.text if line.source is not None else ""
    badge = line.badge.text if line.badge is not None else ""
    shown = _dotted(at, source, text, line.code, *map(link_text, line.links), line.quote, badge)
    return Text(f"{label}{shown}", "dim" if line.is_subtle or line.is_small else "")


def _source(citation: Citation) -> str:
    return _dotted(f"[{citation.number}] {citation.name}", citation.updated, citation.staleness)


def _dotted(*parts: str) -> str:
    return " · ".join(filter(None, parts))
