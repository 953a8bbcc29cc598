"""How pages, threads and past incidents are written as text, and read again."""

from __future__ import annotations

from collections.abc import Sequence

PAGE_TITLE = "Page Title: "  # these four as in the Ericsson chatbot, section V-A
PAGE_CONTENT = "The content of this page is as follows:"
MESSAGE = "Message: "
RESPONSES = "This message has the following responses:"
SERVICE = "Service: "
ROOT_CAUSE = "Root cause: "
FIX = "Fix: "


def thread_text(message: str, replies: Sequence[str]) -> str:
    """A message and its replies, with the prefixes that say which is which."""
    if not replies:
        return f"{MESSAGE}{message.strip()}"
    return "\n\n".join([f"{MESSAGE}{message.strip()}", RESPONSES, *(reply.strip() for reply in replies)])


def split_thread(text: str) -> tuple[str, str]:
    """A thread's message and the text of its replies; a text that is no thread is all message."""
    message, _, replies = text.partition(f"\n\n{RESPONSES}\n\n")
    return message.removeprefix(MESSAGE), replies
