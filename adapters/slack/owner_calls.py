"""Rendering of owner pings in Slack: for the probable owner, or for the candidate teams."""

from __future__ import annotations

import re
from collections.abc import Iterable

from adapters.slack import blocks
from adapters.slack.mrkdwn import bold, escape
from adapters.slack.parts import LINE, NAME, Rendered, badge, dotted
from core.incidents.incident_view import format_on_call
from core.model.incident import AskedTeam
from core.model.messages import I_AM_UNSURE, IS_IT_YOURS, ON_CALL, OR, PING, OwnerPing, OwnerQuestion

USER_GROUP = re.compile(r"^S[A-Z0-9]{2,20}$")  # other ids, such as those of channels, mention nobody


def owner_call(message: OwnerPing | OwnerQuestion) -> Rendered:
    text = _ping(message) if isinstance(message, OwnerPing) else f"{is_it_theirs(message.teams)} {I_AM_UNSURE}"
    return Rendered(text, [blocks.section(text)])


def is_it_theirs(teams: Iterable[tuple[AskedTeam, str]]) -> str:
    """Return the question to teams, each with its mention, or without one by name only."""
    return IS_IT_YOURS.format(team=OR.join(_asked(team, mention) for team, mention in teams))


def _ping(ping: OwnerPing) -> str:
    on_call = f"{ON_CALL}: {escape(', '.join(ping.on_call), LINE)}" if ping.on_call else ""
    return dotted(f"{_called(ping.team_name, ping.mention)}: {PING}", badge(ping.badge), on_call)


def _asked(team: AskedTeam, mention: str) -> str:
    on_call = escape(format_on_call(team), LINE)
    return _called(team.team_name, mention) + (f" ({on_call})" if on_call else "")


def _called(team_name: str, mention: str) -> str:
    return f"<!subteam^{mention}>" if USER_GROUP.match(mention) else bold(team_name, NAME)
