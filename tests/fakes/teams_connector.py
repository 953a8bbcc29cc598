"""Microsoft's side of Teams on this machine: connector service, tokens, the keys that it signs with, and Graph."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from typing import Any, Self

import aiohttp
import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from adapters.microsoft import ClientLogin, ClientSecret, Login
from adapters.teams.connector import AccessToken, Cloud
from tests.fakes.graph_server import FakeGraph, graph_time
from tests.fakes.server import FakeServer

APP_ID = "0f7a1c9e-6b1d-4b1e-9d56-6a1f2f0c7d11"
APP_PASSWORD = "a-password"
TENANT = "72f988bf-86f1-41af-91ab-2d7cd011db47"
BOT = "28:" + APP_ID
ISSUER = "https://api.botframework.com"
CHANNEL = "19:incidents@thread.tacv2"
GROUP_CHAT = "19:a1b2c3@thread.v2"
TEAM, GROUP = "19:team@thread.tacv2", "02ce3874-dd86-41ba-bddc-013f34019978"
MEMBER = {"id": "29:asha", "aadObjectId": "5c1f-asha", "tenantId": TENANT, "userRole": "user"}
PERSONAL_CHAT = "a:1pQx_personal-chat"
MENTION = "<at>Plumbline</at>"


def login(cloud: Cloud, tenant: str = TENANT, password: str = APP_PASSWORD) -> Login:
    """The bot's way to a token, with its secret."""
    return ClientLogin(cloud.login_url, tenant, APP_ID, ClientSecret(password))


def access_token(cloud: Cloud, session: aiohttp.ClientSession, password: str = APP_PASSWORD) -> AccessToken:
    return AccessToken(login(cloud, password=password), session)


@cache
def rsa_key(name: str) -> rsa.RSAPrivateKey:
    """The private key of this name; made once, since it takes a while."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@dataclass(frozen=True)
class Sent:
    """A message as the chat shows it."""

    conversation: str
    id: str
    activity: dict[str, Any]
    authorization: str
    size: int
    only_for: str  # the one member who sees it; everybody does where it is empty

    @property
    def card(self) -> dict[str, Any]:
        return self.activity["attachments"][0]["content"]


@dataclass
class Failure:
    """What is answered instead of taking a message; where it is `taken`, the message stands there all the same."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: str = ""
    content_type: str = "application/json"
    taken: bool = False


