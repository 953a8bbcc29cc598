"""People sign in with the accounts of their company, and others try to."""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import sqlalchemy as sa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from sqlalchemy.ext.asyncio import AsyncEngine
from yarl import URL

from adapters.openid import KEPT_FOR
from adapters.signing_in.accounts import SESSION, Accounts
from adapters.store.forgetting import forget
from adapters.store.tables import sessions
from core.model.audit import Act
from core.model.conversation import PUBLIC, Person, Place, Placement, Platform
from core.model.document import Document
from core.model.errors import Forbidden, Unauthorized
from core.model.messages import Notice
from core.model.running import TokenBuckets
from tests.databases import database, sqlite_url
from tests.fakes.certificates import certificate
from tests.fakes.clock import FakeClock
from tests.fakes.console_site import Site, console_site
from tests.fakes.incidents import bare_incident
from tests.fakes.openid_provider import CLIENT, SECRET, OpenIdProvider, key_named, openid_provider
from tests.fakes.teams_connector import rsa_key
from tests.fakes.visitors import Browser, accounts_at

TOKEN = "the-console-token-behind-glass"
SLACK_ASHA = Person(Platform.SLACK, "U0ASHA", "Asha Brandt")
SRE = {"sub": "asha", "name": "Asha Brandt", "groups": ["sre"]}


@dataclass
class Company:
    """The page, its provider, and browsers."""

    site: Site
    provider: OpenIdProvider
    accounts: Accounts
    engine: AsyncEngine
    stack: AsyncExitStack

    async def browser(self) -> Browser:
        session = aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))
        return Browser(self.site.address, await self.stack.enter_async_context(session))

    async def signed_in(self, *groups: str) -> Browser:
        self.provider.person = SRE | {"groups": list(groups)}
        browser = await self.browser()
        assert (await browser.sign_in()).to == "/"
        return browser

    async def sessions(self) -> list[Any]:
        async with self.engine.begin() as connection:
            return list(await connection.execute(sa.select(sessions)))

    def acts(self, act: Act) -> list[Any]:
        return [each.entry for each in self.site.store.audit.entries if each.entry.act is act]


def public_key(name: str) -> bytes:
    return rsa_key(name).public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


@pytest.fixture
async def company(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Company]:
    clock = FakeClock()
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(database(sqlite_url(tmp_path)))
        provider = await stack.enter_async_context(openid_provider(clock))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        settings = dict(getattr(request, "param", {}))
        if "client_certificate" in settings:
            provider.client_key = public_key(settings["client_certificate"])
            settings["client_certificate"] = tmp_path / settings["client_certificate"]
            certificate(settings["client_certificate"])
        made: list[Accounts] = []

        def accounts(address: str, clock: Any) -> Accounts:
            made.append(accounts_at(address, clock, issuer=provider.issuer, engine=engine, session=session, **settings))
            return made[0]

        site = await stack.enter_async_context(console_site(token=TOKEN, accounts=accounts, clock=clock))
        yield Company(site, provider, made[0], engine, stack)


async def test_person_signs_in_and_is_led_to_the_page_that_they_wanted(company: Company) -> None:
    browser = await company.browser()
    refused = await browser.get("/incidents")
    assert (refused.status, "/console/sign-in?page=/incidents" in refused.text) == (401, True)
    back = await browser.way_back("/incidents")
    assert (await browser.get(back)).to == "/incidents"
    page = await browser.get("/incidents")
    assert (page.status, "Asha Brandt" in page.text, "Sign out" in page.text) == (200, True, True)
    (entry,) = company.acts(Act.LOGGED_IN)
    assert entry.actor == "console:asha@127.0.0.1"


@pytest.mark.parametrize("company", [{"client_certificate": "page.pem"}], indirect=True)
async def test_person_signs_in_where_the_page_proves_itself_with_a_certificate(company: Company) -> None:
    for _ in range(2):
        assert (await (await company.browser()).sign_in()).to == "/"
    company.provider.client_key = public_key("another.pem")
    assert (await (await company.browser()).sign_in()).status == 401


