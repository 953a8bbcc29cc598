"""Microsoft Graph, and access tokens of Microsoft for an application, which signs in with a secret, a certificate, a federated
credential or a managed identity. The fields of a message are those of the Ericsson chatbot, appendices A and B.

https://learn.microsoft.com/graph/paging · https://learn.microsoft.com/graph/api/resources/chatmessage
https://learn.microsoft.com/microsoftteams/platform/task-modules-and-cards/cards/cards-reference
https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow
https://learn.microsoft.com/entra/identity-platform/certificate-credentials
https://learn.microsoft.com/entra/identity/managed-identities-azure-resources/how-to-use-vm-token
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import aiohttp
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from adapters.html import cut_markup, markdown_of, parsed, put_in_place
from adapters.http import (
    OBJECTS,
    SOURCE,
    Http,
    IssuedToken,
    Moment,
    RenewedToken,
    TryAgain,
    exchange,
    followed,
    line_of,
    source_server,
)
from adapters.section import EnvironmentName, Host
from adapters.sources.section import SourceSection
from core.model.conversation import cut_message
from core.model.errors import SourceUnavailable

LOGIN_URL = "https://login.microsoftonline.com"
METADATA_URL = (
    "http://169.254.169.254/metadata/identity/oauth2/token"  # of a virtual machine of Azure, and of its clusters
)
ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
ASSERTION_LIFETIME = 300.0  # seconds
TIMEOUT = 10.0  # seconds
RENEW_BEFORE = 300.0  # seconds before a token expires
TOLD_BEFORE = timedelta(days=30)  # an expiry of credentials
_CODE = re.compile(r"AADSTS\d+: [^.\r\n]*+")
"""Microsoft's number for a refusal, with its first sentence. The following ones identify the request."""


class CredentialsRefused(SourceUnavailable):
    """Microsoft issues no token for these credentials until somebody corrects them."""


class Login(Protocol):
    """The way in which an application gets its tokens."""

    async def issue(self, session: aiohttp.ClientSession, resource: str) -> IssuedToken:
        """Request a token for a resource. Raises TryAgain for a temporary failure, else CredentialsRefused."""
        ...

    def expires_at(self) -> datetime | None:
        """Return when the credentials expire; None if they do not, or do not say. Raises CredentialsRefused."""
        return None


class Proof(Protocol):
    """The credentials of an application."""

    def fields(self, url: str, client_id: str) -> Mapping[str, str]:
        """Return the fields of a request to `url` for a token. Raises CredentialsRefused if a file cannot be used."""
        ...

    def expires_at(self) -> datetime | None:
        return None


@dataclass(frozen=True)
class ClientSecret(Proof):
    """A client secret. It does not say when it expires."""

    value: str = field(repr=False)

    def fields(self, url: str, client_id: str) -> Mapping[str, str]:
        return {"client_secret": self.value}


@dataclass(frozen=True)
class FederatedToken(Proof):
    """The token of another issuer that the application trusts, such as a Kubernetes cluster, which renews it in a file."""

    file: Path

    def fields(self, url: str, client_id: str) -> Mapping[str, str]:
        return {"client_assertion_type": ASSERTION_TYPE, "client_assertion": _read(self.file).decode().strip()}


@dataclass(frozen=True, slots=True)
class Certificate:
    """A PEM file with a private RSA key and its certificate. It is read for each token, so that it can be renewed."""

    file: Path

    def fields(self, url: str, client_id: str) -> Mapping[str, str]:
        import jwt
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
        from jwt.utils import base64url_encode

        now = time.time()
        claims = {"aud": url, "iss": client_id, "sub": client_id, "jti": str(uuid.uuid4())}
        claims |= {"nbf": now - ASSERTION_LIFETIME, "exp": now + ASSERTION_LIFETIME}
        thumbprint = base64url_encode(self._certificate().fingerprint(SHA256())).decode()
        try:
            key: Any = load_pem_private_key(_read(self.file), None)
            assertion = jwt.encode(claims, key, algorithm="PS256", headers={"x5t#S256": thumbprint})
        except (ValueError, TypeError, jwt.PyJWTError) as error:
            raise CredentialsRefused(f"{self.file} has no private RSA key without a password: {error}.") from None
        return {"client_assertion_type": ASSERTION_TYPE, "client_assertion": assertion}

    def expires_at(self) -> datetime | None:
        return self._certificate().not_valid_after_utc

    def _certificate(self) -> Any:
        from cryptography.x509 import load_pem_x509_certificate

        try:
            return load_pem_x509_certificate(_read(self.file))
        except ValueError:
            raise CredentialsRefused(f"{self.file} has no certificate in PEM form.") from None