class TeamsConnector(FakeServer):
    """`sent` and `updated` hold what was taken, `messages` what stands in the chat.

    Each of `failures` is answered once, before anything is taken again.
    `endorsements` and `key_ids` are what is published of the signing keys. What stands in a channel or in a group chat,
    `graph` shows, once somebody consents.
    """

    def __init__(self) -> None:
        self.sent: list[Sent] = []
        self.updated: list[Sent] = []
        self.messages: dict[str, Sent] = {}
        self.deleted: set[str] = set()
        self.failures: list[Failure] = []
        self.guests: set[str] = set()  # conversations that one is in
        self.guest: dict[str, str] = {}  # what is said of that one beside, or instead
        self.roster_down = False
        self.rosters_told = 0
        self.tokens_issued = 0
        self.token_answer: tuple[int, dict[str, Any]] = (200, {"access_token": "token-1", "expires_in": 3600})
        self.key_requests = 0
        self.key_ids = ["key-1"]
        self.endorsements = ["msteams"]
        self.keys_down = False
        self.now: Callable[[], datetime] = lambda: datetime.now(UTC)
        self.team_channels = {TEAM: [TEAM, CHANNEL]}
        self.channel_types: dict[str, str] = {}  # of those that are not standard, or of which no type is listed
        self.teams_down = False
        self.graph = FakeGraph()
        self.graph.consented = False
        self.graph.page_size = 50
        self.graph.team(GROUP)
        self.graph.channel(GROUP, CHANNEL, "incidents")
        self.graph.chat(GROUP_CHAT)
        app = web.Application(client_max_size=1 << 20)
        app.router.add_get("/openid", self._metadata)
        app.router.add_get("/keys", self._keys)
        app.router.add_post("/login/{tenant}/oauth2/v2.0/token", self._token)
        app.router.add_get("/teams/v3/conversations/{conversation}/pagedmembers", self._members)
        app.router.add_get("/teams/v3/conversations/{conversation}/members/{member}", self._member)
        app.router.add_post("/teams/v3/conversations/{conversation}/activities", self._send)
        app.router.add_put("/teams/v3/conversations/{conversation}/activities/{id}", self._update)
        app.router.add_delete("/teams/v3/conversations/{conversation}/activities/{id}", self._remove)
        app.router.add_get("/teams/v3/teams/{team}", self._team)
        app.router.add_get("/teams/v3/teams/{team}/conversations", self._conversations)
        super().__init__(app)

    async def __aenter__(self) -> Self:
        await self.graph.__aenter__()
        return await super().__aenter__()

    async def __aexit__(self, *_: object) -> None:
        await super().__aexit__()
        await self.graph.__aexit__()

    @property
    def service_url(self) -> str:
        return str(self._server.make_url("/teams/"))

    @property
    def cloud(self) -> Cloud:
        return Cloud(
            issuer=ISSUER,
            metadata_url=str(self._server.make_url("/openid")),
            login_url=str(self._server.make_url("/login")),
            service_hosts=frozenset({"127.0.0.1"}),
            graph_url=self.graph.url,
        )

    # --- what Teams sends --------------------------------------------------------------------------------------------

    def token(self, *, key_id: str = "key-1", key: str = "key-1", algorithm: str = "RS256", **claims: Any) -> str:
        """A token as it comes with an activity; a claim that is None is left out."""
        now = int(self.now().timestamp())
        usual = {"iss": ISSUER, "aud": APP_ID, "exp": now + 3600, "nbf": now - 60, "serviceurl": self.service_url}
        held = {name: value for name, value in (usual | claims).items() if value is not None}
        secrets = {"RS256": rsa_key(key), "HS256": "a secret that is long enough for HMAC", "none": None}
        return jwt.encode(held, secrets[algorithm], algorithm=algorithm, headers={"kid": key_id})

    def activity(self, **fields: Any) -> dict[str, Any]:
        """A mention of the bot in the thread of a channel, with other fields than usual."""
        usual = {
            "type": "message",
            "id": "1700000000002",
            "channelId": "msteams",
            "serviceUrl": self.service_url,
            "from": {"id": "29:asha", "name": "Asha Brandt", "aadObjectId": "5c1f-asha"},
            "recipient": {"id": BOT, "name": "Plumbline"},
            "conversation": {
                "id": f"{CHANNEL};messageid=1700000000001",
                "conversationType": "channel",
                "isGroup": True,
                "tenantId": TENANT,
            },
            "text": f"{MENTION} how do I roll back a canary?\n",
            "textFormat": "plain",
            "entities": [
                {"type": "mention", "mentioned": {"id": BOT, "name": "Plumbline"}, "text": MENTION},
                {"type": "clientInfo", "locale": "en-US"},
            ],
            "channelData": {
                "tenant": {"id": TENANT},
                "channel": {"id": CHANNEL},
                "team": {"id": TEAM},
            },
        }
        return usual | fields

    def personal(self, **fields: Any) -> dict[str, Any]:
        """A message in a personal chat."""
        chat = {"id": PERSONAL_CHAT, "conversationType": "personal", "tenantId": TENANT}
        here = {"conversation": chat, "text": "how do I roll back a canary?", "entities": [], "channelData": {}}
        return self.activity(**(here | fields))

    def delete(self, message_id: str) -> None:
        """A person deletes a message."""
        channel = self.messages.pop(message_id).conversation.partition(";messageid=")[0]
        self.deleted.add(message_id)
        if channel in self.graph.messages:
            self.graph.delete(channel, message_id)
            self.graph.messages[channel][message_id]["attachments"] = []

    # --- the service -------------------------------------------------------------------------------------------------

    async def _metadata(self, request: web.Request) -> web.Response:
        return web.json_response({"issuer": ISSUER, "jwks_uri": str(self._server.make_url("/keys"))})

    async def _keys(self, request: web.Request) -> web.Response:
        self.key_requests += 1
        if self.keys_down:
            return web.Response(status=503)
        keys = [
            json.loads(RSAAlgorithm.to_jwk(rsa_key(key_id).public_key()))
            | {"kid": key_id, "endorsements": self.endorsements}
            for key_id in self.key_ids
        ]
        return web.json_response({"keys": keys})

    async def _token(self, request: web.Request) -> web.Response:
        self.tokens_issued += 1
        status, answer = self.token_answer
        form = await request.post()
        # What an assertion says is looked at in `tests/contract/test_microsoft_login.py`.
        is_proven = form.get("client_secret") == APP_PASSWORD or "client_assertion" in form
        if status == 200 and not (form["client_id"] == APP_ID and is_proven):
            return web.json_response({"error": "invalid_client"}, status=401)
        if status == 200 and form["scope"] == "https://graph.microsoft.com/.default":
            return web.json_response({"access_token": self.graph.issue(), "expires_in": 3600})
        return web.json_response(answer, status=status)

    async def _team(self, request: web.Request) -> web.Response:
        if self.teams_down:
            return web.Response(status=503)
        if request.match_info["team"] not in self.team_channels:
            return _gone()
        return web.json_response({"id": request.match_info["team"], "name": "Payments", "aadGroupId": GROUP})

    async def _conversations(self, request: web.Request) -> web.Response:
        if self.teams_down:
            return web.Response(status=503)
        known = self.team_channels.get(request.match_info["team"], ())
        listed = [{"id": each, "name": None, "type": self.channel_types.get(each, "standard")} for each in known]
        return web.json_response({"conversations": listed})

    async def _members(self, request: web.Request) -> web.Response:
        """Two pages: the members, and then the guests."""
        if self.roster_down:
            return web.Response(status=503)
        if "continuationToken" not in request.query:
            self.rosters_told += 1
            return web.json_response({"members": [MEMBER], "continuationToken": "2"})
        is_there = request.match_info["conversation"] in self.guests
        guests = [{"id": "29:guest", "aadObjectId": "guest", "tenantId": TENANT, "userRole": "guest"} | self.guest]
        return web.json_response({"members": guests if is_there else []})

    async def _member(self, request: web.Request) -> web.Response:
        return web.json_response(MEMBER) if request.match_info["member"] in MEMBER.values() else _gone()

    async def _send(self, request: web.Request) -> web.Response:
        taken_all_the_same = bool(self.failures) and self.failures[0].taken
        failure = self._failure()
        if failure and not taken_all_the_same:
            return failure
        message = await _message(request, f"17100000{len(self.sent):05}")
        if message.conversation.partition(";messageid=")[2] in self.deleted:
            return _gone()
        if message.only_for and message.only_for != MEMBER["id"]:
            return web.json_response(
                {"error": {"code": "BadArgument", "message": "The recipient is wrong."}}, status=400
            )
        self.sent.append(message)
        self.messages[message.id] = message
        if not message.only_for:
            self._show(message)
        return failure or web.json_response({"id": message.id}, status=201)

    async def _update(self, request: web.Request) -> web.Response:
        if failure := self._failure():
            return failure
        message = await _message(request, request.match_info["id"])
        if message.id not in self.messages:
            return _gone()
        self.updated.append(message)
        self.messages[message.id] = replace(self.messages[message.id], activity=message.activity)
        self._show(self.messages[message.id])
        return web.json_response({"id": message.id})

    async def _remove(self, request: web.Request) -> web.Response:
        if failure := self._failure():
            return failure
        message_id = request.match_info["id"]
        if message_id not in self.messages:
            return _gone()
        self.delete(message_id)
        return web.Response()

    def _show(self, message: Sent) -> None:
        """In Graph: the card is a text in JSON, laid out anew, beside an empty message of the application's."""
        channel, _, root = message.conversation.partition(";messageid=")
        if channel not in self.graph.messages:
            return
        attachments = [
            {
                "id": f"a{index}",
                "contentType": each["contentType"],
                "contentUrl": None,
                "content": json.dumps(each["content"], indent=2).replace("\n", "\r\n"),
                "name": None,
            }
            for index, each in enumerate(message.activity.get("attachments", ()))
        ]
        if message.id in self.graph.messages[channel]:
            self.graph.messages[channel][message.id] |= {"attachments": attachments}
            return
        application = {"id": APP_ID, "displayName": "Plumbline", "applicationIdentityType": "bot"}
        shown = "".join(f'<attachment id="{each["id"]}"></attachment>' for each in attachments)
        fields: dict[str, Any] = {
            "attachments": attachments,
            "createdDateTime": graph_time(self.now()),
            "from": {"application": application, "device": None, "user": None},
        }
        self.graph.post(channel, message.id, shown, reply_to=root or None, **fields)

    def _failure(self) -> web.Response | None:
        if not self.failures:
            return None
        failure = self.failures.pop(0)
        return web.Response(
            status=failure.status, headers=failure.headers, text=failure.body, content_type=failure.content_type
        )


