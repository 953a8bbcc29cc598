"""`help`: what can be said to Plumbline, where it is asked."""

from __future__ import annotations

from core.model.conversation import Question
from core.model.messages import Notice
from core.ports import Store
from handlers.questions.post_message import Poster

ABOUT = "Ask me about CI/CD and operations; every sentence of an answer is cited, and a follow-up in the thread is understood."

EVERYWHERE = (
    "how do I roll back a canary?",
    "status: what is open, and how fresh my knowledge is",
    "triage …: with a pasted alert: who should own it",
    "maintenance payment-gateway 2h new ledger: I post nothing about it that long; maintenance: what is quiet now",
    "settings: what is set for this channel; quiet 22:00-07:00 Europe/Berlin: when it wants to be left alone",
    "home: your open incidents, what I know and how I am set, as far as you may read it",
    "help: this message",
)
ABOUT_AN_INCIDENT = (
    "triage: who should own this incident",
    "rca: why it probably broke",
    "root cause: …; fix: …; owner: …: once it has ended, a note that I learn from",
)
ABOUT_AN_ANSWER = ("correct: …: what is right instead of my last answer here; once confirmed, I answer with it",)
IN_A_THREAD = "In the thread of an incident or an answer, “help” says what else I can do there."


async def show_help(question: Question, *, store: Store, poster: Poster) -> None:
    """Show what can be done in this place, the most fitting first."""
    async with store.transaction() as transaction:
        incident = await transaction.incidents.in_thread(question.place)
        said = await transaction.conversations.history(question.place, 1)
    here = (*(ABOUT_AN_INCIDENT if incident else ()), *(ABOUT_AN_ANSWER if said else ()))
    lines = [ABOUT, *(f"• {line}" for line in (*here, *EVERYWHERE)), *(() if here else (IN_A_THREAD,))]
    await poster.post_once(f"help:{question.id}", question.place, Notice("\n".join(lines)))
