"""The renderer of messages in Teams: any view of `core.model.message_view` becomes an Adaptive Card or a dialog."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC
from functools import partial
from typing import Any

from adapters.teams.elements import (
    ADAPTIVE_CARD,
    MAX_NAME,
    MAX_SUMMARY,
    MONOSPACE,
    SIZE_BUDGETS,
    SPACE,
    Card,
    Element,
    Run,
    SizeBudget,
    about_message,
    card,
    code_box,
    container,
    control_actions,
    dotted,
    fitting,
    in_readers_zone,
    line,
    listing,
    note,
    picker,
    plain,
    prose,
    refreshed,
    run,
    submit_button,
    table,
    text_field,
)
from core.answering.answer_view import HEADING_LINE
from core.incidents.postmortem import cut_draft
from core.knowledge.markdown import Block, BlockKind, blocks, framed, table_rows
from core.model.answer import Citation, Sentence
from core.model.badge import Badge, PredictionKind
from core.model.message_view import (
    Line,
    Link,
    Listing,
    MessageView,
    Mood,
    Part,
    Picker,
    ReliabilityTable,
    Sources,
    Statements,
    TeamMention,
    TextField,
)
from core.model.messages import JUDGEMENTS, Form, Message
from core.model.team import TAG
from core.views import CHOICE, TEXT, message_view, question_view

# Colours only repeat what the text says.
STYLES = {Mood.CRITICAL: "attention", Mood.WARNING: "warning", Mood.INFO: "accent", Mood.RESOLVED: "good"}
SIGNS: dict[Mood | None, str] = {
    None: "",
    Mood.CRITICAL: "▲ ",
    Mood.WARNING: "◆ ",
    Mood.INFO: "● ",
    Mood.RESOLVED: "✓ ",
    Mood.ENDED: "○ ",
    Mood.THANKS: "✓ ",
    Mood.ATTENTION: "⚠️ ",
}
SMALL: dict[str, Any] = {"size": "Small", "isSubtle": True}
BADGE: dict[str, Any] = {"weight": "Bolder", "size": "Small", "color": "Accent"}
CODE: dict[str, Any] = {"fontType": MONOSPACE, "size": "Small"}

MAX_TITLE = 200  # characters of a document
MAX_MARKERS = 5  # per sentence
MAX_CITED = 10  # citations in the entity for Teams
DRAFT_BUDGETS = tuple(SizeBudget(20, characters) for characters in (12_000, 8_000, 5_000, 3_000))
RATINGS = frozenset(JUDGEMENTS[PredictionKind.ANSWER])


def render(message: Message, budgets: Sequence[SizeBudget] = SIZE_BUDGETS) -> Card:
    """Return the card of a message within the size limit of Teams. What does not fit is counted or ends in “…”.

    With fewer `budgets`, it is smaller still, for a message that was refused for its size.
    """
    return render_view(message_view(message), budgets)


def render_view(view: MessageView, budgets: Sequence[SizeBudget] = SIZE_BUDGETS) -> Card:
    is_draft = any(field.value and field.is_multiline for field in view.all(TextField))
    return fitting(partial(_card, view), DRAFT_BUDGETS if is_draft else budgets)


def _card(view: MessageView, budget: SizeBudget) -> Card:
    pieces = (piece for shown in view.lines for piece in shown.verbatim)
    mentions = [_mention(piece) for piece in pieces if isinstance(piece, TeamMention) and piece.id]
    body = [
        *(
            [{"type": "TextBlock", "text": " ".join(each["text"] for each in mentions), "wrap": True}]
            if mentions
            else []
        ),
        *_head(view, budget),
        *(element for part in view.parts for element in _part(part, budget)),
        *note(f"◐ {view.progress}" if view.progress else "", budget.characters),
    ]
    body = [in_readers_zone(each, view.times) for each in body]
    # Teams shows thumbs of its own, so that ours are behind the dots.
    rated = [each for each in view.buttons if each.verdict in RATINGS]
    buttons = [each for each in view.buttons if each not in rated]
    shown = card(body, control_actions(buttons, view.judging, (*rated, *view.more)), view.summary)
    if mentions:
        shown.content["msteams"] = {"width": "Full", "entities": mentions}
    cited = [
        each
        for part in view.all(Statements)
        for each in part.cited
        if any(each.number in sentence.citations for sentence in part.sentences)
    ]
    shown = replace(
        shown,
        entities=about_message(by_model=view.by_model, citations=cited[: min(budget.entries, MAX_CITED)]),
        # Thumbs below the message, which come back as submitAction.
        channel_data={"feedbackLoop": {"type": "default"}} if rated else None,
    )
    return refreshed(shown) if view.is_live else shown


def _head(view: MessageView, budget: SizeBudget) -> list[Element]:
    if not view.headline:
        return []
    header = [
        *line([run(view.headline, min(budget.characters, MAX_SUMMARY), weight="Bolder", size="Large")]),
        *line([run(f"{SIGNS[view.mood]}{view.state}", MAX_SUMMARY, weight="Bolder", size="Small")]),
    ]
    return [container(header, style=STYLES.get(view.mood or Mood.INFO, "default"), bleed=True)]


def _part(part: Part, budget: SizeBudget) -> list[Element]:
    match part:
        case Line():
            return _line(part, budget.characters)
        case Listing(title, entries, noun, badge):
            limit = min(budget.characters, MAX_SUMMARY) if title else budget.characters
            shown = listing(
                entries,
                budget,
                noun,
                lambda each: _line(
                    replace(each, is_small=each.is_small or part.is_small), limit, is_bulleted=part.is_bulleted
                ),
                part.left_out,
            )
            return [*_title(title, budget, badge), *shown]
        case Statements(sentences, cited, title):
            urls = {citation.number: citation.deep_link for citation in cited}
            shown = listing(sentences, budget, "sentences", lambda each: _sentence(each, urls, budget))
            return [*_title(title, budget), *shown]
        case Sources(citations, title, noun, mood):
            shown = listing(citations, budget, noun, lambda each: _source(each, part, budget))
            listed = [*_title(f"{SIGNS[mood]}{title or 'Sources'}", budget), *shown]
            return [container(listed, separator=True, spacing="Medium")] if part.is_small else listed
        case Picker(label, options, is_picked):
            value = {"value": options[0][0]} if is_picked else {}
            return [picker(CHOICE, label, options, budget) | value]
        case TextField(name, label, limit, value, is_multiline):
            text = cut_draft(value, budget.characters) if is_multiline else value
            return [text_field(name, label, limit, text, multiline=is_multiline)]
        case ReliabilityTable():
            return []  # on the local page


# --- lines -----------------------------------------------------------------------------------------------------------


def _title(title: str, budget: SizeBudget, badge: Badge | None = None) -> list[Element]:
    return line(
        dotted(
            prose(title, min(budget.characters, MAX_SUMMARY), weight="Bolder", size="Small"),
            [run(badge.text, MAX_NAME, **BADGE)] if badge is not None else [],
        ),
        "Medium",
    )


def _line(shown: Line, limit: int, *, is_bulleted: bool = False) -> list[Element]:
    style = SMALL if shown.is_subtle or shown.is_small else {}
    before = [run("•", 1), SPACE] if is_bulleted else []
    before += [run(SIGNS[shown.mood], 2), SPACE] if shown.mood is not None else []
    before += [run(shown.label, MAX_SUMMARY, weight="Bolder", **style), SPACE] if shown.label else []
    parts = dotted(
        [run(f"{shown.at.astimezone(UTC):%m-%d %H:%M:%S}", 20, **CODE)] if shown.at is not None else [],
        [_link(shown.source, limit)] if shown.source is not None else [],
        [*prose(shown.text, limit, **style), *_pieces(shown.verbatim, limit, style)],
        [run(shown.code, MAX_SUMMARY, **CODE)] if shown.is_small and shown.code else [],
        *([_link(each, limit)] for each in shown.links),
        [run(shown.badge.text, MAX_NAME, **BADGE)] if shown.badge is not None else [],
    )
    box = [] if shown.is_small else code_box(shown.code, MAX_SUMMARY)
    return [*(line([*before, *parts]) if parts or box else []), *box, *line([run(shown.quote, limit, **CODE)], "None")]


def _pieces(pieces: Sequence[str | TeamMention], limit: int, style: dict[str, Any]) -> Iterator[Run]:
    """Yield verbatim text, with its edge spaces, and the names of teams."""
    for piece in pieces:
        if isinstance(piece, TeamMention):
            yield run(piece.name, MAX_NAME, weight="Bolder")
        elif text := plain(piece, limit):
            before, after = (" " if end.isspace() else "" for end in (piece[:1], piece[-1:]))
            yield {"type": "TextRun", "text": f"{before}{text}{after}", **style}


def _link(target: Link | Citation, limit: int) -> Run:
    return (
        run(target.text, min(limit, MAX_NAME), url=target.url, size="Small")
        if isinstance(target, Link)
        else run(target.name, min(limit, MAX_TITLE), url=target.deep_link, size="Small")
    )


def _sentence(sentence: Sentence, urls: dict[int, str], budget: SizeBudget) -> list[Element]:
    markers = [
        piece
        for number in sentence.citations[:MAX_MARKERS]
        for piece in (SPACE, run(f"[{number}]", 10, url=urls.get(number, ""), color="Accent", size="Small"))
    ]
    *others, last = blocks(sentence.text[: 2 * budget.characters]) or [Block(BlockKind.PARAGRAPH, "")]
    return [*(element for each in others for element in _block(each, budget, [])), *_block(last, budget, markers)]


def _block(block: Block, budget: SizeBudget, markers: Sequence[Run]) -> list[Element]:
    if block.kind is BlockKind.CODE:
        return [*code_box("\n".join(framed(block)[1]), budget.characters), *line(markers, "None")]
    if block.kind is BlockKind.TABLE:
        return [*table(table_rows(block.text), budget), *line(markers, "None")]
    words = prose(block.text, budget.characters)
    return line([*markers[1:], SPACE, *words] if markers and HEADING_LINE.match(block.text) else [*words, *markers])


def _source(citation: Citation, part: Sources, budget: SizeBudget) -> list[Element]:
    number = run(f"[{citation.number}]" if part.is_numbered else "•", 12, size="Small")
    stale = f"{SIGNS[Mood.ATTENTION]}{citation.staleness}" if citation.staleness else ""
    title = _link(citation, budget.characters)
    about = dotted([title], [run(citation.updated, 30, **SMALL)], [run(stale, 60, size="Small")])
    quote = prose(citation.quote, budget.characters, **SMALL) if part.is_quoted and not part.is_small else []
    return [*line([number, SPACE, *about]), *line(quote, "None")]


# --- mentions --------------------------------------------------------------------------------------------------------


def _mention(team: TeamMention) -> dict[str, Any]:
    """Return a mention, which must be in a TextBlock: its name is the only untrusted text there, stripped of markup."""
    name = "".join(character for character in plain(team.name, MAX_NAME) if character.isalnum() or character in " -&")
    mentioned = {"id": team.id.removeprefix(TAG), "name": name}
    mentioned |= {"type": "tag"} if team.id.startswith(TAG) else {}
    return {"type": "mention", "text": f"<at>{name}</at>", "mentioned": mentioned}


EXTENSION = "ask"  # the command of the message extension, as in the manifest
EXTENSION_TITLE = "Ask Plumbline about this"


def form_dialog(form: Form) -> dict[str, Any]:
    """Return a window with the form. Its buttons are returned as task/submit."""
    view = message_view(form)
    shown = render_view(view)
    return _window(view.title, shown, [submit_button(action) for action in shown.content.get("actions", ())])


def ask_dialog() -> dict[str, Any]:
    """Return a window that asks for a question about a message."""
    return _window(
        EXTENSION_TITLE, render_view(question_view()), [{"type": "Action.Submit", "title": "Ask", "data": {}}]
    )


def question_in(data: Any) -> str:
    """Return the text that was typed in such a window."""
    text = data.get(TEXT) if isinstance(data, dict) else None
    return text if isinstance(text, str) else ""


def said_in_dialog(sentence: str) -> dict[str, Any]:
    """Return a sentence that is shown instead of a window, or in it before it closes."""
    return {"type": "message", "value": plain(sentence, 300)}


def _window(title: str, shown: Card, actions: list[Element]) -> dict[str, Any]:
    content = shown.content | ({"actions": actions} if actions else {})
    attached = {"contentType": ADAPTIVE_CARD, "content": content}
    return {"type": "continue", "value": {"title": title, "height": "medium", "width": "medium", "card": attached}}
