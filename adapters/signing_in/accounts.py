"""The people who are signed in: their sessions at the local page, their rights, and the tokens of their agents."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import sqlalchemy as sa
from aiohttp import web
from pydantic import TypeAdapter
from sqlalchemy.ext.asyncio import AsyncEngine
from yarl import URL

from adapters.console.console import page_of, see_other
from adapters.protected_resource import PATH as MCP
from adapters.signing_in.guard import COOKIE, ROLES, VISITOR, NotBegun, SignInSection, Visitor
from adapters.store.database import outages_as
from adapters.store.tables import sessions
from core.model.conversation import PUBLIC, Audience, Channel, Person, Platform, named_readers
from core.model.errors import Forbidden, StoreUnavailable, TooManyRequests, Unauthorized, Unavailable
from core.model.running import TokenBuckets, client_key
from core.ports import AgentCaller, Clock

if TYPE_CHECKING:
    from adapters.signing_in.provider import Provider  # imports cryptography

SESSION = timedelta(minutes=15)  # until the provider is asked again; who is still signed in there does not notice
ATTEMPT = timedelta(minutes=10)  # to enter a password
REMEMBERED = timedelta(days=1)  # that somebody had a session, and so is sent to the provider without being asked
SIGN_INS = 300  # burst per client, which may be the proxy of a whole company
SIGN_INS_PER_SECOND = 10.0  # sustained rate per client
MAX_PAGE = 1_000  # characters of the address of a page
SIGNED_IN = "/console/signed-in"

FindPeople = Callable[[dict[str, Any], str], Awaitable[Sequence[Person]]]
_VISITOR = TypeAdapter(Visitor)


class Accounts:
    """The accounts of a company. Their sessions are in the database, so that every replica knows which have ended."""

    def __init__(
        self,
        section: SignInSection,
        provider: Provider,
        engine: AsyncEngine,
        *,
        public_url: str,
        channels: Sequence[Channel],
        find_people: FindPeople,
        clock: Clock,
    ) -> None:
        """Create the accounts. `find_people` returns a person's identities in the chats, from claims and an address."""
        self.section = section
        self._provider = provider
        self._engine = engine
        self._url = public_url.rstrip("/")
        self._channels = channels
        self._find_people = find_people
        self._clock = clock
        self._sign_ins = TokenBuckets(SIGN_INS_PER_SECOND, SIGN_INS)
        self.origin = str(URL(section.issuer).origin())
        # Over TLS, no other host and no page without TLS can set a cookie with this prefix.
        self._is_secure = URL(public_url).scheme == "https"
        self._prefix = "__Host-plumbline" if self._is_secure else "plumbline"

    async def begin(self, request: web.Request) -> web.Response:
        """Handle `GET /console/sign-in?page=…`: send the browser to the provider."""
        secret, page = secrets.token_urlsafe(32), page_of(dict(request.query))[:MAX_PAGE]
        address = await self._provider.address(self._url + SIGNED_IN, secret)
        response = see_other(address)
        self._set(response, _attempt(URL(address).query["state"]), f"{secret}.{quote(page, safe='')}", ATTEMPT)
        return response

    async def complete(self, request: web.Request) -> web.Response:
        """Handle `GET /console/signed-in`: begin a new session of the person whom the provider names.

        Raises Unauthorized; Forbidden for somebody without a group of plumbline.yaml.
        """
        attempt = _attempt(request.query.get("state", ""))
        secret, _, page = request.cookies.get(f"{self._prefix}_{attempt}", "").partition(".")
        if not secret:  # anybody can send a browser here, so nothing is asked and nothing recorded
            raise NotBegun("This sign-in was not begun in this browser, or it took too long. Begin again.")
        now = self._clock.now()
        if seconds := self._sign_ins.take(client_key(request.remote), now):  # each asks the provider
            raise TooManyRequests("Too many people sign in from this address at once.", seconds)
        claims, token = await self._provider.redeem(request.query, self._url + SIGNED_IN, secret)
        is_sure = self.section.managed_addresses or claims.get("email_verified") is True
        address = str(claims.get("email") or "") if is_sure else ""
        session = secrets.token_urlsafe(32)
        await self._first(sa.delete(sessions).where(self._is_of(request) | (sessions.c.ends_at <= now)))
        self._visitor(claims, ())  # raises Forbidden before a chat is asked for the person
        visitor = self._visitor(claims, await self._find_people(claims, address))
        row = {"id": _digest(session), "visitor": _VISITOR.dump_python(visitor, mode="json"), "token": token}
        await self._first(sa.insert(sessions).values(ends_at=now + SESSION, **row))
        response = see_other(page_of({"page": unquote(page)}))
        self._set(response, "session", session, REMEMBERED)
        self._set(response, attempt, "", timedelta())
        self._forget_token(response)  # whose rights would outlive this session
        request[VISITOR] = visitor
        return response

    async def visitor(self, request: web.Request) -> Visitor | None:
        """Return the person of a request's session; None if the browser has none. Raises Unauthorized if it has ended."""
        is_theirs = self._is_of(request) & (sessions.c.ends_at > self._clock.now())
        row = await self._first(sa.select(sessions.c.visitor).where(is_theirs))
        if row is None and self.has_ended(request):
            raise Unauthorized("Your session has ended. Sign in again.")
        return _VISITOR.validate_python(row.visitor) if row is not None else None

    def has_ended(self, request: web.Request) -> bool:
        """Return whether the browser of a request without a session had one, and did not sign out."""
        return f"{self._prefix}_session" in request.cookies

    async def sign_out(self, request: web.Request) -> web.Response:
        """Handle `POST /console/sign-out`: end the session, and go on to the provider, which ends its own.

        A session that has ended by itself, and a provider that does not answer, do not stop it.
        """
        ended = sa.delete(sessions).where(self._is_of(request)).returning(sessions.c.token, sessions.c.visitor)
        row, address = await self._first(ended), None
        if row is not None:
            request[VISITOR] = _VISITOR.validate_python(row.visitor)
        with suppress(Unavailable):
            address = (await self._provider.issuer.metadata()).get("end_session_endpoint")
        back = f"{self._url}/"
        query = {
            "client_id": self.section.client_id,
            "id_token_hint": row.token if row is not None else "",
            "post_logout_redirect_uri": back,
        }
        response = see_other(str(URL(address).update_query(query)) if address else "/")
        self.forget(response)
        self._forget_token(response)
        return response

    def forget(self, response: web.StreamResponse) -> None:
        """Make a browser forget its session, as for somebody who enters the token instead."""
        self._set(response, "session", "", timedelta())

    def _forget_token(self, response: web.StreamResponse) -> None:
        response.del_cookie(COOKIE, httponly=True, samesite="Lax", secure=self._is_secure)

    async def caller(self, token: str) -> AgentCaller:
        """Return the agent of a person with this access token. Raises Unauthorized, Forbidden and Unavailable."""
        audience = self.section.agents_audience or f"{self._url}{MCP}"
        visitor = self._visitor(await self._provider.claims(token, audience), ())
        return AgentCaller(visitor.person.key, visitor.audience or Audience())

    def _visitor(self, claims: dict[str, Any], people: Sequence[Person]) -> Visitor:
        """Return a person with the rights of their groups. The first of the identities in chats is that of their acts."""
        section = self.section
        named = claims.get(section.groups_claim, [])
        groups = named if isinstance(named, list) else [named]
        granted = [grant for name, grant in section.groups.items() if name in groups]
        subject = claims.get(section.id_claim)
        if not granted or not isinstance(subject, str) or not subject:
            raise Forbidden(
                f"You may not see this: of the {len(groups)} groups that the provider names for you, plumbline.yaml names "
                "none under `sign_in`. Entra ID names none of more than 200: then use app roles."
            )
        name = str(claims.get("name") or claims.get("preferred_username") or "")
        account = Person(Platform.CONSOLE, f"{subject}@{URL(section.issuer).host}", name)
        own = {f"person:{each.key}" for each in (*people, account)}
        channels = {channel for grant in granted for channel in grant.channels}
        readers = named_readers(channels, self._channels) | own | {PUBLIC}
        role = ROLES[max(ROLES.index(each.role) for each in granted)]
        return Visitor(next(iter(people), account), role, Audience(readers))

    def _is_of(self, request: web.Request) -> sa.ColumnElement[bool]:
        return sessions.c.id == _digest(request.cookies.get(f"{self._prefix}_session", ""))

    async def _first(self, statement: sa.Executable) -> Any:
        """Execute a statement, and return the first of its rows; None if there is none."""
        with outages_as(StoreUnavailable):
            async with self._engine.begin() as connection:
                result = await connection.execute(statement)
                return result.first() if result.returns_rows else None

    def _set(self, response: web.StreamResponse, name: str, value: str, lifetime: timedelta) -> None:
        # Lax, because browsers send no strict cookie when the provider sends them back.
        response.set_cookie(
            f"{self._prefix}_{name}",
            value,
            max_age=int(lifetime.total_seconds()),
            path="/",
            httponly=True,
            samesite="Lax",
            secure=self._is_secure,
        )


def _attempt(state: str) -> str:
    """Return the name of the cookie of an attempt: several windows may sign in at once, as when a session ends."""
    return f"attempt_{_digest(state)[:8]}"


def _digest(session: str) -> str:
    """Return the key of a session, so that who reads the database cannot take its place."""
    return hashlib.sha256(session.encode("utf-8", "replace")).hexdigest()
