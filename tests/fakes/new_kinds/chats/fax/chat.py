"""A chat that somebody adds: a machine that sends each fax that arrives, and prints on others what it is sent.

A line is a channel, and a thread is a sheet with its copies.
"""

from __future__ import annotations

from hmac import compare_digest
from io import StringIO

from aiohttp import web
from pydantic import BaseModel, Field, SecretStr, TypeAdapter, ValidationError
from rich.console import Console

from adapters.chat import Budget, Chat, ChatHost, ChatSettings, secret
from adapters.http import CHAT, Http, Token
from adapters.terminal import render
from core.model.conversation import MessageReference, Person, Place, Platform, Question, channel_audience, cut_message
from core.model.errors import MalformedInput, Unauthorized
from core.model.messages import Message

FAX = Platform("fax")
WIDTH = 72  # characters of a line on paper


class _Fax(BaseModel):
    number: str = Field(pattern=r"^\d+$")
    line: str
    sender: str
    text: str


class _Sheet(BaseModel):
    number: str
    intent: str = ""


_SHEET, _SHEETS = TypeAdapter(_Sheet), TypeAdapter(list[_Sheet])


class FaxMessenger:
    """Implements `core.ports.Messenger`. Paper is not edited or taken back: a new version follows the old one."""

    def __init__(self, http: Http) -> None:
        self._http = http

    async def post(self, place: Place, message: Message, intent: str) -> MessageReference:
        paper = Console(file=StringIO(), width=WIDTH, color_system=None)
        with paper.capture() as printed:
            paper.print(render(message))
        sheet = {"copy_to": place.thread or "", "intent": intent, "text": printed.get()}
        answer = await self._http.send("POST", f"lines/{place.channel}", sheet, _SHEET)
        return MessageReference(place, answer.number)

    async def edit(self, reference: MessageReference, message: Message) -> None:
        await self.post(reference.place, message, "")

    async def find(self, place: Place, intent: str) -> MessageReference | None:
        sheets = await self._http.parsed(f"lines/{place.channel}", _SHEETS)
        return next((MessageReference(place, sheet.number) for sheet in sheets if sheet.intent == intent), None)

    async def delete(self, reference: MessageReference) -> None: ...

    async def link(self, reference: MessageReference) -> str:
        return ""


class FaxSettings(ChatSettings):
    """The machine, and the token that it and the bot show each other."""

    platform = FAX
    title = "Fax"
    path = "/fax"
    required = ("FAX_TOKEN", "FAX_URL")

    token: SecretStr | None = Field(None, validation_alias="FAX_TOKEN")
    url: str = Field("", validation_alias="FAX_URL")

    @property
    def is_on(self) -> bool:
        return self.token is not None

    async def open(self, host: ChatHost) -> Chat:
        token = Token(f"Bearer {secret(self.token)}")
        http = Http("The fax machine", self.url, host.session, token, errors=CHAT)

        async def handle(request: web.Request) -> web.Response:
            shown = request.headers.get("Authorization", "").encode()
            if not compare_digest(shown, (await token.header()).encode()):
                raise Unauthorized("The token is missing or wrong.")
            try:
                fax = _Fax.model_validate_json(await request.read())
            except ValidationError as error:
                raise MalformedInput("This is no fax.") from error
            await _ask(fax, host)
            return web.Response(status=202)

        return Chat(FaxMessenger(http), handle, Budget(post=0.0, edit=0.0))


async def _ask(fax: _Fax, host: ChatHost) -> None:
    place = Place(FAX, fax.line, fax.number)
    audience = channel_audience(place, host.channels)
    asker, text = Person(FAX, fax.sender), cut_message(fax.text)
    await host.inbox.ask(Question(f"fax:{fax.number}", text, asker, place, audience, host.clock.now()))
