"""The reply of a language model, read as Markdown: its sentences, items, rows and blocks of code, and what they cite.

Models cite as [1], [^1], 【1】, (passage 1), (1) or [1](address). All of it becomes [1] before the Markdown is parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from core.answering.model_text import cleaned
from core.answering.statements import sentences
from core.knowledge.markdown import LINK_TARGET

NOT_FOUND = "NOT FOUND"  # the reply of a model that finds no answer
WHOLE = ("", "markdown", "md", "text")  # languages of a fence around a whole reply
MAX_CLAIMS = 16  # sentences, items, rows and blocks of code that are read of a reply

_LABEL = r"(?:(?:passage|source|document|doc|reference|ref|excerpt)s?+\s*+#?+\s*+)"
_NUMBERS = rf"\d{{1,3}}+(?:\s*+(?:[,;&–-]|and)\s*+{_LABEL}?+\^?+\d{{1,3}}+)*+"
_CODE = re.compile(r"(```.*?(?:```|\Z)|`[^`\n]+`)", re.DOTALL)
_MARK = re.compile(
    rf"(?:<sup>)?[\[【]\s*+\^?{_LABEL}?({_NUMBERS})(?:†[^\]】\n]*+)?\s*+[\]】](?:{LINK_TARGET})?(?:</sup>)?"
    rf"|\((?:see |source: |from )?{_LABEL}({_NUMBERS})\)",
    re.IGNORECASE,
)
_WEAK_MARK = re.compile(
    rf"\(({_NUMBERS})\)(?=\s*(?:[.,;:!?|]|$))|(?:\b(?:according to|as per|per|from|in|see) )?\bpassages? ({_NUMBERS})\b,?",
    re.IGNORECASE | re.MULTILINE,
)
_NUMBER = re.compile(r"(\d+)(?:\s*[–-]\s*(\d+))?")
_MARKS = re.compile(r"\[(\d{1,3})\]")
_MARK_AFTER = re.compile(r"([.!?:。！？])((?:\s*+\[\d{1,3}\])++)")
_MARKED_END = re.compile(r"(?<=\][.!?。！？])\s+")  # a sentence may begin with a name in lower case
_LINE_END = re.compile(
    r"(?<=[.!?:;。！？\]|*`])[ \t]*+\n|\n(?=[ \t]*+[•–▪|\[])"
)  # of a line that the next one does not go on
_BULLET = re.compile(r"^\s*+[•–▪]\s+(?=\S)")
_TITLE = re.compile(r"^(\*\*|__)[^*_]+\1:?$")
_SOURCES = re.compile(r"^\W*+(?:sources?|references?|citations?|footnotes?|see|from)?\W*+$", re.IGNORECASE)
_FOOTNOTE = re.compile(r"^\s*+\[\d{1,3}\]\s*+:")
_PREFIX = re.compile(r"^[*_#\s]*+(?:final )?answer[*_]{0,3}:[*_]{0,3}\s+", re.IGNORECASE)
_NOT_FOUND = re.compile(r"\W*not[ _]found\b", re.IGNORECASE)
_MARKDOWN = (
    MarkdownIt("commonmark", {"html": False}).enable("table").disable(["reference", "lheading", "code", "html_block"])
)


class Form(StrEnum):
    LEAD = "lead"  # a heading, the head of a table, or a line that introduces what follows
    SENTENCE = "sentence"
    ITEM = "item"
    STEP = "step"  # of a numbered list
    ROW = "row"  # of a table
    CODE = "code"  # a block, with its fences


@dataclass(frozen=True, slots=True)
class CitedSentence:
    """A sentence, list item, table row or block of code, without its marks, and the numbers of the passages that it cites."""

    text: str
    numbers: tuple[int, ...]
    form: Form = Form.SENTENCE

    @property
    def is_lead(self) -> bool:
        """Return whether it may say nothing itself and only introduce what follows."""
        return self.form is Form.LEAD or self.text.endswith(":")


def is_not_found(reply: str) -> bool:
    """Return whether a model says that the passages do not answer."""
    return not reply.strip() or bool(_NOT_FOUND.match(reply))


def claims(reply: str) -> list[CitedSentence]:
    """Return the claims of a reply in order, at most MAX_CLAIMS.

    A claim without marks cites what the next one of its block cites, else what the one before it does, else the next: models
    cite once after two sentences, under a list, or in the line before it. A lead needs no citation. The rows of a table
    keep their cells, separated by “ | ”.
    """
    read = list(_claims(_canonical(reply)))
    end = next((place for place, (_, each) in enumerate(read) if each.text and _SOURCES.match(each.text)), len(read))
    read[end:] = [(block, replace(each, text="")) for block, each in read[end:]]
    result: list[CitedSentence] = []
    for place, (block, each) in enumerate(read):
        if not each.text or _NOT_FOUND.match(each.text):
            continue
        if each.numbers or each.form is Form.LEAD:
            result.append(each)
            continue
        cited = [(number, other, own) for number, (other, own) in enumerate(read) if own.numbers]
        order = sorted(
            cited,
            key=lambda it: (it[1] != block, it[0] < place if it[1] == block else it[0] > place, abs(it[0] - place)),
        )
        result.append(replace(each, numbers=order[0][2].numbers if order else ()))
    return result[:MAX_CLAIMS]


def complete_claims(growing: str) -> list[CitedSentence]:
    """Return the claims of a reply that still grows, without the last one, which may be incomplete."""
    return claims(growing)[:-1]


def _canonical(reply: str) -> str:
    """Return the reply with each citation as [1]; weaker marks count only where there are no others."""
    reply = _PREFIX.sub("", reply.strip(), count=1)
    parts = _CODE.split(reply)
    mark = _MARK if any(map(_MARK.search, parts[::2])) else _WEAK_MARK
    return "".join(part if place % 2 else mark.sub(_marks, part) for place, part in enumerate(parts))


def _marks(match: re.Match[str]) -> str:
    text = match[1] or match[2]
    spans = [(int(first), int(last or first)) for first, last in _NUMBER.findall(text)]
    return "".join(f"[{number}]" for first, last in spans for number in range(first, min(last, first + 9) + 1))


def _claims(reply: str) -> Iterator[tuple[int, CitedSentence]]:
    """Yield each claim with the number of its block, and an empty one for a line that only cites."""
    nodes = SyntaxTreeNode(_MARKDOWN.parse(reply)).children
    if [(each.type, each.info in WHOLE) for each in nodes] == [("fence", True)] and _MARK.search(nodes[0].content):
        nodes = SyntaxTreeNode(_MARKDOWN.parse(_canonical(nodes[0].content))).children  # the whole reply is fenced
    for block, node in enumerate(nodes):
        yield from ((block, each) for each in _of_node(node, Form.SENTENCE))


def _of_node(node: SyntaxTreeNode, form: Form) -> Iterator[CitedSentence]:
    match node.type:
        case "heading":
            yield CitedSentence(cleaned(node.children[0].content), _numbers(node.children[0].content), Form.LEAD)
        case "fence":
            yield _code(node.content)
        case "tr":
            is_head = node.parent is not None and node.parent.type == "thead"
            yield _row([each.children[0].content for each in node.children], Form.LEAD if is_head else Form.ROW)
        case "paragraph":
            for place, line in enumerate(_LINE_END.split(node.children[0].content)):
                yield from _of_line(line, Form.SENTENCE if place else form)
        case "list_item":
            is_step = node.parent is not None and node.parent.type == "ordered_list"
            for place, child in enumerate(node.children):
                yield from _of_node(child, Form.SENTENCE if place else Form.STEP if is_step else Form.ITEM)
        case _:
            for child in node.children:
                yield from _of_node(child, form)


def _code(content: str) -> CitedSentence:
    lines = ["".join(filter(str.isprintable, _MARKS.sub("", line))).rstrip(" #") for line in content.splitlines()]
    text = "\n".join(lines)
    return CitedSentence(f"```\n{text}\n```" if text.strip() else "", _numbers(content), Form.CODE)


def _row(cells: list[str], form: Form) -> CitedSentence:
    texts = [" ".join(cleaned(cell.replace("<br>", " ")).split()) for cell in cells]
    return CitedSentence(" | ".join(filter(None, texts)), _numbers(" ".join(cells)), form)


def _of_line(line: str, form: Form) -> Iterator[CitedSentence]:
    bare = _MARKS.sub("", line).strip()
    if _FOOTNOTE.match(line):
        return
    if _SOURCES.match(bare):
        yield CitedSentence("", _numbers(line))
    elif len(bare) > 1 and bare[0] == bare[-1] == "|":
        yield _row([] if not bare.strip("|-: ") else line.strip("| ").split("|"), Form.ROW)
    elif form is Form.SENTENCE and _BULLET.match(line):
        yield CitedSentence(cleaned(_BULLET.sub("", line)), _numbers(line), Form.ITEM)
    elif form is Form.SENTENCE and _TITLE.match(bare) and not bare.strip("*_").endswith((".", "!", "?")):
        yield CitedSentence(cleaned(line), _numbers(line), Form.LEAD)
    elif form is not Form.SENTENCE:
        yield CitedSentence(cleaned(_MARK_AFTER.sub(r"\2\1", line)), _numbers(line), form)
    else:
        yield from _sentences(line)


def _sentences(line: str) -> Iterator[CitedSentence]:
    answer, cited = "", tuple[int, ...]()
    moved = _MARK_AFTER.sub(r"\2\1", line)  # “It is. [1]” is “It is [1].”
    for part in (each for piece in _MARKED_END.split(moved) for each in sentences(piece)):
        text, numbers = cleaned(part), _numbers(part)
        if text.rstrip(".,!:").lower() in ("yes", "no"):
            answer, cited = f"{text} ", numbers
        elif text or numbers:
            form = Form.LEAD if text.endswith(":") and not (numbers or answer) else Form.SENTENCE
            yield CitedSentence(f"{answer}{text}", numbers or cited, form)
            answer, cited = "", ()
    if answer:
        yield CitedSentence(answer.strip(), cited)


def _numbers(text: str) -> tuple[int, ...]:
    prose = "".join(_CODE.split(text)[::2])
    return tuple(dict.fromkeys(map(int, _MARKS.findall(prose))))
