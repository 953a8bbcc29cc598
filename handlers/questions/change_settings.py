"""The `settings` and `quiet …` commands: show and change the settings of a channel."""

from __future__ import annotations

from dataclasses import replace

from core.model.alert import Severity
from core.model.channel_settings import HOW, ChannelSettings, parse_quiet_hours
from core.model.conversation import PUBLIC, Question
from core.model.errors import MalformedInput
from core.model.messages import Notice
from handlers.common.ports import Ports
from handlers.incidents.declare_maintenance import OUTSIDERS

NOT_QUIET = "Quiet hours: none."
LEFT_ALONE = (
    "During quiet hours I ping nobody and post only {loud} incidents. "
    "I hold the others and post a summary when quiet hours end. I still answer questions."
)


async def show_settings(question: Question, ports: Ports) -> None:
    """Show the channel's settings, and how to change them."""
    async with ports.store.transaction() as transaction:
        settings = await transaction.channel_settings.get(question.place)
    text = "\n".join(["Settings of this channel:", *format_settings(settings), HOW])
    await ports.poster.post_once(f"settings:{question.id}", question.place, Notice(text))


async def set_quiet_hours(question: Question, ports: Ports) -> None:
    """Set the channel's quiet hours; without an argument, show the settings. Only for members of the workspace."""
    if not question.text.strip():
        await show_settings(question, ports)
        return
    if PUBLIC not in question.audience.readers:
        await ports.poster.post_once(f"settings:{question.id}", question.place, Notice(OUTSIDERS))
        return
    try:
        quiet = parse_quiet_hours(question.text)
    except MalformedInput as error:
        await ports.poster.post_once(f"settings:{question.id}", question.place, Notice(str(error)))
        return
    async with ports.store.transaction() as transaction:
        settings = replace(await transaction.channel_settings.get(question.place), quiet=quiet)
        await transaction.channel_settings.save(question.place, settings)
    who = question.asker.name or "Somebody"
    text = "\n".join([f"{who} changed the settings of this channel:", *format_settings(settings)])
    await ports.poster.post_once(f"settings:{question.id}", question.place, Notice(text))


def format_settings(settings: ChannelSettings) -> list[str]:
    """Return the channel's settings as lines of text."""
    if settings.quiet is None:
        return [f"• {NOT_QUIET}"]
    return [f"• Quiet hours: every day from {settings.quiet}.", LEFT_ALONE.format(loud=_loud(settings.quiet.loud))]


def _loud(severity: Severity) -> str:
    return severity if severity is Severity.CRITICAL else f"{severity} and more severe"