def first_proof(secret: str, certificate: Path | None, federated_token: Path | None) -> Proof | None:
    """Return the first of the credentials that is given; None for a managed identity, which needs none."""
    if secret:
        return ClientSecret(secret)
    return Certificate(certificate) if certificate else federated_token and FederatedToken(federated_token)


@dataclass(frozen=True, slots=True)
class ClientLogin:
    """An application registered in a tenant, with its own credentials (RFC 6749, section 4.4; RFC 7523)."""

    login_url: str
    tenant: str
    client_id: str
    proof: Proof

    async def issue(self, session: aiohttp.ClientSession, resource: str) -> IssuedToken:
        url = f"{self.login_url.rstrip('/')}/{self.tenant}/oauth2/v2.0/token"
        form = {"grant_type": "client_credentials", "client_id": self.client_id, "scope": f"{resource}/.default"}
        return await _issued(session, "POST", url, data=form | dict(self.proof.fields(url, self.client_id)))

    def expires_at(self) -> datetime | None:
        return self.proof.expires_at()


@dataclass(frozen=True)
class ManagedIdentity(Login):
    """An identity that Azure gives to a machine, a cluster or an App Service, without credentials of its own.

    An App Service names its own `endpoint`, and a `key` for it.
    """

    client_id: str
    endpoint: str = METADATA_URL
    key: str = field(default="", repr=False)

    async def issue(self, session: aiohttp.ClientSession, resource: str) -> IssuedToken:
        version = "2019-08-01" if self.key else "2018-02-01"
        query = {"api-version": version, "resource": resource, "client_id": self.client_id}
        headers = {"X-IDENTITY-HEADER": self.key} if self.key else {"Metadata": "true"}
        return await _issued(session, "GET", self.endpoint, params=query, headers=headers)


class AppToken(RenewedToken):
    """The access token of an application for one resource."""

    def __init__(self, login: Login, resource: str, session: aiohttp.ClientSession) -> None:
        super().__init__(partial(login.issue, session, resource), RENEW_BEFORE)
        self.login = login


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise CredentialsRefused(f"{file} cannot be read: {error.strerror}.") from None


async def _issued(session: aiohttp.ClientSession, method: str, url: str, **options: Any) -> IssuedToken:
    answer = await exchange(
        session, method, url, system="Microsoft's login", errors=SOURCE, seconds=TIMEOUT, max_body=1 << 20, **options
    )
    if answer.may_pass:
        raise TryAgain(f"Microsoft did not issue a token (HTTP status {answer.status}).", answer.retry_after)
    try:
        reply = json.loads(answer.body)
        if answer.status == 200:
            return IssuedToken(str(reply["access_token"]), float(reply["expires_in"]))
        numbered = _CODE.search(str(reply.get("error_description")))
        code = numbered[0] if numbered else str(reply.get("error") or f"HTTP status {answer.status}")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TryAgain(f"Microsoft did not issue a token: {type(error).__name__}.") from None
    raise CredentialsRefused(
        f"Microsoft did not issue a token ({line_of(code, 200)}): check the tenant, the client id and its credentials."
    )


