"""Greetings, and the `help` command: show what can be asked in this place."""

from __future__ import annotations

from core.model.conversation import Question
from core.model.messages import Notice
from handlers.common.ports import Ports

HELLO = (
    "Hello, I’m Plumbline. Ask me about CI/CD and operations; I answer from your documents, with links. "
    "Say “help” to see what else I can do. I post only when asked, or when an incident belongs to this channel."
)
ABOUT = "Ask me about CI/CD and operations. I answer from your documents, with links. Ask follow-up questions in the thread."

EVERYWHERE = (
    "how do I roll back a canary?",
    "incidents: what is open now; status: the same, and when each source was last read",
    "triage …: who should own a pasted alert; rca …: why it probably fired, or why a linked build failed",
    "update SERVICE: a draft for people outside the teams about its open incident",
    "maintenance payment-gateway 2h new ledger: post nothing about it for that long; maintenance: list the open windows",
    "settings: show the settings of this channel; quiet 22:00-07:00 Europe/Berlin: set its quiet hours",
    "home: your open incidents, my sources and my settings, as far as you may read them",
    "help: this message",
)
ABOUT_AN_INCIDENT = (
    "triage: who should own this incident",
    "rca: why it probably broke",
    "update: a draft for people outside the teams, which you edit and send to a channel",
    "questions about it: what changed? who is on call? what does the runbook say? show me the logs; postmortem",
    "root cause: …; fix: …; owner: …: after it ended, a note that I learn from",
)
ABOUT_AN_ANSWER = ("correct: …: the right answer instead of my last one here; once confirmed, I answer with it",)
IN_A_THREAD = "In the thread of an incident or an answer, “help” lists what else I can do there."


async def show_help(question: Question, ports: Ports) -> None:
    """Show the available commands, starting with those for this thread."""
    async with ports.store.transaction() as transaction:
        incident = await transaction.incidents.in_thread(question.place)
        turns = await transaction.conversations.history(question.place, 1)
    here = (*(ABOUT_AN_INCIDENT if incident else ()), *(ABOUT_AN_ANSWER if turns else ()))
    lines = [ABOUT, *(f"• {line}" for line in (*here, *EVERYWHERE)), *(() if here else (IN_A_THREAD,))]
    await ports.poster.post_once(f"help:{question.id}", question.place, Notice("\n".join(lines)))


async def say_hello(question: Question, ports: Ports) -> None:
    """Introduce the bot, when it is added or greeted."""
    await ports.poster.post_once(f"hello:{question.id}", question.place, Notice(HELLO))
