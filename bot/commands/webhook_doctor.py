"""Checks of `plumbline doctor` for access without a secret, and for webhook secrets."""

from __future__ import annotations

from collections.abc import Iterator

from bot.commands.finding import Finding
from bot.config.settings import Settings, missing_secrets
from bot.config.webhook_sections import WebhooksSection
from bot.web.webhook_sources import webhook_sources
from core.model.errors import ConfigurationError

SHORT = 16  # characters; shorter secrets can be guessed

BEFORE_A_PROXY = (
    "They refuse requests that come through a proxy. Set PLUMBLINE_WEBHOOK_SECRET and PLUMBLINE_CONSOLE_TOKEN before you "
    "put a proxy in front of them."
)
OPEN = "Anybody on this machine can open an incident. Set PLUMBLINE_WEBHOOK_SECRET to change that."


def check_access(settings: Settings) -> Finding:
    """Check that everybody who can reach the bot must present a secret."""
    if missing := missing_secrets(settings):
        return Finding("doors", "are open to other machines", missing)
    doors = {"webhooks": settings.webhook_secret, "the local page": settings.console_token}
    without = [name for name, secret in doors.items() if secret is None]
    if without:
        result = f"{' and '.join(without)} require no secret and answer only this machine"
        return Finding("doors", result, BEFORE_A_PROXY, fatal=False)
    return Finding("doors", "all require a secret")


def check_webhooks(settings: Settings, webhooks: WebhooksSection) -> Iterator[Finding]:
    """Check that each source's secret exists and is long enough, and that the generic webhook's paths are valid."""
    try:
        sources = webhook_sources(webhooks)
    except ConfigurationError as error:
        yield Finding("webhooks", "cannot be used", str(error))
        return
    shared = settings.webhook_secret.get_secret_value() if settings.webhook_secret else None
    own = {name: source.secret for name, source in sources.items() if source.secret is not None}
    for name, secret in {"all sources": shared, **own}.items():
        if secret is not None and len(secret) < SHORT:
            remedy = (
                f"Use a secret of at least {SHORT} characters. It is all that keeps strangers from opening incidents."
            )
            yield Finding("webhooks", f"the secret of {name} has {len(secret)} characters", remedy, fatal=False)
    if settings.local and shared is None and len(own) < len(sources):
        yield Finding("webhooks", "open to this machine", OPEN, fatal=False)
        return
    yield Finding("webhooks", f"{len(sources)} sources, {len(own)} with a secret of their own")