async def test_too_many_sign_ins_do_not_reach_the_provider(company: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(company.accounts, "_sign_ins", TokenBuckets(0.001, 2))
    statuses = [(await (await company.browser()).sign_in()).status for _ in range(4)]
    assert statuses == [303, 303, 429, 429]
    assert len(company.provider.codes) == 2, "the codes of the others were not asked for"


def lie(**lies: Any) -> Callable[[OpenIdProvider], None]:
    def tell(provider: OpenIdProvider) -> None:
        for name, value in lies.items():
            setattr(provider, name, value)

    return tell


def claims(**claims: Any) -> Callable[[OpenIdProvider], None]:
    return lie(claims=claims)


def in_seconds(**seconds: int) -> Callable[[OpenIdProvider], None]:
    def tell(provider: OpenIdProvider) -> None:
        now = int(provider.clock.now().timestamp())
        provider.claims = {name: now + after for name, after in seconds.items()}

    return tell


def rewritten(token: str, header: dict[str, Any], sign: Callable[[bytes], bytes]) -> str:
    """The token with another header and signature, because the library itself does not lie."""
    text = f"{encoded(json.dumps(header).encode())}.{token.split('.')[1]}"
    return f"{text}.{encoded(sign(text.encode()))}"


def encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def forged(token: str, secret: bytes) -> str:
    return rewritten(token, {"alg": "HS256", "kid": "first"}, lambda text: hmac.digest(secret, text, "sha256"))


def unsigned(token: str, name: str = "none") -> str:
    return rewritten(token, {"alg": name, "kid": "first"}, lambda text: b"")


def with_unknown_extension(token: str) -> str:
    header = {"alg": "RS256", "kid": "first", "crit": ["evil"], "evil": 1}
    key: Any = key_named("first").private_key
    return rewritten(token, header, lambda text: key.sign(text, PKCS1v15(), SHA256()))


def edited(change: Callable[[str], Any]) -> Callable[[OpenIdProvider], None]:
    return lie(tokens=lambda reply: reply | {"id_token": change(reply["id_token"])})


def with_other_payload(token: str) -> str:
    header, _, signature = token.split(".")
    return f"{header}.eyJzdWIiOiJhZG1pbiJ9.{signature}"


PUBLIC_KEY = key_named("first").as_pem(private=False)
OWN_KEY = key_named("of the attacker").as_dict(private=False)
TOKENS: dict[str, Callable[[OpenIdProvider], None]] = {
    "no nonce": claims(nonce=None),
    "the nonce of another attempt": claims(nonce="another"),
    "for another client": claims(aud="another-client"),
    "for nobody": claims(aud=None),
    "for two clients, without naming which asked": claims(aud=[CLIENT, "another-client"]),
    "that another client asked for": claims(aud=[CLIENT, "another-client"], azp="another-client"),
    "of another issuer": claims(iss="https://evil.example"),
    "of an issuer whose name begins alike": claims(iss="http://127.0.0.1"),
    "of no issuer": claims(iss=None),
    "expired": in_seconds(exp=-120),
    "that never expires": claims(exp=None),
    "that expires at a word": claims(exp="tomorrow"),
    "issued at no time": claims(iat=None),
    "issued in the future": in_seconds(iat=3600),
    "not valid yet": in_seconds(nbf=3600),
    "without a subject": claims(sub=None),
    "with a list as its subject": claims(sub=["asha"]),
    "for another access token": claims(at_hash="AAAAAAAAAAAAAAAAAAAAAA"),
    "without a signature": edited(unsigned),
    "without a signature, in other letters": edited(lambda token: unsigned(token, "nOnE")),
    "signed with the public key as a shared secret": edited(lambda token: forged(token, PUBLIC_KEY)),
    "signed with the client's secret": edited(lambda token: forged(token, SECRET.encode())),
    "signed by another key under a known name": lie(key=key_named("of the attacker"), header={"kid": "first"}),
    "signed by an unknown key": lie(key=key_named("of the attacker")),
    "that brings its own key": lie(key=key_named("of the attacker"), header={"jwk": OWN_KEY}),
    "that says where its key is": lie(key=key_named("of the attacker"), header={"jku": "https://evil.example/keys"}),
    "in an algorithm that was not agreed": lie(header={"alg": "RS512"}),
    "with an extension that nobody knows": edited(with_unknown_extension),
    "with a payload that was exchanged": edited(with_other_payload),
    "cut off": edited(lambda token: token[:-20]),
    "without its signature": edited(lambda token: token.rpartition(".")[0] + "."),
    "that is none": edited(lambda token: "no token"),
    "missing": edited(lambda token: None),
    "in a list": lie(tokens=lambda reply: [reply]),
}
REPLIES: dict[str, Callable[[OpenIdProvider], None]] = {
    "no state": lie(reply={"state": None}),
    "another state": lie(reply={"state": "another"}),
    "a state that is no text": lie(reply={"state": "\udcff".encode("utf-8", "replace").decode()}),
    "another provider's name": lie(reply={"iss": "https://evil.example"}),
    "no provider's name, although it promised one": lie(reply={"iss": None}),
    "no code": lie(reply={"code": None}),
    "an error": lie(reply={"code": None, "error": "access_denied"}),
    "a code that it never gave": lie(reply={"code": "made-up"}),
    "a code that it then refuses": lie(status=400),
    "a redirect where tokens should come": lie(status=302),
}


@pytest.mark.parametrize("attack", [*TOKENS, *REPLIES])
async def test_nobody_is_let_in_by_a_token_or_a_reply_that_is_not_right(company: Company, attack: str) -> None:
    (TOKENS | REPLIES)[attack](company.provider)
    browser = await company.browser()
    answer = await browser.sign_in()
    assert answer.status == 401, answer.text
    assert "_session" not in answer.cookies
    assert await company.sessions() == []
    assert (await browser.get("/incidents")).status == 401
    begun = [
        each.detail for each in company.acts(Act.REFUSED)
    ]  # not by a browser that asked nothing, as anybody can make it
    assert len(begun) == ("state" not in attack)


async def test_a_session_that_has_ended_is_no_way_back_to_the_rights_of_the_token(company: Company) -> None:
    browser = await company.browser()
    assert (await browser.post("/console/login", token=TOKEN, page="/")).status == 303
    company.provider.person = SRE | {"groups": ["everybody"]}
    await browser.sign_in()
    assert (await browser.get("/audit")).status == 403
    company.site.clock.advance(SESSION.total_seconds())
    assert (await browser.get("/audit")).status == 303  # to the provider
    await browser.sign_in()
    await browser.post("/console/sign-out")
    assert (await browser.get("/audit")).status == 401


@pytest.mark.parametrize("metadata", [{}, {"issuer": "unreachable"}], ids=["up", "down"])
async def test_signing_out_after_the_session_has_ended_leaves_no_cookie(
    company: Company, metadata: dict[str, str]
) -> None:
    browser = await company.signed_in("sre")
    company.site.clock.advance(SESSION.total_seconds() + KEPT_FOR.total_seconds() + 7200)
    company.provider.metadata = metadata
    answer = await browser.post("/console/sign-out")
    assert (answer.status, answer.to.startswith(company.provider.issuer)) == (303, not metadata)
    assert not browser.cookie("session")
    assert (await browser.get("/incidents")).status == 401


async def test_a_document_of_a_channel_that_is_private_by_now_is_not_shown(company: Company) -> None:
    readers = frozenset({PUBLIC, "channel:console:vault"})  # public when it was read
    await company.site.file(Document("thread.md", "chat", "", "T", "The master key.", readers=readers))
    browser = await company.signed_in("everybody")
    assert (await browser.get("/documents/thread.md")).status == 404


@pytest.mark.parametrize(
    "wrong",
    [{"aud": [CLIENT]}, {"nonce": "n"}, {"idtyp": "app"}, {"exp": timedelta(days=30).total_seconds()}],
    ids=["also of the client", "ID token", "of an application", "of a month"],
)
async def test_an_agent_needs_an_access_token_of_a_person(company: Company, wrong: dict[str, Any]) -> None:
    agents = f"{company.site.address}/mcp"
    claims = {
        name: [*value, agents]
        if name == "aud"
        else company.site.clock.now().timestamp() + value
        if name == "exp"
        else value
        for name, value in wrong.items()
    }
    with pytest.raises(Unauthorized):
        await company.accounts.caller(access_token(company, **claims))


@pytest.mark.parametrize("subject", ["", None, ["a"]])
async def test_nobody_is_let_in_without_a_name_of_their_own(company: Company, subject: object) -> None:
    company.provider.person = SRE | {"groups": ["sre"], "sub": subject}
    assert (await (await company.browser()).sign_in()).status in (401, 403)
    assert await company.sessions() == []


async def test_whoever_is_refused_anew_loses_the_session_of_before(company: Company) -> None:
    browser = await company.signed_in("platform")
    company.provider.person = SRE | {"groups": []}
    assert (await browser.sign_in()).status == 403
    assert await company.sessions() == []


async def test_a_provider_that_calls_itself_otherwise_is_not_asked(company: Company) -> None:
    for name, value in (("issuer", "https://evil.example"), ("issuer", None), ("jwks_uri", None)):
        company.provider.metadata = {name: value}
        answer = await (await company.browser()).get("/console/sign-in")
        assert (answer.status, answer.to) == (503, "")


async def test_a_new_key_of_the_provider_is_read_but_unknown_ones_do_not_make_us_ask_again_and_again(
    company: Company,
) -> None:
    await company.signed_in("sre")
    company.provider.key = key_named("second")
    company.provider.published.append(company.provider.key)
    assert (await (await company.browser()).sign_in()).status == 401  # read less than a minute ago
    company.site.clock.advance(61)
    assert (await (await company.browser()).sign_in()).status == 303
    asked = len(company.provider.asked)
    company.provider.key = key_named("of the attacker")
    for _ in range(5):
        assert (await (await company.browser()).sign_in()).status == 401
    assert len(company.provider.asked) == asked


async def test_a_key_that_the_provider_withdrew_is_soon_no_longer_accepted(company: Company) -> None:
    await company.signed_in("sre")
    company.provider.published = [key_named("second")]
    company.site.clock.advance(3600)
    assert (await (await company.browser()).sign_in()).status == 401


async def test_a_reply_counts_once_and_only_in_the_browser_that_asked(company: Company) -> None:
    victim, attacker = await company.browser(), await company.browser()
    theirs = await attacker.way_back()
    assert (await victim.get(theirs)).status == 401  # signing the victim in as the attacker
    own = await victim.way_back()
    stolen = URL(own).update_query(code=URL(theirs).query["code"])
    assert (await victim.get(str(stolen))).status == 401  # the attacker's code in the victim's attempt
    own = await victim.way_back()
    assert (await attacker.get(own)).status == 401  # the victim's reply in the attacker's browser
    assert (await victim.get(own)).status == 303
    assert (await victim.get(own)).status == 401  # loaded again
    assert len(await company.sessions()) == 1


@pytest.mark.parametrize(
    "page", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "/%5Cevil.example"]
)
async def test_a_sign_in_leads_to_no_other_site(company: Company, page: str) -> None:
    browser = await company.browser()
    answer = await browser.sign_in(page)
    assert answer.to == "/"
    header = {"X-Forwarded-Host": "evil.example", "Forwarded": "host=evil.example"}
    begun = await browser.get("/console/sign-in", headers=header)
    assert URL(begun.to).query["redirect_uri"] == f"{company.site.address}/console/signed-in"
    spoofed = await browser.get("/console/sign-in", headers={"Host": "evil.example"})
    assert URL(spoofed.to).query["redirect_uri"] == f"{company.site.address}/console/signed-in"


