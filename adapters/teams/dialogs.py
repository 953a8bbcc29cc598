"""Dialogs of Teams: a message in a window of its own."""

from __future__ import annotations

from typing import Any

from adapters.teams.elements import ADAPTIVE_CARD, Card, Element, plain, submit_button
from adapters.teams.render import render_view
from core.model.messages import Form
from core.views.message_view import message_view
from core.views.request_view import TEXT, question_view

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
