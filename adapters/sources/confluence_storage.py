"""Conversion of Confluence's storage format to Markdown.

The format is XHTML with macros (`ac:…`) and references (`ri:…`):
https://confluence.atlassian.com/doc/confluence-storage-format-790796544.html
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape

from bs4 import Tag
from bs4.element import NavigableString

from adapters.html import LANGUAGE, element, markdown_of, parsed
from core.model.text import missing_part

PANELS = {name: name.capitalize() for name in ("info", "note", "tip", "warning", "success", "error")}
CODE = frozenset({"code", "noformat"})
OF_LINKS = frozenset(
    "anchor change-history children contentbylabel contributors create-from-template listlabels livesearch pagetree "
    "pagetreesearch recently-updated toc".split()
)
"""Macros that show only links, or nothing; what another one shows is missing from the page."""
SIGNS = {"tick": "✔", "cross": "✘", "warning": "⚠", "plus": "+", "minus": "−", "thumbs-up": "👍", "thumbs-down": "👎"}
"""Signs for emoticons, which are often all that a table's cell contains; Data Center stores only their names."""

_CDATA = re.compile(r"<!\[CDATA\[(.*?)(?:\]\]>|\Z)", re.DOTALL)
_LEFT_OUT = ("ac:adf-node", "ac:placeholder", "ac:task-id", "ac:task-uuid", "ac:parameter")

PageLink = Callable[[str, str], str]
"""A space's key (empty: the page's own space) and a title → the address of that page."""


def to_markdown(storage: str, page_link: PageLink, name_of: Callable[[str], str]) -> str:
    """Return the text of a page with tables, lists, code, links, and the titles of panels and expands.

    Attachments and images appear by name. `name_of` returns the name of a user by id. Never raises: invalid input is
    returned as its text.
    """
    soup = parsed(_CDATA.sub(lambda match: escape(match[1]), storage))
    # Inner elements come later in the document than outer ones, so they are processed first.
    for macro in reversed(soup("ac:structured-macro")):
        _expand_macro(macro, page_link)
    for macro in reversed(soup("ac:macro")):  # the format before Confluence 4
        macro.unwrap()
    for link in soup("ac:link"):
        _expand_link(link, page_link, name_of)
    texts: dict[str, Callable[[Tag], str]] = {
        "ri:user": lambda user: _mention(user, name_of),
        "ac:image": lambda image: f"(image: {_image_name(image)})",
        "ac:emoticon": _sign,
        "time": lambda time: str(time.get("datetime") or time.get_text()),
    }
    for tag in soup([*texts]):
        tag.replace_with(NavigableString(texts[tag.name](tag)))
    for task in soup("ac:task"):
        _expand_task(task)
    for tasks in soup("ac:task-list"):
        tasks.name = "ul"
    for tag in soup(_LEFT_OUT):
        tag.decompose()
    for tag in soup(lambda tag: tag.name.startswith("ac:")):
        tag.unwrap()
    return markdown_of(soup)


def _expand_macro(macro: Tag, page_link: PageLink) -> None:
    name = str(macro.get("ac:name") or "")
    body, code = macro.find("ac:rich-text-body", recursive=False), macro.find("ac:plain-text-body", recursive=False)
    title = _parameter(macro, "title")
    if name == "status":
        macro.replace_with(NavigableString(title))
    elif name == "jira" and (key := _parameter(macro, "key")):
        macro.replace_with(NavigableString(key))
    elif isinstance(code, Tag):
        macro.replace_with(*_code(code, title, _parameter(macro, "language") if name in CODE else ""))
    elif isinstance(body, Tag):
        body.name = "div"
        if heading := ": ".join(filter(None, (PANELS.get(name, ""), title))):
            body.insert(0, element(f"<p><strong>{escape(heading)}</strong></p>"))
        macro.replace_with(body)
    elif name in OF_LINKS:
        macro.decompose()
    else:
        macro.replace_with(NavigableString(_missing(macro, name, page_link)))


def _missing(macro: Tag, name: str, page_link: PageLink) -> str:
    """Return the name of what a macro shows: a page with its address, a file, or the macro itself."""
    page, attachment = macro.find("ri:page"), macro.find("ri:attachment")
    if isinstance(page, Tag) and (title := str(page.get("ri:content-title") or "")):
        return missing_part(title, page_link(str(page.get("ri:space-key") or ""), title))
    file = str(attachment.get("ri:filename") or "") if isinstance(attachment, Tag) else ""
    return missing_part(file or ": ".join(filter(None, (name, _parameter(macro, "")))))


def _code(code: Tag, title: str, language: str) -> list[Tag]:
    text = escape(code.get_text().strip("\n"))
    block = element(f'<pre {LANGUAGE}="{escape(language)}">{text}</pre>')
    return [element(f"<p><strong>{escape(title)}</strong></p>"), block] if title else [block]


def _parameter(macro: Tag, name: str) -> str:
    parameter = macro.find("ac:parameter", attrs={"ac:name": name}, recursive=False)
    return parameter.get_text().strip() if parameter else ""


def _expand_link(link: Tag, page_link: PageLink, name_of: Callable[[str], str]) -> None:
    body = link.find(("ac:link-body", "ac:plain-text-link-body"))
    text = body.get_text().strip() if body else ""
    page, attachment, user = (link.find(f"ri:{kind}") for kind in ("page", "attachment", "user"))
    if isinstance(user, Tag):
        link.replace_with(NavigableString(_mention(user, name_of)))
    elif isinstance(attachment, Tag):
        file = str(attachment.get("ri:filename") or "")
        link.replace_with(NavigableString(f"{text} (attachment: {file})" if text and text != file else file))
    elif isinstance(page, Tag):
        title = str(page.get("ri:content-title") or "")
        address = page_link(str(page.get("ri:space-key") or ""), title)
        link.replace_with(element(f'<a href="{escape(address)}">{escape(text or title)}</a>'))
    else:
        link.replace_with(NavigableString(text or str(link.get("ac:anchor") or "")))


def _mention(user: Tag, name_of: Callable[[str], str]) -> str:
    identity = user.get("ri:account-id") or user.get("ri:userkey") or user.get("ri:username") or ""
    return f"@{name_of(str(identity))}"


def _image_name(image: Tag) -> str:
    attachment = image.find("ri:attachment")
    named = attachment.get("ri:filename") if isinstance(attachment, Tag) else None
    return str(image.get("ac:alt") or named or "")


def _sign(emoticon: Tag) -> str:
    fallback = str(emoticon.get("ac:emoji-fallback") or "")
    return SIGNS.get(str(emoticon.get("ac:name")), "") if not fallback or fallback.startswith(":") else fallback


def _expand_task(task: Tag) -> None:
    status, body = task.find("ac:task-status"), task.find("ac:task-body")
    done = isinstance(status, Tag) and status.get_text().strip() == "complete"
    if isinstance(status, Tag):
        status.decompose()
    if isinstance(body, Tag):
        body.insert(0, NavigableString("[x] " if done else "[ ] "))
        body.unwrap()
    task.name = "li"