async def test_a_page_that_was_changed_in_the_cookie_leads_nowhere_else(company: Company) -> None:
    browser = await company.browser()
    back = await browser.way_back("/incidents")
    (attempt,) = [each for each in browser.session.cookie_jar if each.key.startswith("plumbline_attempt")]
    secret = attempt.value.partition(".")[0]
    browser.session.cookie_jar.update_cookies({attempt.key: f"{secret}.%2F%2Fevil.example"}, URL(back))
    assert (await browser.get(back)).to == "/"


async def test_several_windows_sign_in_at_once(company: Company) -> None:
    browser = await company.browser()
    ways = [await browser.way_back(page) for page in ("/", "/incidents", "/incidents?x=1")]
    assert [(await browser.get(way)).to for way in ways] == ["/", "/incidents", "/incidents?x=1"]
    assert len(await company.sessions()) == 1


async def test_the_provider_sees_no_secret_of_an_attempt(company: Company) -> None:
    browser = await company.browser()
    begun = await browser.get("/console/sign-in")
    secret = browser.cookie("attempt").partition(".")[0]
    asked = URL(begun.to).query
    assert len(secret) >= 32
    assert secret not in begun.to
    assert len({asked["state"], asked["nonce"], asked["code_challenge"]}) == 3


async def test_a_session_is_new_and_not_one_that_somebody_put_into_the_browser(company: Company) -> None:
    attacker, victim = await company.signed_in("everybody"), await company.browser()
    planted = attacker.cookie("session")
    victim.session.cookie_jar.update_cookies({"plumbline_session": planted}, URL(company.site.address))
    company.provider.person = SRE | {"sub": "victim", "name": "Vic", "groups": ["platform"]}
    await victim.sign_in()
    assert victim.cookie("session") != planted
    assert (await attacker.get("/incidents")).status in (303, 401)  # nor does the planted one go on
    assert "Vic" in (await victim.get("/incidents")).text