CARD = "application/vnd.microsoft."  # prefix of the content type of every card
FORWARDED, QUOTED = "forwardedMessageReference", "messageReference"
READ = (
    "title",
    "subtitle",
    "activityTitle",
    "activitySubtitle",
    "text",
    "name",
    "value",
    "codeSnippet",
)  # in this order
CHILDREN = ("columns", "rows", "cells", "items", "facts", "sections", "body", "pages")
MAX_SIZE = 100_000  # characters of a card; Teams accepts about 28 KB
MAX_DEPTH = 20
FULL_READ_EVERY = timedelta(days=30)  # of what is read by deltas between
LINK_REFUSED = frozenset({400, 404, 410})  # HTTP status codes for an expired delta link


def attached_text(kind: str, content: Any) -> str:
    """Return the texts of an attachment, one per line, without buttons; empty if it is neither card nor message.

    `content` is JSON, as text or read.
    """
    if not kind.startswith((CARD, FORWARDED, QUOTED)):
        return ""
    try:
        card = json.loads(content[:MAX_SIZE]) if isinstance(content, str) else content
    except (ValueError, RecursionError):
        return ""
    if kind == FORWARDED:
        original = card.get("originalMessageContent") if isinstance(card, dict) else None
        return markdown_of(parsed(cut_message(original))) if isinstance(original, str) else ""
    if kind == QUOTED:
        preview = card.get("messagePreview") if isinstance(card, dict) else None
        return cut_message(preview).strip() if isinstance(preview, str) else ""
    return cut_message("\n".join(_texts(card, MAX_DEPTH)))


def _texts(element: Any, depth: int) -> Iterator[str]:
    if not isinstance(element, dict) or not depth or element.get("isVisible") is False:
        return
    if str(element.get("type")).startswith("Input."):
        return
    own = [element[name].strip() for name in READ if isinstance(element.get(name), str)]
    own += ["".join(map(_run, _list(element.get("inlines")))).strip()]
    if text := " ".join(filter(None, own)):
        yield text
    for name in CHILDREN:
        for child in _list(element.get(name)):
            yield from _texts(child, depth - 1)


def _run(run: Any) -> str:
    """Return a part of a line, with its spaces."""
    return str(run.get("text") or "") if isinstance(run, dict) else str(run)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


class GraphModel(BaseModel):
    model_config = ConfigDict(frozen=True, populate_by_name=True)


class GraphIdentity(GraphModel):
    id: str | None = None
    displayName: str | None = None
    email: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.displayName, self.email))) if self.displayName else ()


class GraphIdentities(GraphModel):
    """A person, a bot, a group of the tenant, or a group of a site."""

    user: GraphIdentity | None = None
    application: GraphIdentity | None = None
    group: GraphIdentity | None = None
    siteGroup: GraphIdentity | None = None


class _Body(GraphModel):
    contentType: str = "text"
    content: str | None = None


class Attachment(GraphModel):
    """A file by its name, or a card, whose `content` is JSON text."""

    name: str | None = None
    contentType: str | None = None
    content: Any = None


class _Mention(GraphModel):
    id: int | str | None = None
    mentioned: GraphIdentities | None = None


class GraphMessage(GraphModel):
    """A message or a reply. `id` is unique within its channel; `replyToId` is the id of the message that it answers."""

    id: str
    replyToId: str | None = None
    messageType: str = "message"
    createdDateTime: Moment
    lastEditedDateTime: Moment | None = None
    deletedDateTime: Moment | None = None
    subject: str | None = None
    webUrl: str | None = None
    policyViolation: Any = None
    eventDetail: Any = None
    sender: GraphIdentities | None = Field(None, alias="from")
    body: _Body = _Body()
    attachments: list[Attachment] | None = None
    mentions: list[_Mention] | None = None
    replies: list[dict[str, Any]] | None = None  # the newest, if they were asked for

    @property
    def is_said(self) -> bool:
        """Return whether a person or application said something: not an event, not deleted, and not withheld by a
        policy.
        """
        return (
            self.messageType == "message"
            and self.deletedDateTime is None
            and self.policyViolation is None
            and self.eventDetail is None
        )

    @property
    def application_id(self) -> str | None:
        """Return the id of the bot or connector that sent it; None for a person."""
        return self.sender.application.id if self.sender and self.sender.application else None

    def mentions_of(self, application_id: str) -> frozenset[str]:
        """Return the ids, within this message, of the mentions of a bot."""
        return frozenset(
            str(mention.id)
            for mention in self.mentions or ()
            if application_id
            and mention.mentioned
            and mention.mentioned.application
            and mention.mentioned.application.id == application_id
        )

    @property
    def named(self) -> Iterator[GraphIdentity]:
        """Yield the sender, and everybody who is mentioned."""
        sets = [self.sender, *(mention.mentioned for mention in self.mentions or ())]
        return (each.user for each in sets if each and each.user)


