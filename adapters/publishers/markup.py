"""Markdown as the markup of wikis."""

from __future__ import annotations

import re

from markdown_it import MarkdownIt
from markdown_it.token import Token

_ADDRESS = re.compile(r"https?://|mailto:")  # a link to anything else could name a person, a file or a macro
# Jira links a bare address, and reads an escape in it as a part of it. Inside a word, “-” and “_” are not markup.
_WIKI_SPECIAL = re.compile(r"https?://[^\s\\{}\[\]|!]+|[\\{}\[\]*+^~|!#@?]|(?<![^\W_])[_-]|[_-](?![^\W_])")
_markdown = MarkdownIt("commonmark", {"html": False, "xhtmlOut": True})


def html(text: str) -> str:
    """Return Markdown as XHTML, which Confluence stores."""
    return _markdown.render(text)


def wiki_markup(text: str) -> str:
    """Return Markdown as Jira's wiki markup. Tables and images become text."""
    lines: list[str] = []
    prefixes: list[str] = []  # of the lists around a line, and of a quotation
    for token in _markdown.parse(text):
        match token.type:
            case "heading_open":
                prefixes.append(f"h{token.tag[1:]}. ")
            case "bullet_list_open" | "ordered_list_open":
                prefixes.append("*" if token.type.startswith("bullet") else "#")
            case "blockquote_open":
                prefixes.append("bq. ")
            case "heading_close" | "bullet_list_close" | "ordered_list_close" | "blockquote_close":
                prefixes.pop()
                lines.append("")
            case "inline":
                lists = "".join(each for each in prefixes if each in "*#")
                other = "".join(each for each in prefixes if each not in "*#")
                lines.append(" ".join(filter(None, (lists, f"{other}{_wiki_inline(token)}"))))
            case "paragraph_close" if not prefixes:
                lines.append("")
            case "fence" | "code_block":
                shown = token.content.rstrip().replace("{noformat", "{\u2060noformat")  # it would end here
                lines += [f"{{noformat}}\n{shown}\n{{noformat}}", ""]
    return "\n".join(lines).strip() + "\n"


def _wiki_inline(inline: Token) -> str:
    parts: list[str] = []
    addresses: list[str] = []
    for token in inline.children or ():
        match token.type:
            case "code_inline":
                parts.append(f"{{{{{_plain(token.content)}}}}}")
            case "strong_open" | "strong_close":
                parts.append("*")
            case "em_open" | "em_close":
                parts.append("_")
            case "link_open":
                href = str(token.attrGet("href"))
                addresses.append(href.replace("|", "%7C").replace("]", "%5D") if _ADDRESS.match(href) else "")
                parts.append("[" if addresses[-1] else "")
            case "link_close":
                parts.append(f"|{address}]" if (address := addresses.pop()) else "")
            case "softbreak" | "hardbreak":
                parts.append(" ")
            case _:
                parts.append(_plain(token.content))
    return "".join(parts)


def _plain(text: str) -> str:
    return _WIKI_SPECIAL.sub(lambda match: match[0] if match[0][0] == "h" else f"\\{match[0]}", text)