async def test_what_stands_in_the_database_opens_no_session(company: Company) -> None:
    await company.signed_in("platform")
    (row,) = await company.sessions()
    for guess in (row.id, "", "x" * 43, "' OR 1=1 --", row.token):
        browser = await company.browser()
        answer = await browser.get("/sources", headers={"Cookie": f"plumbline_session={guess}"})
        assert answer.status in (303, 401)
        assert "/console/sign-in" in answer.to + answer.text


async def test_signing_out_ends_the_session_wherever_its_cookie_is(company: Company) -> None:
    browser = await company.signed_in("sre")
    copied = browser.cookie("session")
    (row,) = await company.sessions()
    answer = await browser.post("/console/sign-out")
    left = URL(answer.to)
    assert (answer.status, str(left.with_query(None))) == (303, f"{company.provider.issuer}/end_session_endpoint")
    assert left.query["id_token_hint"] == row.token
    assert left.query["post_logout_redirect_uri"] == f"{company.site.address}/"
    assert answer.headers["Content-Security-Policy"].endswith(f"form-action 'self' {company.provider.issuer}")
    assert await company.sessions() == []
    assert browser.cookie("session") == ""
    again = await (await company.browser()).get("/incidents", headers={"Cookie": f"plumbline_session={copied}"})
    assert "/console/sign-in" in again.to
    assert (await browser.get("/incidents")).status == 401  # and signs nobody in by itself
    assert len(company.acts(Act.LOGGED_OUT)) == 1