def text_of(message: GraphMessage, addressed: str = "") -> str:
    """Return the message as Markdown: what it quotes, its subject, its text with the names of mentioned people, the text
    of cards and forwarded messages, and files by name.

    Mentions of the application with the id `addressed` are left out.
    """
    content = message.body.content or ""
    is_html = message.body.contentType.lower() == "html"
    text = _from_html(cut_markup(content), message.mentions_of(addressed)) if is_html else content.strip()
    subject = (message.subject or "").strip()
    attached = [
        part
        for each in message.attachments or ()
        if each.contentType != QUOTED
        for part in (attached_text(each.contentType or "", each.content), each.name and f"(attachment: {each.name})")
        if part
    ]
    previews = [attached_text(QUOTED, each.content) for each in message.attachments or () if each.contentType == QUOTED]
    quotes = (f"> {' '.join(preview.split())}" for preview in previews if preview)
    words = "\n\n".join(filter(None, (*quotes, f"**{subject}**" if subject else "", text)))
    return cut_message("\n".join(filter(None, (words, *attached))))


def _from_html(content: str, left_out: frozenset[str]) -> str:
    soup = parsed(content)
    for mention in soup("at"):
        put_in_place(mention, "" if str(mention.get("id")) in left_out else f"@{mention.get_text()}")
    for emoji in soup("emoji"):
        put_in_place(emoji, str(emoji.get("alt") or ""))
    for tag in soup(("attachment", "img", "systemeventmessage")):
        put_in_place(tag, "")
    for block in soup("codeblock"):
        block.name = "pre"
    return markdown_of(soup)


GRAPH_URL = "https://graph.microsoft.com/v1.0"
RESOURCE = "https://graph.microsoft.com"


def graph_credentials(
    tenant_id: str, client_id: str, client_secret: str, session: aiohttp.ClientSession, login_url: str = LOGIN_URL
) -> AppToken:
    """Return the token of an application with a secret for Microsoft Graph in a tenant."""
    return AppToken(ClientLogin(login_url, tenant_id, client_id, ClientSecret(client_secret)), RESOURCE, session)


class GraphSection(SourceSection):
    """A source that is read through Microsoft Graph, by an app registered in a tenant."""

    tenant_id: str
    client_id: str
    client_secret_env: EnvironmentName

    def graph(self, host: Host) -> Http:
        secret = host.settings.secret(self.client_secret_env, self.name)
        credentials = graph_credentials(self.tenant_id, self.client_id, secret, host.session)
        return source_server("Microsoft Graph", GRAPH_URL, host.session, credentials)


async def graph_pages(
    server: Http, address: str, parameters: Mapping[str, str] | None = None
) -> AsyncIterator[dict[str, Any]]:
    """Yield each page of a collection. Raises SourceUnavailable if the links form a loop."""
    answer = await server.get(address, parameters)
    before = set[str]()
    while True:
        yield answer | {"value": server.listed(answer, "value", OBJECTS)}
        if not (following := answer.get("@odata.nextLink")):
            return
        answer = await server.get(followed(str(following), before, server.system))


async def graph_values(
    server: Http, address: str, parameters: Mapping[str, str] | None = None, kind: TypeAdapter[Any] = OBJECTS
) -> list[Any]:
    """Return all values of a collection, as lists of this kind. Raises Refused with status 0 for others."""
    pages = graph_pages(server, address, parameters)
    return [each async for page in pages for each in server.listed(page, "value", kind)]
