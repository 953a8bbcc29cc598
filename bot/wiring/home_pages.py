"""Wiring of the home pages that people open in a chat."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from bot.wiring.application import Core
from core.model.conversation import Audience
from core.model.home import Home
from handlers.questions.show_home import home_of


def home_pages(core: Core) -> Callable[[Sequence[str], Audience], Awaitable[Home]]:
    """Return a function that builds the home page of a person with these names, for this audience."""
    return partial(
        home_of,
        channels=core.workspace.channels,
        teams=core.workspace.teams,
        settings=workspace_settings(core),
        store=core.store,
        index=core.knowledge.index,
    )


def workspace_settings(core: Core) -> tuple[tuple[str, str], ...]:
    """Return the settings that members of the workspace may see, as names and values."""
    workspace = core.workspace
    policy = workspace.policy
    public = [f"#{channel.name}" for channel in workspace.channels if not channel.private]
    return (
        (
            "Answers",
            f"quoted from the documents; where unsure, {core.model.name} chooses"
            if core.examined and core.model
            else "quoted from the documents",
        ),
        ("Put an owner or a cause as a question", _threshold("below", policy.ask_below)),
        ("Ping an owner", _threshold("above", policy.ping_owner_above)),
        ("Ping two teams if no owner is clear", "yes" if policy.ping_two_when_unsure else "no"),
        ("Lifetime of a confirmed correction", f"{workspace.curated_for.days} days"),
        ("Known channels", ", ".join(public) or "none"),
        ("Settings of one channel", "say “settings” in that channel"),
        *((("Local page", core.settings.public_url),) if core.settings.public_url else ()),
    )


def _threshold(side: str, share: float | None) -> str:
    return "never" if share is None else f"{side} a badge of {100 * share:.0f} %"