async def test_a_session_ends_and_the_provider_is_asked_again(company: Company) -> None:
    browser = await company.signed_in("sre")
    company.site.clock.advance(SESSION.total_seconds() - 1)
    assert (await browser.get("/incidents")).status == 200
    company.site.clock.advance(1)
    assert (await browser.post("/console/messages", channel="help", text="still here?")).status == 401
    sent = await browser.get("/incidents?x=1")
    assert (sent.status, sent.to) == (303, "/console/sign-in?page=%2Fincidents%3Fx%3D1")
    begun = await browser.get(sent.to)
    assert (await browser.get((await browser.get(begun.to)).to)).to == "/incidents?x=1"
    assert (await browser.get("/incidents")).status == 200


async def test_a_group_that_somebody_left_counts_no_longer_than_a_session(company: Company) -> None:
    browser = await company.signed_in("platform")
    assert (await browser.get("/audit")).status == 200
    company.provider.person["groups"] = ["everybody"]
    company.site.clock.advance(SESSION.total_seconds())
    assert (await browser.sign_in()).to == "/"
    assert (await browser.get("/audit")).status == 403
    company.provider.person["groups"] = []
    company.site.clock.advance(SESSION.total_seconds())
    assert (await browser.sign_in()).status == 403
    assert (await browser.get("/incidents")).status == 303
    assert await company.sessions() == [] or all(
        each.ends_at <= company.site.clock.now() for each in await company.sessions()
    )


async def test_an_open_page_is_told_nothing_more_once_its_session_has_ended(company: Company) -> None:
    browser = await company.signed_in("sre")
    url = f"{company.site.address}/console/live?channel=help"
    async with browser.session.get(url) as stream:
        await stream.content.readuntil(b"\n\n")
        other = await company.browser()
        other.session.cookie_jar.update_cookies(browser.session.cookie_jar.filter_cookies(URL(url)), URL(url))
        await other.post("/console/sign-out")
        await company.site.post(Place(Platform.CONSOLE, "help"), Notice("told after the end"))
        assert b"told after the end" not in await stream.content.read()


@pytest.mark.parametrize("groups", [[], ["others"], ["sre-not"], "s", None, {"sre": True}, [["sre"]], 7])
async def test_nobody_without_a_group_is_let_in(company: Company, groups: Any) -> None:
    company.provider.person = SRE | {"groups": groups}
    browser = await company.browser()
    assert (await browser.sign_in()).status == 403
    assert await company.sessions() == []


