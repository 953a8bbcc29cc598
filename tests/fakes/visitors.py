"""A browser at the local page of people with accounts, and the accounts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import aiohttp
from sqlalchemy.ext.asyncio import AsyncEngine
from yarl import URL

from adapters.openid import Issuer
from adapters.signing_in.accounts import Accounts
from adapters.signing_in.guard import GroupSection, SignInSection
from adapters.signing_in.provider import Provider
from core.model.conversation import Person
from core.ports import Clock
from tests.fakes.console_site import CHANNELS
from tests.fakes.openid_provider import CLIENT, SECRET

GROUPS = {
    "everybody": GroupSection(),
    "sre": GroupSection(role="responder"),
    "vault-keepers": GroupSection(role="viewer", channels=("vault",)),
    "platform": GroupSection(role="operator"),
}


def accounts_at(
    address: str,
    clock: Clock,
    *,
    issuer: str,
    engine: AsyncEngine,
    session: aiohttp.ClientSession,
    people: Sequence[Person] = (),
    **settings: Any,
) -> Accounts:
    section = SignInSection(
        issuer=issuer, client_id=CLIENT, client_secret_env="PROVIDER_SECRET", groups=GROUPS, **settings
    )

    async def find_people(claims: dict[str, Any], mail: str) -> Sequence[Person]:
        return people if mail else ()

    provider = Provider(
        section, SECRET, Issuer("The provider", issuer, f"{issuer}/.well-known/openid-configuration", clock, session)
    )
    make = partial(Accounts, section, provider, engine, channels=CHANNELS, find_people=find_people, clock=clock)
    return make(public_url=address)


@dataclass
class Answer:
    status: int
    text: str
    headers: Any

    @property
    def to(self) -> str:
        return self.headers.get("Location", "")

    @property
    def cookies(self) -> str:
        return " ".join(self.headers.getall("Set-Cookie", []))


class Browser:
    """A browser, which follows no redirect on its own, so that each can be looked at."""

    def __init__(self, address: str, session: aiohttp.ClientSession) -> None:
        self.address = address
        self.session = session

    async def ask(self, method: str, path: str, **options: Any) -> Answer:
        url = URL(path, encoded=True) if path.startswith("http") else URL(self.address + path, encoded=True)
        timeout = aiohttp.ClientTimeout(total=10)
        async with self.session.request(method, url, allow_redirects=False, timeout=timeout, **options) as answer:
            return Answer(answer.status, await answer.text(), answer.headers)

    async def get(self, path: str, **options: Any) -> Answer:
        return await self.ask("GET", path, **options)

    async def post(self, path: str, site: str = "same-origin", **form: str) -> Answer:
        return await self.ask("POST", path, data=form, headers={"Sec-Fetch-Site": site})

    async def way_back(self, page: str = "/") -> str:
        """Begin to sign in, and return the address to which the provider sends the browser back."""
        begun = await self.get(f"/console/sign-in?page={page}")
        return (await self.get(begun.to)).to

    async def sign_in(self, page: str = "/") -> Answer:
        return await self.get(await self.way_back(page))

    def cookie(self, name: str) -> str:
        kept = (each.value for each in self.session.cookie_jar if each.key.startswith(f"plumbline_{name}"))
        return next(kept, "")
