"""The wiring of `sign_in`: the accounts of a company, with which people use the local page and their agents `/mcp`."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import aiohttp

from adapters.chat import CheckResult, secret
from adapters.clock import SystemClock
from adapters.section import Host, is_loopback
from adapters.signing_in.accounts import SIGNED_IN, Accounts
from adapters.signing_in.section import SignInSection
from adapters.slack.settings import SlackSettings
from adapters.teams.settings import TeamsSettings
from bot.config.settings import Settings
from bot.wiring.application import Core
from core.model.conversation import Person, Platform
from core.model.errors import ChatUnavailable, ConfigurationError, PlumblineError

if TYPE_CHECKING:
    from adapters.signing_in.provider import Provider


def open_accounts(core: Core) -> Accounts | None:
    """Return the accounts; None if plumbline.yaml names no provider. Raises ConfigurationError."""
    section, settings = core.workspace.sign_in, core.settings
    if section is None:
        return None
    host = Host(settings, core.session, core.clock)
    return Accounts(
        section,
        _provider(section, host, settings),
        core.engine,
        public_url=settings.public_url,
        channels=core.workspace.channels,
        find_people=partial(people_of, host=host, id_claim=section.id_claim),
        clock=core.clock,
    )


def _provider(section: SignInSection, host: Host, settings: Settings) -> Provider:
    from adapters.openid import Issuer
    from adapters.signing_in.provider import Provider

    for address in (section.issuer, settings.public_url):
        if not (address.startswith("https://") or is_loopback(address)):
            raise ConfigurationError(
                f"sign_in: the `issuer` and PLUMBLINE_PUBLIC_URL must begin with https://, unlike {address!r}."
            )
    if section.agents_audience == section.client_id:
        raise ConfigurationError(
            "sign_in: `agents_audience` must not be the `client_id`, or what signs a person in would also be a token of /mcp."
        )
    described = f"{section.issuer.rstrip('/')}/.well-known/openid-configuration"
    issuer = Issuer("The provider of sign_in", section.issuer, described, host.clock, host.session)
    password = "" if section.client_certificate else settings.secret(section.client_secret_env, "sign_in")
    return Provider(section, password, issuer)


async def people_of(claims: dict[str, Any], address: str, host: Host, id_claim: str) -> list[Person]:
    """Return a person's identities in the chats that are on and tell them.

    Slack knows an address, if it allows us to ask (`users:read.email`); Teams has the ids of Entra ID.
    """
    from adapters.slack.client import ask, slack_client

    people, name = list[Person](), str(claims.get("name") or "")
    slack = host.settings.chat(SlackSettings)
    if slack.is_on and address:
        client = slack_client(secret(slack.bot_token), slack.api_url, host.session)
        with suppress(ChatUnavailable):  # nobody waits for Slack to sign in
            user: dict[str, Any] = (await ask(client, "users.lookupByEmail", email=address))[0].get("user") or {}
            people += [Person(Platform.SLACK, user["id"], name)] if user and not user.get("deleted") else []
    if host.settings.chat(TeamsSettings).is_on and id_claim == "oid" and "oid" in claims:
        people.append(Person(Platform.TEAMS, claims["oid"], name))
    return people


async def check_sign_in(section: SignInSection, settings: Settings, session: aiohttp.ClientSession) -> CheckResult:
    """Check that the provider answers, calls itself as plumbline.yaml does, and has keys."""
    what = f"sign-in with {section.issuer}"
    try:
        metadata = await _provider(section, Host(settings, session, SystemClock()), settings).issuer.metadata()
    except ConfigurationError as error:
        return CheckResult(what, "is not configured, and the bot does not start", str(error))
    except PlumblineError as error:
        return CheckResult(what, "does not work", str(error), fatal=False)
    ends = "" if "end_session_endpoint" in metadata else "; it does not say where to sign out"
    redirect = f"{settings.public_url.rstrip('/')}{SIGNED_IN}"
    return CheckResult(what, f"answers; its redirect address must be {redirect}{ends}")