async def test_the_name_of_a_role_is_not_a_group(company: Company) -> None:
    company.provider.person = SRE | {"groups": ["operator"], "role": "operator"}
    assert (await (await company.browser()).sign_in()).status == 403


READS = ("/", "/incidents", "/console/messages.json?channel=help")
OPERATES = ("/sources", "/predictions", "/audit", "/dead-letters")


@pytest.mark.parametrize(
    ("group", "acts", "operates"), [("everybody", 403, 403), ("sre", 204, 403), ("platform", 204, 200)]
)
async def test_each_role_may_do_what_it_includes(company: Company, group: str, acts: int, operates: int) -> None:
    browser = await company.signed_in(group)
    assert {(await browser.get(path)).status for path in READS} == {200}
    assert {(await browser.get(path)).status for path in OPERATES} == {operates}
    live = {"HX-Request": "true", "Sec-Fetch-Site": "same-origin"}
    said = await browser.ask("POST", "/console/messages", data={"channel": "help", "text": "hello"}, headers=live)
    assert said.status == acts
    pressed = await browser.post("/console/feedback", verdict="helpful", message="1")
    assert pressed.status == (403 if acts == 403 else 404)
    retried = await browser.post("/console/dead-letters", intent="none")
    assert retried.status == (404 if operates == 200 else 403)
    assert len(company.acts(Act.REFUSED)) == {403: 7, 204: 5}[acts] * (operates == 403)


@pytest.mark.parametrize("site", ["cross-site", "same-site", ""])
async def test_another_site_cannot_act_for_somebody_who_is_signed_in(company: Company, site: str) -> None:
    browser = await company.signed_in("platform")
    for path in (
        "/console/messages",
        "/console/feedback",
        "/console/replays",
        "/console/dead-letters",
        "/console/sign-out",
    ):
        assert (await browser.post(path, site, channel="help", text="hello")).status == 403
        assert (await browser.ask("POST", path, data={"channel": "help"})).status == 403  # with nothing but the cookie
        assert (await browser.get(path)).status in (404, 405)
    assert company.site.inbox.questions == []
    assert len(await company.sessions()) == 1


@pytest.mark.parametrize("url", ["https://bot.example", "http://127.0.0.1:8080"])
async def test_cookies_cannot_be_read_by_scripts_sent_by_other_sites_or_set_by_other_hosts(
    company: Company, url: str
) -> None:
    async with aiohttp.ClientSession() as session:
        accounts = accounts_at(
            url, company.site.clock, issuer=company.provider.issuer, engine=company.engine, session=session
        )
        async with console_site(accounts=lambda *_: accounts, clock=company.site.clock) as site:
            browser = Browser(site.address, session)
            begun = await browser.get("/console/sign-in")
            attempt = begun.cookies.partition(";")[0]
            back = URL((await browser.get(begun.to)).to)
            done = await browser.get(back.path_qs, headers={"Cookie": attempt})
    assert done.status == 303
    for cookies in (begun.cookies, done.cookies):
        flags = {part.strip() for part in cookies.split(";")}
        assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= flags
        assert "Domain" not in cookies
        assert ("Secure" in flags, cookies.startswith("__Host-")) == (url.startswith("https"), url.startswith("https"))


def page(name: str, reader: str) -> Document:
    return Document(name, "handbook", "", "A page", "The master key.", readers=frozenset({reader}))


async def test_people_see_what_their_groups_may_read_and_nothing_else(company: Company) -> None:
    site = company.site
    await site.post(Place(Platform.CONSOLE, "vault"), Notice("the vault moves"))
    vault, incidents = (Placement(Place(Platform.CONSOLE, channel)) for channel in ("vault", "incidents"))
    site.happen(bare_incident("vault sealed", id="vault-1", placement=vault))
    site.happen(bare_incident("till slow", id="open-1", placement=incidents))
    await site.file(page("keys.md", "channel:vault"))
    await site.file(page("own.md", "person:console:asha@127.0.0.1"))
    everybody, keeper = await company.signed_in("sre", "platform"), await company.signed_in("vault-keepers")
    paths = (
        "/?channel=vault",
        "/console/messages.json?channel=vault",
        "/console/live?channel=vault",
        "/incidents/vault-1",
        "/incidents/vault-1/postmortem",
        "/documents/keys.md",
        "/documents/keys.md?channel=vault",
    )
    assert {(await everybody.get(path)).status for path in paths} == {404}
    assert {(await everybody.post("/console/feedback", verdict="take-it", incident="vault-1")).status} == {404}
    assert {(await everybody.post("/console/messages", channel="vault", text="hello")).status} == {404}
    listed = await everybody.get("/incidents")
    assert ("till slow" in listed.text, "vault" in listed.text) == (True, False)
    assert "vault" not in (await everybody.get("/")).text
    for path in ("/?channel=vault", "/incidents/vault-1", "/documents/keys.md"):
        assert (await keeper.get(path)).status == 200
    assert "vault sealed" in (await keeper.get("/incidents")).text
    assert (await everybody.get("/documents/own.md")).status == 200  # what is shared with one person