def _gone() -> web.Response:
    return web.json_response({"error": {"code": "ConversationNotFound", "message": "It is gone."}}, status=404)


async def _message(request: web.Request, message_id: str) -> Sent:
    body = await request.read()
    authorization = request.headers.get("Authorization", "")
    activity = json.loads(body)
    is_targeted = request.query.get("isTargetedActivity") == "true"
    only_for = activity.get("recipient", {}).get("id", "nobody") if is_targeted else ""
    return Sent(request.match_info["conversation"], message_id, activity, authorization, len(body), only_for)


class FakeReferences:
    """Implements `adapters.teams.connector.ConversationReferences` in memory."""

    def __init__(self) -> None:
        self.stored: dict[str, dict[str, Any]] = {}
        self.writes = 0

    async def get(self, conversation_id: str) -> dict[str, Any] | None:
        return self.stored.get(conversation_id)

    async def put(self, conversation_id: str, reference: dict[str, Any]) -> None:
        self.writes += 1
        self.stored[conversation_id] = reference

    async def beginning_with(self, prefix: str) -> list[dict[str, Any]]:
        return [reference for key, reference in sorted(self.stored.items()) if key.startswith(prefix)]

    async def remove(self, conversation_id: str, team_id: str) -> None:
        for key, reference in list(self.stored.items()):
            if key == conversation_id or (team_id and reference.get("team_id") == team_id):
                del self.stored[key]
