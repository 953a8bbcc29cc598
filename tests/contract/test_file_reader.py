"""Files that people share are read from their platform alone, with limits, and only if they are text."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from yarl import URL

from adapters.chat import MAX_BYTES
from adapters.slack.channels import SlackFiles
from adapters.slack.channels import shared_files as slack_files
from adapters.teams.history import DOWNLOAD, TeamsFiles
from adapters.teams.history import shared_files as teams_files
from core.model.conversation import CUT, MAX_MESSAGE, SharedFile
from core.model.errors import ChatUnavailable
from core.ports import FileReader
from tests.fakes.server import FakeServer

TOKEN = "xoxb-fake"
LOG = "step 1 of 3\nE: No space left on device\n"
SHAREPOINT = URL("https://marigold-my.sharepoint.com")


class Files(FakeServer):
    """The host of a platform's files. `asked` are the headers of each request."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        app = web.Application()
        app.router.add_get("/{name}", self._file)
        super().__init__(app)

    @property
    def address(self) -> URL:
        return self._server.make_url("/")

    async def _file(self, request: web.Request) -> web.Response:
        self.asked.append(request.headers.get("Authorization", ""))
        match request.match_info["name"]:
            case "build.log":
                return web.Response(text=LOG)
            case "long.log":
                return web.Response(text=f"first{'.' * MAX_MESSAGE}last")
            case "endless.log":
                return web.Response(body=b"a" * (MAX_BYTES + 1_000_000), content_type="text/plain")
            case "binary.log":
                return web.Response(body=b"\x7fELF\0\0", content_type="text/plain")
            case "sign-in.log":
                return web.Response(text="<html>Sign in</html>", content_type="text/html")
            case "moved.log":
                raise web.HTTPFound("https://evil.example/")
            case _:
                raise web.HTTPNotFound


class Mapped:
    """A session to which the host of SharePoint is this machine."""

    def __init__(self, session: aiohttp.ClientSession, address: URL) -> None:
        self._session = session
        self._address = address

    def get(self, url: URL, **options: Any) -> Any:
        return self._session.get(self._address.join(url.relative()), **options)


@pytest.fixture
async def host() -> AsyncIterator[Files]:
    async with Files() as started:
        yield started


@pytest.fixture(params=["slack", "teams"])
async def reader(request: pytest.FixtureRequest, host: Files) -> AsyncIterator[tuple[FileReader, URL]]:
    """A reader, and the address of its platform's files."""
    async with aiohttp.ClientSession() as session:
        if request.param == "slack":
            yield SlackFiles(session, TOKEN, str(host.address / "api/")), host.address
        else:
            yield TeamsFiles(Mapped(session, host.address)), SHAREPOINT  # type: ignore[arg-type]


Reader = tuple[FileReader, URL]


async def read(reader: Reader, name: str) -> str:
    return await reader[0].text(SharedFile(name, str(reader[1] / name)))


async def test_a_text_file_is_read(reader: Reader) -> None:
    assert await read(reader, "build.log") == LOG


async def test_of_a_long_file_the_beginning_and_the_end_are_read(reader: Reader) -> None:
    text = await read(reader, "long.log")
    assert len(text) <= MAX_MESSAGE
    assert text.startswith("first")
    assert CUT in text
    assert text.endswith("last")


async def test_of_an_endless_file_no_more_is_read_than_the_limit(reader: Reader) -> None:
    assert len(await read(reader, "endless.log")) <= MAX_MESSAGE


@pytest.mark.parametrize("name", ["binary.log", "sign-in.log", "moved.log", "gone.log"])
async def test_what_is_not_the_text_of_a_file_is_refused_with_a_reason(reader: Reader, name: str) -> None:
    with pytest.raises(ChatUnavailable, match=r"not text|does not let me read it"):
        await read(reader, name)


@pytest.mark.parametrize(
    "address",
    [
        "https://evil.example/build.log",
        "https://sharepoint.com.evil.example/build.log",
        "https://evil-sharepoint.com/build.log",
        "http://marigold.sharepoint.com/build.log",
        "https://marigold.sharepoint.com:8443/build.log",
        "http://169.254.169.254/latest/meta-data",
        "file:///etc/passwd",
        "http://[",
    ],
)
async def test_no_other_host_is_asked(reader: Reader, host: Files, address: str) -> None:
    with pytest.raises(ChatUnavailable):
        await reader[0].text(SharedFile("build.log", address))
    assert host.asked == []


async def test_slack_s_token_is_sent_to_slack_and_none_to_sharepoint(reader: Reader, host: Files) -> None:
    await read(reader, "build.log")
    assert host.asked == ([f"Bearer {TOKEN}"] if isinstance(reader[0], SlackFiles) else [""])


def test_snippets_and_text_files_of_slack_are_read_and_pictures_are_not() -> None:
    url = "https://files.slack.com/files-pri/T1-F1/download/x"
    files = [
        {"name": "Untitled", "mode": "snippet", "url_private_download": url},
        {"name": "build.log", "mode": "hosted", "url_private": url},
        {"name": "screen.png", "mode": "hosted", "url_private": url},
        {"name": "hidden.log", "mode": "hidden_by_limit"},
        {"name": 7, "url_private": url},
        "text",
        None,
    ]
    assert [each.name for each in slack_files(files)] == ["Untitled", "build.log"]
    assert len(slack_files(files * 9)) == 3
    assert slack_files({"name": "build.log"}) == slack_files(None) == ()


def test_text_files_of_a_personal_chat_in_teams_are_read_and_pictures_are_not() -> None:
    content = {"downloadUrl": "https://marigold-my.sharepoint.com/download?tempauth=x", "fileType": "log"}
    attachments = (
        {"contentType": DOWNLOAD, "name": "build.log", "content": content},
        {"contentType": DOWNLOAD, "name": "screen.png", "content": content},
        {"contentType": DOWNLOAD, "name": "build.log", "content": "text"},
        {"contentType": "text/html", "content": "<p>why?</p>"},
        None,
    )
    assert teams_files(attachments) == (SharedFile("build.log", content["downloadUrl"]),)
