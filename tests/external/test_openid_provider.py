"""People sign in at the local page with a real OpenID provider, which runs as a process of its own."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest
from aiohttp.test_utils import unused_port
from yarl import URL

from adapters.clock import SystemClock
from adapters.signing_in.accounts import SESSION, Accounts
from core.model.audit import Act
from core.ports import Clock
from tests.databases import database, sqlite_url
from tests.fakes.clock import FakeClock
from tests.fakes.console_site import Site, console_site
from tests.fakes.visitors import Answer, Browser, accounts_at

pytestmark = pytest.mark.external

PATIENCE = 20.0  # seconds for the provider to start


class LaterClock(FakeClock):
    """The clock of this machine, some seconds on: the provider has its own."""

    def __init__(self) -> None:
        super().__init__(SystemClock().now())


@pytest.fixture
async def issuer() -> AsyncIterator[str]:
    port = unused_port()
    program = (sys.executable, "-m", "oidc_provider_mock", "--port", str(port), "--require-nonce", "true")
    process = await asyncio.create_subprocess_exec(*program, stderr=asyncio.subprocess.DEVNULL)
    address = f"http://localhost:{port}"
    try:
        async with aiohttp.ClientSession() as session, asyncio.timeout(PATIENCE):
            while True:
                try:
                    async with session.get(f"{address}/.well-known/openid-configuration") as answer:
                        assert (await answer.json())["issuer"] == address
                        break
                except aiohttp.ClientConnectionError:
                    await asyncio.sleep(0.05)
        yield address
    finally:
        process.terminate()
        await process.wait()


@pytest.fixture
async def site(issuer: str, tmp_path: Path) -> AsyncIterator[Site]:
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(database(sqlite_url(tmp_path)))
        session = await stack.enter_async_context(aiohttp.ClientSession())

        def accounts(address: str, clock: Clock) -> Accounts:
            return accounts_at(address, clock, issuer=issuer, engine=engine, session=session)

        yield await stack.enter_async_context(console_site(accounts=accounts, clock=LaterClock()))


@pytest.fixture
async def browser(site: Site) -> AsyncIterator[Browser]:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        yield Browser(site.address, session)


async def set_groups(issuer: str, *groups: str) -> None:
    claims = {"name": "Asha Brandt", "email": "asha@example.com", "email_verified": True, "groups": list(groups)}
    async with aiohttp.ClientSession() as session, session.put(f"{issuer}/users/asha", json=claims) as answer:
        assert answer.status == 204


async def sign_in(browser: Browser, page: str) -> Answer:
    begun = await browser.get(page)
    begun = await browser.get(begun.to or f"/console/sign-in?page={page}")
    agreed = await browser.ask("POST", begun.to, data={"sub": "asha"})
    return await browser.get(agreed.to)


async def test_people_sign_in_act_change_their_groups_and_sign_out(site: Site, issuer: str, browser: Browser) -> None:
    await set_groups(issuer, "sre")
    assert (await sign_in(browser, "/incidents")).to == "/incidents"
    assert "Asha Brandt" in (await browser.get("/incidents")).text
    assert (await browser.post("/console/messages", channel="help", text="hello")).status == 303
    assert site.inbox.questions[0].asker.key == "console:asha@localhost"
    assert (await browser.get("/audit")).status == 403

    await set_groups(issuer, "platform")
    site.clock.advance(SESSION.total_seconds())
    assert (await browser.get("/audit")).to == "/console/sign-in?page=%2Faudit"
    site.clock.advance(-SESSION.total_seconds())  # back to the time of the provider's tokens
    browser.session.cookie_jar.clear(lambda cookie: cookie.key == "plumbline_session")
    assert (await sign_in(browser, "/audit")).to == "/audit"
    assert (await browser.get("/audit")).status == 200

    left = await browser.post("/console/sign-out")
    assert left.to.startswith(issuer)
    ended = await browser.get(left.to)
    assert ended.status in (200, 302)
    assert (await browser.get("/incidents")).status == 401
    acts = [each.entry.act for each in site.store.audit.entries]
    assert [acts.count(each) for each in (Act.LOGGED_IN, Act.LOGGED_OUT)] == [2, 1]


async def test_who_is_in_no_group_or_refuses_is_not_let_in(issuer: str, browser: Browser) -> None:
    await set_groups(issuer, "others")
    assert (await sign_in(browser, "/incidents")).status == 403
    begun = await browser.get("/console/sign-in")
    refused = await browser.ask("POST", begun.to, data={"sub": "asha", "action": "deny"})
    assert (await browser.get(refused.to)).status == 401


async def test_a_code_of_the_provider_counts_once(issuer: str, browser: Browser) -> None:
    await set_groups(issuer, "sre")
    begun = await browser.get("/console/sign-in")
    agreed = await browser.ask("POST", begun.to, data={"sub": "asha"})
    assert (await browser.get(agreed.to)).status == 303
    again = await browser.get("/console/sign-in")
    other = URL(agreed.to).update_query(state=URL(again.to).query["state"])
    assert (await browser.get(str(other))).status == 401