@pytest.mark.parametrize("company", [{"people": [SLACK_ASHA]}], indirect=True)
async def test_acts_are_those_of_the_person_in_the_chat_if_the_provider_is_sure_of_the_address(
    company: Company,
) -> None:
    for verified, actor in ((True, "slack:U0ASHA"), ("true", None), (None, None), (False, None)):
        company.provider.person = SRE | {"email": "asha@example.com", "email_verified": verified}
        browser = await company.browser()
        await browser.sign_in()
        await browser.post("/console/messages", channel="help", text="how do I roll back a canary?")
        (*_, question) = company.site.inbox.questions
        assert question.asker.key == actor or (actor is None and question.asker.key == "console:asha@127.0.0.1")
        assert company.acts(Act.LOGGED_IN)[-1].actor == question.asker.key
        assert question.asker.name == "Asha Brandt"


@pytest.mark.parametrize("company", [{"people": [SLACK_ASHA], "managed_addresses": True}], indirect=True)
async def test_addresses_that_only_administrators_set_need_not_be_verified(company: Company) -> None:
    company.provider.person = SRE | {"email": "asha@example.com"}
    await (await company.browser()).sign_in()
    assert company.acts(Act.LOGGED_IN)[-1].actor == "slack:U0ASHA"


async def test_the_token_still_opens_the_page_when_the_provider_does_not_answer(company: Company) -> None:
    company.provider.metadata = {"issuer": "down"}
    browser = await company.browser()
    assert (await browser.get("/console/sign-in")).status == 503
    assert (await browser.post("/console/login", token=TOKEN, page="/audit")).to == "/audit"
    assert (await browser.get("/audit")).status == 200
    assert company.acts(Act.LOGGED_IN)[-1].actor == "console:operator"
    assert (await browser.post("/console/login", token="guess")).status == 401


async def test_forgetting_a_person_ends_the_sessions(company: Company) -> None:
    await company.signed_in("sre")
    await forget(company.engine, person="asha@127.0.0.1")
    assert await company.sessions() == []


def access_token(company: Company, **claims: Any) -> str:
    given = {"aud": f"{company.site.address}/mcp", "azp": "an-agent", "nonce": None}
    return company.provider.signed(SRE | {"groups": ["vault-keepers"]}, **given | claims)


async def test_an_agent_of_a_person_is_shown_what_the_person_may_read(company: Company) -> None:
    caller = await company.accounts.caller(access_token(company))
    assert caller.name == "console:asha@127.0.0.1"
    assert {PUBLIC, "channel:vault"} <= caller.audience.readers
    with pytest.raises(Forbidden):
        await company.accounts.caller(access_token(company, groups=["others"]))


@pytest.mark.parametrize(
    ("attack", "claims"),
    [
        ("an ID token", {"aud": CLIENT}),
        ("a token for another service", {"aud": "https://other.example"}),
        ("an expired one", {"exp": 0}),
        ("one of another issuer", {"iss": "https://evil.example"}),
        ("one of nobody", {"sub": None}),
    ],
)
async def test_an_agent_is_refused_with_anything_but_an_access_token_for_it(
    company: Company, attack: str, claims: dict[str, Any]
) -> None:
    with pytest.raises((Unauthorized, Forbidden)):
        await company.accounts.caller(access_token(company, **claims))


async def test_an_agent_is_refused_with_a_token_that_the_provider_did_not_sign(company: Company) -> None:
    token = access_token(company)
    company.provider.key = key_named("of the attacker")
    for text in (
        access_token(company),
        unsigned(token),
        forged(token, PUBLIC_KEY),
        "",
        "a.b.c",
        "x" * 10_000,
        json.dumps({"sub": "asha"}),
    ):
        with pytest.raises(Unauthorized):
            await company.accounts.caller(text)
