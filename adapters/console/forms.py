"""Posted forms of the local page, with limits and clear errors."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl

from aiohttp import web

from adapters.http import read_body
from core.model.conversation import cut_message
from core.model.errors import InputTooLarge, MalformedInput

MAX_BODY = 64 * 1024  # bytes; 4 000 characters of any script have at most 48 000 bytes, percent-encoded
MAX_FIELDS = 10
RESOLVE = "/resolve"  # suffix of a sample incident's name that resolves it
MAX_TEXT = 4_000  # characters of a comment
MAX_PASTE = 1024 * 1024  # bytes of the form with a message, of which `cut_message` keeps the beginning and the end

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_NOT_IN_AN_ADDRESS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


async def read_form(request: web.Request, limit: int = MAX_BODY) -> dict[str, str]:
    """Return the fields of a form of at most `limit` bytes. Raises MalformedInput, InputTooLarge."""
    if request.content_type != "application/x-www-form-urlencoded":
        raise MalformedInput("The local page accepts only forms. Send application/x-www-form-urlencoded.")
    too_large = InputTooLarge(f"The form is over {limit // 1024} KiB: send less text.")
    body = await read_body(request.content, limit, too_large)
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS))
    except ValueError:
        raise MalformedInput("The form cannot be read: it is not UTF-8, or has too many fields.") from None


def question_text(form: dict[str, str]) -> str:
    """Return the text of a form without control characters, and without the middle of a long one. Raises MalformedInput."""
    text = _CONTROL.sub("", form.get("text", "").replace("\r\n", "\n")).strip()
    if not text:
        raise MalformedInput("The message is empty: write a question first.")
    return cut_message(text)


def comment_text(form: dict[str, str], limit: int = MAX_TEXT) -> str:
    """Return the text of a form as `question_text` does, if it has at most `limit` characters. Raises MalformedInput."""
    text = question_text(form)
    if len(text) > limit:
        raise InputTooLarge(f"The message has {len(text)} characters. Shorten it to at most {limit}.")
    return text


def page_of(form: dict[str, str]) -> str:
    """Return the page that contained the form, if it is one of ours; otherwise the first page.

    Raises MalformedInput for a page with control characters: a line end would begin another header, and browsers drop
    tabs, which would make `/<TAB>/elsewhere.example` another site.
    """
    page = form.get("page", "/")
    if _NOT_IN_AN_ADDRESS.search(page):
        raise MalformedInput("The form’s page address contains control characters. Load the page and try again.")
    return page if page.startswith("/") and not page.startswith(("//", "/\\")) else "/"


def see_other(page: str) -> web.Response:
    """Redirect the browser after a form was accepted, so that a reload does not submit it again."""
    return web.Response(status=303, headers={"Location": page})
