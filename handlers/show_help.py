"""`help`: what can be said to Plumbline."""

from __future__ import annotations

from core.conversation import Question
from core.messages import Notice
from handlers.post_message import Poster

HELP = """\
Ask me about CI/CD and operations; every sentence of an answer is cited, and a follow-up in the thread is understood.
• how do I roll back a canary?
• status: what is open, and how fresh my knowledge is
• triage: in an incident's thread, or with a pasted alert: who should own it
• rca: in an incident's thread: why it probably broke
• root cause: …; fix: …; owner: …: in the thread of an incident that ended, a note that I learn from
• correct: … in the thread of an answer: what is right instead; once confirmed, I answer with it
• help: this message"""


async def show_help(question: Question, *, poster: Poster) -> None:
    await poster.post_once(f"help:{question.id}", question.place, Notice(HELP))
