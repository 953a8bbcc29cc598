"""Elements of Adaptive Cards 1.5 within the limits of Teams: https://adaptivecards.io/explorer

Untrusted text is put into the text runs of a RichTextBlock, which clients do not parse, so it cannot create formatting,
links or mentions. A TextBlock, which is parsed, contains only our own words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from markdown_it import MarkdownIt
from yarl import URL

from core.model.answer import Citation
from core.model.message_view import RIGHT_OR_WRONG, Control, Judged, NamedTime, with_times
from core.model.messages import FILING_ACTIONS, ButtonAction

# Bytes of a message in UTF-16: Teams refuses about 100 KB, and advises 80.
# https://learn.microsoft.com/microsoftteams/platform/bots/how-to/format-your-bot-messages
MAX_MESSAGE = 80 * 1024
ENVELOPE = 2048  # bytes of the activity around a card, in UTF-16
MAX_SUMMARY = 300  # characters, also of a title or of a text in a list with one
MAX_NAME = 80  # characters, also of an option
MAX_VALUE = 64  # characters of an option's value
CHOICES_PER_ENTRY = 20  # options of a picker per entry of a list, because they take less space
DRAFT_HEIGHT = "320px"
MAX_URL = 500  # characters; longer addresses are not linked
MAX_ABSTRACT = 160  # characters of its quote
RESTRICTED = {
    "type": "https://schema.org/Message",
    "@type": "CreativeWork",
    "name": "Restricted",
    "description": "Not everybody in the organisation may read the source.",
}

ASKING = frozenset(
    {
        ButtonAction.WRONG,
        ButtonAction.OWNER_WRONG,
        ButtonAction.CAUSE_WRONG,
        ButtonAction.HAND_OVER,
        ButtonAction.DETAILS,
        *FILING_ACTIONS,
    }
)
ADAPTIVE_CARD = "application/vnd.microsoft.card.adaptive"
REFRESH = "refresh"  # the verb of Teams' request to refresh a card

MONOSPACE = "Monospace"
JOINERS = "\u200c\u200d"  # needed by scripts and emoji; all other invisible characters are removed
EDITABLE = f"{JOINERS}\n\u2060"  # also allowed in a text field; word joiners keep names from notifying anybody
AT = re.compile(r"<(/?at\b[^<>]*)>", re.IGNORECASE)

EMPHASIS: dict[str, dict[str, Any]] = {"strong": {"weight": "Bolder"}, "em": {"italic": True}}

Element = dict[str, Any]
Run = dict[str, Any]
T = TypeVar("T")

SPACE: Run = {"type": "TextRun", "text": " "}

_markdown = MarkdownIt("commonmark")


@dataclass(frozen=True, slots=True)
class Card:
    """An Adaptive Card, its text for notifications, and the metadata of its message.

    `entities` and `channel_data` tell Teams about the message.
    """

    content: dict[str, Any]
    summary: str
    entities: tuple[dict[str, Any], ...] = ()
    channel_data: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class SizeBudget:
    """Limits of a card: entries per list, and characters per text."""

    entries: int
    characters: int


# The first budget whose card is small enough is used. The last one is always small enough.
SIZE_BUDGETS = (SizeBudget(40, 2000), SizeBudget(12, 800), SizeBudget(6, 300), SizeBudget(3, 120), SizeBudget(1, 40))


def fitting(build: Callable[[SizeBudget], Card], budgets: Sequence[SizeBudget] = SIZE_BUDGETS) -> Card:
    """Return the largest card that Teams accepts."""
    return next(
        card for budget in budgets if _size(card := build(budget)) <= MAX_MESSAGE - ENVELOPE or budget is budgets[-1]
    )


def _size(card: Card) -> int:
    return len(
        json.dumps([card.content, card.summary, card.entities], ensure_ascii=False).encode("utf-16-le", "surrogatepass")
    )


def card(body: Iterable[Element], actions: Sequence[Element], summary: str) -> Card:
    short = plain(summary, MAX_SUMMARY) or "…"
    content: dict[str, Any] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.5",
        "fallbackText": short,
        "msteams": {"width": "Full"},
        "body": list(body) or line([run("…", 1)]),
    }
    return Card(content | ({"actions": list(actions)} if actions else {}), short)


# --- text ------------------------------------------------------------------------------------------------------------


def in_readers_zone(element: Element, times: Sequence[datetime]) -> Element:
    """Return an element whose times each reader sees in their own zone, but for code.

    https://learn.microsoft.com/adaptive-cards/authoring-cards/text-features#datetime-formatting-and-localization
    """
    shown = dict(element)
    if "text" in shown and shown.get("fontType") != MONOSPACE:
        shown["text"] = with_times(shown["text"], times, _date)
    for name in ("items", "inlines", "rows", "cells"):
        if name in shown:
            shown[name] = [in_readers_zone(each, times) for each in shown[name]]
    return shown


def _date(time: NamedTime) -> str:
    iso = f"{time.at:%Y-%m-%dT%H:%M:%SZ}"
    return f"{{{{DATE({iso}, SHORT)}}}} {{{{TIME({iso})}}}}" if time.has_date else f"{{{{TIME({iso})}}}}"


def plain(text: str, limit: int) -> str:
    """Return one line of at most `limit` characters, without hidden characters."""
    head = text[: 4 * limit]  # longer texts are not read further
    line = " ".join(_visible(head).split())
    return line if len(line) <= limit and len(head) == len(text) else f"{line[: limit - 1].rstrip()}…"


def _visible(text: str) -> str:
    """Return the text without mentions, and without invisible and bidirectional characters."""
    text = AT.sub(r"‹\1›", text)
    return text if text.isprintable() else "".join(c for c in text if c.isprintable() or c.isspace() or c in JOINERS)


def run(text: str, limit: int, *, url: str = "", **style: Any) -> Run:
    """Return a text run in one style, with a link if the address is a web address. Empty text gives an empty run."""
    shown: Run = {"type": "TextRun", "text": plain(text, limit), **style}
    address = web_address(url)
    return shown | ({"selectAction": {"type": "Action.OpenUrl", "url": address}} if address else {})


def web_address(url: str) -> str:
    """Return the address for use in a link; empty for anything but http and https, or with a password."""
    try:
        parsed = URL(url)
    except ValueError:
        return ""
    address = str(parsed)
    safe = parsed.scheme in ("http", "https") and parsed.host and parsed.user is None and len(address) <= MAX_URL
    return address if safe else ""


def prose(text: str, limit: int, **style: Any) -> list[Run]:
    """Return a paragraph of Markdown with code and emphasis; everything else becomes text."""
    runs: list[Run] = []
    emphasis: list[str] = []
    for token in _markdown.parseInline(plain(text, limit))[0].children or ():
        kind = token.type.partition("_")[0]
        if kind in EMPHASIS and token.nesting == 1:
            emphasis.append(kind)
        elif kind in EMPHASIS:
            emphasis.remove(kind)
        elif token.content:  # also the text of links and images, whose addresses are not shown
            shown: Run = {"type": "TextRun", "text": token.content, **style}
            for each in emphasis:
                shown |= EMPHASIS[each]
            runs.append(shown | ({"fontType": MONOSPACE} if kind == "code" else {}))
    return runs


def dotted(*parts: Sequence[Run]) -> list[Run]:
    """Join the non-empty parts with dots."""
    runs: list[Run] = []
    for part in parts:
        shown = [each for each in part if each["text"]]
        runs += [SPACE, run("·", 1), SPACE, *shown] if runs and shown else shown
    return runs


def line(runs: Sequence[Run], spacing: str = "Small") -> list[Element]:
    """Return a line of text; empty without a non-empty run."""
    shown = [each for each in runs if each["text"]]
    return [{"type": "RichTextBlock", "inlines": shown, "spacing": spacing}] if shown else []


def note(text: str, limit: int) -> list[Element]:
    """Return small grey text."""
    return line([run(text, limit, size="Small", isSubtle=True)])


def code_box(code: str, limit: int) -> list[Element]:
    """Return lines of code in a box, from which they can be copied; empty for empty text.

    A client without this element shows them as text. https://adaptivecards.microsoft.com/?topic=CodeBlock
    """
    shown = _visible(code if len(code) <= limit else f"{code[: limit - 1]}…").rstrip()
    runs = [{"type": "TextRun", "text": each or " ", "fontType": MONOSPACE} for each in shown.splitlines()]
    fallback = container([element for each in runs for element in line([each], "None")])
    box = {"type": "CodeBlock", "codeSnippet": shown, "language": "PlainText", "fallback": fallback}
    return [box] if shown else []


def table(rows: Sequence[Sequence[str]], budget: SizeBudget) -> list[Element]:
    """Return rows of Markdown as a table; empty without any text. The first one is its header, and may be empty.

    A client without this element shows a line for each row.
    """
    columns = [{"width": 1}] * max(map(len, rows))
    shown = [
        [
            line(prose(cell, budget.characters, **({} if number else {"weight": "Bolder"})))
            for cell in [*row, *[""] * (len(columns) - len(row))]
        ]
        for number, row in enumerate(rows[: budget.entries + 1])
        if any(row)
    ]
    lines = [each for row in shown for each in line(dotted(*(cell[0]["inlines"] for cell in row if cell)))]
    cells = [[{"type": "TableCell", "items": each} for each in row] for row in shown]
    whole = {
        "type": "Table",
        "firstRowAsHeader": any(rows[0]),
        "columns": columns,
        "rows": [{"type": "TableRow", "cells": row} for row in cells],
        "fallback": container(lines),
    }
    more = listing(rows[budget.entries + 1 :], replace(budget, entries=0), "rows", lambda _: [])
    return [whole, *more] if shown else []


# --- what Teams shows beside the card of a message: https://learn.microsoft.com/microsoftteams/platform/bots/how-to/format-ai-bot-messages


def about_message(*, by_model: bool, citations: Sequence[Citation] = ()) -> tuple[dict[str, Any], ...]:
    """Return the entity with the AI label, the citations, and the label of a restricted source; none without any."""
    parts: dict[str, Any] = {}
    if by_model:
        parts["additionalType"] = ["AIGeneratedContent"]
    if citations:
        parts["citation"] = [_claim(citation) for citation in citations]
    if any(citation.restricted for citation in citations):
        parts["usageInfo"] = RESTRICTED
    schema = {"type": "https://schema.org/Message", "@type": "Message", "@context": "https://schema.org", "@id": ""}
    return ({**schema, **parts},) if parts else ()


def _claim(citation: Citation) -> dict[str, Any]:
    name, address = plain(citation.name, MAX_NAME), web_address(citation.deep_link)
    document = {
        "@type": "DigitalDocument",
        "name": name,
        "abstract": plain(citation.quote, MAX_ABSTRACT) or name,
        **({"url": address} if address else {}),
        **({"usageInfo": RESTRICTED} if citation.restricted else {}),
    }
    return {"@type": "Claim", "position": citation.number, "appearance": document}


# --- arrangement -----------------------------------------------------------------------------------------------------


def listing(
    entries: Sequence[T], budget: SizeBudget, noun: str, show: Callable[[T], list[Element]], left_out: int = 0
) -> list[Element]:
    """Return the first entries, and a count of the rest, with those left out: “and 7 more sources”."""
    shown = [element for entry in entries[: budget.entries] for element in show(entry)]
    missing = max(0, len(entries) - budget.entries) + left_out
    return shown + (note(f"and {missing} more {noun}", MAX_SUMMARY) if missing > 0 else [])


def container(elements: list[Element], **style: Any) -> Element:
    return {"type": "Container", "items": elements, **style}


# --- buttons ---------------------------------------------------------------------------------------------------------


def button(title: str, verdict: ButtonAction, subject: str) -> Element:
    """Return a button that is sent as an invoke, or as a message by older clients.

    A button that needs details opens a dialog; a client without dialogs sends a message, and the thread asks for the
    details.
    """
    data = {"verdict": str(verdict), "subject": subject}
    style = {"style": "positive"} if verdict is ButtonAction.TAKE_IT else {}
    if verdict in ASKING:
        opening = {**data, "msteams": {"type": "task/fetch"}}
        return {"type": "Action.Submit", "title": title, "data": opening, **style}
    fallback = {"type": "Action.Submit", "title": title, "data": data, **style}
    return {"type": "Action.Execute", "title": title, "verb": str(verdict), "data": data, "fallback": fallback, **style}


def submit_button(action: Element) -> Element:
    """Return the button for use in a dialog, which is submitted as a whole."""
    data = {name: action["data"][name] for name in ("verdict", "subject")}
    return {"type": "Action.Submit", "title": action["title"], "data": data}


def control_actions(buttons: Sequence[Control], judging: Sequence[Judged], more: Sequence[Control]) -> list[Element]:
    """Return the controls of a message: buttons, one that unfolds the judgements, and an overflow menu."""
    judged = list(_actions([control for each in judging for control in each.controls]))
    unfolded = {"type": "AdaptiveCard", "version": "1.5", "body": [], "actions": judged}
    return [
        *_actions(buttons),
        *([{"type": "Action.ShowCard", "title": RIGHT_OR_WRONG, "card": unfolded}] if judged else []),
        *(action | {"mode": "secondary"} for action in _actions(more)),
    ]


def _actions(controls: Sequence[Control]) -> Iterator[Element]:
    for control in controls:
        if control.verdict is not None:
            yield button(control.label, control.verdict, control.subject)
        else:
            yield from link_button(control.label, control.url)


def refreshed(shown: Card) -> Card:
    """Return the card with a refresh action, so that viewers see what was pressed meanwhile.

    Without `userIds`, Teams refreshes automatically in conversations of up to 60 people, and elsewhere on request.
    """
    action = {"type": "Action.Execute", "title": "Refresh", "verb": REFRESH, "data": {}}
    return replace(shown, content=shown.content | {"refresh": {"action": action}})


def text_field(identifier: str, label: str, max_length: int, value: str = "", *, multiline: bool = True) -> Element:
    """Return a text field that contains `value`. Its content is sent with every button of the card, under `identifier`."""
    shown = "".join(c for c in AT.sub(r"‹\1›", value) if c.isprintable() or c in EDITABLE)
    field: Element = {
        "type": "Input.Text",
        "id": identifier,
        "label": label,
        "isMultiline": multiline,
        "maxLength": max_length,
        "spacing": "Small",
        **({"value": shown} if shown else {}),
    }
    if not (multiline and shown):
        return field
    # A field stretches as far as what is around it; by itself, it shows two lines of a draft.
    return container([field | {"height": "stretch"}], minHeight=DRAFT_HEIGHT)


def picker(identifier: str, label: str, options: Sequence[tuple[str, str]], budget: SizeBudget) -> Element:
    """Return a picker of values and names. The choice is sent with every button of the card.

    Values longer than MAX_VALUE are dropped.
    """
    choices = [
        {"title": plain(name, MAX_NAME) or value, "value": value} for value, name in options if len(value) <= MAX_VALUE
    ]
    shown = choices[: CHOICES_PER_ENTRY * budget.entries]
    return {"type": "Input.ChoiceSet", "id": identifier, "label": label, "style": "compact", "choices": shown}


def link_button(title: str, url: str) -> list[Element]:
    """Return a button that opens a page; empty if the address is not a web address."""
    address = web_address(url)
    return [{"type": "Action.OpenUrl", "title": title, "url": address}] if address else []
