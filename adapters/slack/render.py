"""The renderer of messages in Slack: any view of `core.model.message_view` becomes blocks within Slack's limits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC

from adapters.slack import blocks
from adapters.slack.blocks import Block, Rendered, bold, code, code_block, dotted, escape, link, prose
from core.answering.answer_view import HEADING_LINE, row_lines
from core.knowledge import markdown
from core.model.answer import Citation, Sentence
from core.model.badge import PredictionKind
from core.model.message_view import (
    Line,
    Link,
    Listing,
    MessageView,
    Mood,
    Part,
    Picker,
    Sources,
    Statements,
    TeamMention,
    TextField,
)
from core.model.messages import JUDGEMENTS, Message
from core.views import message_view

SIGNS: dict[Mood | None, str] = {
    None: "",
    Mood.CRITICAL: "🔴 ",
    Mood.WARNING: "🟡 ",
    Mood.INFO: "🔵 ",
    Mood.RESOLVED: "✅ ",
    Mood.ENDED: "⚪ ",
    Mood.THANKS: "✓ ",
    Mood.ATTENTION: "⚠️ ",
}
WORKING = "Working on your question"
RATINGS = JUDGEMENTS[PredictionKind.ANSWER]
MAX_MARKERS = 5  # per sentence
MARKER = 300  # characters, including its address
NAME = 80  # characters of a name or a badge

# The ids of fields. A long draft is split, since a field takes 3 000 characters.
PICKER = "team"
INPUT = "correction"
DRAFT_FIELDS = tuple(f"draft-{number}" for number in range(1, 7))
MAX_PART = 2_800  # characters of a part of a draft, which leaves room to edit it
MAX_DRAFT_LINE = 800  # characters; a part is cut at a line end, else at a space, if there is one this near to its end
CONTINUED = "Text, continued"

_USER_GROUP = re.compile(r"^S[A-Z0-9]{2,20}$")  # other ids, such as those of channels, mention nobody


@dataclass(frozen=True, slots=True)
class TextBudget:
    """Limits in characters, including escapes and addresses: of a text, of a quote, and of all lines of a list."""

    text: int
    quote: int
    listing: int
    groups: int = 1  # of blocks.MAX_OPTIONS options of a picker


# The first with which a message is small enough is used.
TEXT_BUDGETS = (
    TextBudget(900, 300, 9_000),
    TextBudget(900, 300, 5_000),
    TextBudget(450, 160, 2_500),
    TextBudget(250, 160, 1_400),
    TextBudget(120, 80, 500),
)
FORM_BUDGET = TextBudget(250, 160, blocks.MAX_TEXT, 5)  # a form or a page is limited to 250 kB


def render(message: Message, *, newest: bool = True) -> Rendered:
    """Return the blocks of a message. `newest` allows those that a workspace may not have yet."""
    return render_view(message_view(message), newest=newest)


def render_view(view: MessageView, *, newest: bool = True) -> Rendered:
    budget, body = _fitted(view)
    body = [blocks.in_readers_zone(each, view.times) for each in body]
    if newest and view.progress and not body:
        body = [blocks.plan(WORKING, view.steps, view.progress)]
    elif view.progress:
        body += [blocks.context(f"◐ {escape(view.progress, budget.text)}")]
    rated = [each for each in view.buttons if newest and each.verdict in RATINGS]
    place = view.buttons.index(rated[0]) if rated else 0  # what comes before stays first, such as the choice of a quote
    first, rest = view.buttons[:place], [each for each in view.buttons[place:] if each not in rated]
    called = next((line for line in view.lines if any(isinstance(each, TeamMention) for each in line.verbatim)), None)
    return Rendered(
        blocks.fallback(view.summary) if called is None else _words(called, budget),  # which notifies the team too
        [
            *body,
            *([blocks.actions(blocks.control_elements(first, (), ()))] if first else []),
            *blocks.feedback_block(rated),
            *(
                [blocks.actions(controls)]
                if (controls := blocks.control_elements(rest, view.judging, view.more))
                else []
            ),
        ],
    )


def body_blocks(view: MessageView) -> list[Block]:
    """Return the parts of a form or of a page without its controls."""
    return list(_body(view, FORM_BUDGET))


def _fitted(view: MessageView) -> tuple[TextBudget, list[Block]]:
    """Return the parts with the first budget with which Slack accepts them. The last one is always small enough."""
    tried = ((budget, list(_body(view, budget))) for budget in TEXT_BUDGETS)
    return next(
        (budget, body)
        for budget, body in tried
        if (len(body) <= blocks.MAX_BODY and blocks.length(body) <= blocks.MAX_MESSAGE) or budget is TEXT_BUDGETS[-1]
    )


def _body(view: MessageView, budget: TextBudget) -> Iterator[Block]:
    if view.headline:
        yield blocks.header(f"{SIGNS[view.mood]}{view.headline}")
    pending = [escape(view.state, budget.text)] if view.state else []
    for part in view.parts:
        match part:
            case Line(is_small=False):
                pending.append(_words(part, budget))
                continue
            case Statements():
                yield from blocks.sections([*pending, *_stated(part, budget)], "sentences", budget.listing)
            case _:
                yield from blocks.sections(pending, "lines", budget.listing)
                yield from _part(part, budget)
        pending = []
    yield from blocks.sections(pending, "lines", budget.listing)


def _part(part: Part, budget: TextBudget) -> Iterator[Block]:
    match part:
        case Line():
            yield blocks.context(_words(part, budget))
        case Listing():
            yield from _listing(part, budget)
        case Sources():
            lines = [_source(each, part, budget) for each in part.citations]
            title = f"{SIGNS[part.mood]}{bold(part.title, budget.text)}"
            yield from _block(title, lines, part.noun, budget, is_small=part.is_small)
        case Picker(label, options, is_picked):
            yield from blocks.picker(PICKER, label, options, budget.groups, picked=is_picked)
        case TextField():
            yield from _fields(part)


# --- lines -----------------------------------------------------------------------------------------------------------


def _words(line: Line, budget: TextBudget) -> str:
    label = f"{bold(line.label, NAME)}  " if line.label else ""
    text = prose(line.text, budget.text) + _pieces(line.verbatim, budget.text)
    shown = dotted(
        f"{line.at.astimezone(UTC):%m-%d %H:%M:%S}" if line.at is not None else "",
        _link(line.source, budget) if line.source is not None else "",
        f"_{text}_" if line.is_subtle and text else text,
        (code_block if "\n" in line.code else code)(line.code, budget.text),
        *(_link(each, budget) for each in line.links),
        escape(line.badge.text, NAME) if line.badge is not None else "",
    )
    quote = code(line.quote, budget.quote)
    return f"{SIGNS[line.mood]}{label}{shown}" + (f": {quote}" if quote else "")


def _pieces(pieces: Sequence[str | TeamMention], limit: int) -> str:
    """Return verbatim text with the teams that it names, each of which is notified if Slack knows it."""
    shown: list[str] = []
    for piece in pieces:
        if isinstance(piece, TeamMention):
            shown.append(f"<!subteam^{piece.id}>" if _USER_GROUP.match(piece.id) else bold(piece.name, NAME))
        else:
            before, after = (" " if end.isspace() else "" for end in (piece[:1], piece[-1:]))
            shown.append(f"{before}{text}{after}" if (text := escape(piece, limit)) else before)
    return "".join(shown).strip()


def _link(target: Link | Citation, budget: TextBudget) -> str:
    return (
        link(target.url, target.text, budget.text)
        if isinstance(target, Link)
        else link(target.deep_link, target.name, budget.text)
    )


def _listing(part: Listing, budget: TextBudget) -> Iterator[Block]:
    lines = [f"{'• ' * part.is_bulleted}{_words(each, budget)}" for each in part.entries]
    title = dotted(
        bold(part.title.replace("`", ""), budget.text), escape(part.badge.text, NAME) if part.badge is not None else ""
    )
    if part.is_chapter:
        yield blocks.header(part.title)
    yield from _block("" if part.is_chapter else title, lines, part.noun, budget, part.left_out, is_small=part.is_small)


def _block(
    title: str, lines: Sequence[str], noun: str, budget: TextBudget, left_out: int = 0, *, is_small: bool
) -> Iterator[Block]:
    """Yield a title and lines as one text, as long as Slack accepts it."""
    listed = blocks.listing(lines, noun, min(budget.listing, blocks.MAX_TEXT) - len(title) - 1, left_out)
    if text := "\n".join(filter(None, (title, listed))):
        yield blocks.context(text) if is_small else blocks.section(text)


def _source(citation: Citation, part: Sources, budget: TextBudget) -> str:
    number = f"[{citation.number}]" if part.is_numbered else "•"
    stale = f"{SIGNS[Mood.ATTENTION]}{citation.staleness}" if citation.staleness else ""
    quote = prose(citation.quote, budget.quote) if part.is_quoted and not part.is_small else ""
    return dotted(f"{number} {_link(citation, budget)}", citation.updated, stale) + (f"\n> {quote}" if quote else "")


def _stated(part: Statements, budget: TextBudget) -> list[str]:
    urls = {citation.number: citation.deep_link for citation in part.cited}
    title = [bold(part.title, budget.text)] if part.title else []
    return [*title, *(_statement(each, urls, budget.text) for each in part.sentences)]


def _statement(sentence: Sentence, urls: dict[int, str], limit: int) -> str:
    markers = [link(urls.get(number, ""), f"[{number}]", MARKER) for number in sentence.citations[:MAX_MARKERS]]
    if headed := HEADING_LINE.match(sentence.text):
        return " ".join([*markers, bold(headed[1], limit)])
    parts = markdown.blocks(sentence.text[: 2 * limit])
    shown = [line for each in parts for line in _lines(each, limit // 2 if len(parts) > 1 else limit)]
    return " ".join([blocks.listing(shown, "lines", 2 * limit), *markers])


def _lines(block: markdown.Block, limit: int) -> list[str]:
    if block.kind is markdown.BlockKind.CODE:
        return [code_block("\n".join(markdown.framed(block)[1]), limit)]
    rows = row_lines(block.text) if block.kind is markdown.BlockKind.TABLE else [block.text]
    return [prose(each, limit) for each in rows]


# --- fields ----------------------------------------------------------------------------------------------------------


def _fields(field: TextField) -> Iterator[Block]:
    """Yield a text field. A text of its own is split at line ends into as many fields as it needs."""
    if not field.is_multiline:
        yield blocks.text_field(field.name, field.label, field.limit, field.value, multiline=False)
        return
    if field.limit <= blocks.MAX_TEXT:
        yield blocks.text_field(INPUT, field.label, field.limit, field.value) | {"optional": field.is_optional}
        return
    for number, (name, text) in enumerate(zip(DRAFT_FIELDS, _split(field.value), strict=False)):
        label = CONTINUED if number else field.label
        yield blocks.text_field(name, label, blocks.MAX_TEXT, text) | {"optional": number > 0}


def _split(text: str) -> list[str]:
    parts: list[str] = []
    rest = text.strip()
    while len(rest) > blocks.MAX_TEXT:
        ends = (rest.rfind(end, MAX_PART - MAX_DRAFT_LINE, MAX_PART) for end in "\n ")
        parts.append(rest[: next((end for end in ends if end > 0), MAX_PART)])
        rest = rest[len(parts[-1]) :].strip()
    return [*parts, rest]
