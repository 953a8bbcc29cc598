"""An Enterprise Grid in which the app is installed as a whole: one token for all of its workspaces.

A public channel is then read by the members of its own workspace, and Slack does not say by whom else. So each counts as
private: nothing that was said in it is shown elsewhere.

https://docs.slack.dev/reference/methods/auth.teams.list
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient

from adapters.chat import CheckResult
from adapters.slack.client import pages
from core.model.errors import ChatUnavailable
from core.model.text import counted

REMEDY = "Add the app to workspaces: in Slack's administration, under Integrations, Installed apps."


def is_organisation(identity: Mapping[str, Any]) -> bool:
    """Return whether the answer of `auth.test` is about a token of a whole organisation."""
    return bool(identity.get("is_enterprise_install"))


async def workspaces(client: AsyncWebClient, identity: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the arguments with which a method reads each workspace of a token: its `team_id` in an organisation; else one
    empty mapping, because the token is of one workspace.

    Raises the errors of `pages`, and ChatUnavailable for an organisation without workspaces, whose people are unknown.
    """
    if not is_organisation(identity):
        return [{}]
    if not (named := await _named(client)):
        raise ChatUnavailable(f"The app is in no workspace of its organisation. {REMEDY}")
    return named


async def _named(client: AsyncWebClient) -> list[dict[str, str]]:
    listed = pages(client, "auth.teams.list", {})
    return [{"team_id": str(team["id"])} async for page in listed for team in page.get("teams", ())]


async def check_organisation(client: AsyncWebClient, identity: Mapping[str, Any]) -> list[CheckResult]:
    """Return in how many workspaces of an organisation the app is; nothing about any other app. Raises ChatUnavailable."""
    if not is_organisation(identity):
        return []
    count = len(await _named(client))
    result = f"has the app in {counted(count, 'workspace')}; every channel counts as private"
    return [CheckResult("Slack organisation", result, "" if count else REMEDY)]
