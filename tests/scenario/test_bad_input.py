"""Whatever comes in that cannot be right is answered with 4xx and one sentence, and leaves no traceback in the log."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import re
import time
from collections.abc import Iterator
from io import BytesIO
from urllib.parse import urlsplit

import aiohttp
import pytest
import structlog
from yarl import URL

from tests.cases import every_case
from tests.fakes import slack_payloads
from tests.scenario.application import TOKEN, RunningBot
from tests.scenario.webhooks import alert, delivery

pytestmark = pytest.mark.asyncio(loop_scope="session")

MEGABYTE = 1024 * 1024
EXAMPLES = {"source": "alertmanager", "incident_id": "none", "document_id": "handbook/none.md", "name": "none.css"}

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
VALID = json.dumps(delivery("bad input", alert())).encode()

BODIES = {
    "empty": b"",
    "cut off": VALID[: len(VALID) // 2],
    "no object": b"[1, 2]",
    "null": b"null",
    "without what is needed": b"{}",
    "nested deeply": b"[" * 200_000,
    "not UTF-8": b'{"text": "\xff\xfe"}',
    "UTF-16 without its mark": VALID.decode().encode("utf-16-le")[:-1],
    "half a character": rb'{"type": "message", "text": "\ud800"}',
    "a NUL": b'{"type": "\x00"}',
    "no number": b'{"version": NaN}',
    "binary": bytes(range(256)) * 16,
    "10 MB of nothing": b" " * (10 * MEGABYTE),
    "10 MB of text": b'{"text": "' + b"x" * (10 * MEGABYTE) + b'"}',
}


class Complaints(logging.Handler):
    """Everything that was logged with a traceback, or as an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.records: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(self.format(record))


@pytest.fixture(autouse=True)
def quiet_log() -> Iterator[None]:
    complaints = Complaints()
    logging.getLogger().addHandler(complaints)
    with structlog.testing.capture_logs() as events:
        yield
    logging.getLogger().removeHandler(complaints)
    # What workflows of earlier tests log in the background has no path.
    complaints.records += [str(event) for event in events if "path" in event and event["log_level"] == "error"]
    assert complaints.records == []


def routes(bot: RunningBot, *methods: str) -> list[tuple[str, str]]:
    """Method and address of every route (with one of these methods)."""
    return [
        (route.method, bot.address.rstrip("/") + re.sub(r"{(\w+)[^}]*}", lambda m: EXAMPLES[m[1]], path))
        for route in bot.app.router.routes()
        if (not methods or route.method in methods) and (path := route.resource.canonical if route.resource else "")
    ]


async def mistake(bot: RunningBot, method: str, url: str, body: bytes = b"", **headers: str) -> str:
    """Send a request; empty if it is refused with 4xx and one sentence, else what was answered instead."""
    async with bot.session.request(
        method, url, data=BytesIO(body), headers={"HX-Request": "true", **headers}, allow_redirects=False
    ) as response:
        text = await response.text()
        is_sentence = re.fullmatch(r"[A-Z][^\n<>]{10,400}\.", _sentence(response, text))
        is_refused = 400 <= response.status < 500 and is_sentence
        return "" if is_refused else f"{method} {url} {headers}: {response.status} {text[:300]}"


def _sentence(response: aiohttp.ClientResponse, text: str) -> str:
    return json.loads(text).get("error", "") if response.content_type == JSON else text


@every_case("name", BODIES)
async def test_a_body_that_makes_no_sense_is_refused_on_every_route(bot: RunningBot, name: str) -> None:
    requests = [
        mistake(bot, method, url, BODIES[name], **{"Content-Type": content_type})
        for method, url in routes(bot, "POST")
        for content_type in (JSON, FORM)
    ]
    assert [answer for request in requests if (answer := await request)] == []


@pytest.mark.parametrize("content_type", [FORM, "text/plain", "multipart/form-data; boundary=x", "?"])
async def test_a_webhook_of_another_content_type_is_refused(bot: RunningBot, content_type: str) -> None:
    url = f"{bot.address}webhooks/alertmanager"
    assert not await mistake(bot, "POST", url, VALID, **{"Content-Type": content_type})


@every_case("name", BODIES)
async def test_a_body_that_slack_signed_and_that_makes_no_sense_breaks_nothing(bot: RunningBot, name: str) -> None:
    body = BODIES[name]
    for content_type in (JSON, FORM):
        headers = slack_payloads.signed(body.decode("utf-8", "replace"), time.time()) | {"Content-Type": content_type}
        async with bot.session.post(f"{bot.address}slack/events", data=BytesIO(body), headers=headers) as response:
            assert response.status < 500, await response.text()


@pytest.mark.parametrize(
    "signature",
    [
        {},
        {"X-Slack-Signature": "v0=0000", "X-Slack-Request-Timestamp": "1773480600"},
        {"X-Slack-Signature": "v0=\xe4", "X-Slack-Request-Timestamp": "now"},
        slack_payloads.signed("{}", 1773480600.0),
        slack_payloads.signed("{}", time.time(), "another secret"),
    ],
)
async def test_a_request_that_slack_did_not_sign_just_now_is_refused(
    bot: RunningBot, signature: dict[str, str]
) -> None:
    async with bot.session.post(f"{bot.address}slack/events", data=b"{}", headers=signature) as response:
        assert response.status == 401
        assert "Slack signature" in (await response.json())["error"]


@every_case("method", ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
async def test_a_method_that_an_address_does_not_take_is_refused(bot: RunningBot, method: str) -> None:
    addresses = {url: {each for each, other in routes(bot) if other == url} for _, url in routes(bot)}
    wrong = [url for url, methods in addresses.items() if method not in methods]
    assert wrong
    assert [answer for url in wrong if (answer := await mistake(bot, method, url, VALID))] == []


@every_case("path", ["nowhere", "webhooks", "webhooks/fax", "webhooks/%00", "console", "..%2f..%2fetc/passwd"])
async def test_an_address_that_is_none_is_refused(bot: RunningBot, path: str) -> None:
    for method in ("GET", "POST"):
        assert not await mistake(bot, method, bot.address + path)


STRANGE = ["", "none", "%00", "%ff%fe", "%F0%9F%92%A9", "-1", "9" * 40, "1e9", "<script>", "..%2f..%2f", "x" * 5000]


@every_case("value", STRANGE)
async def test_a_strange_value_in_an_address_breaks_no_page(bot: RunningBot, value: str) -> None:
    # All at once; the fuzzing of the external tests also tries one without the others.
    query = "&".join(f"{name}={value}" for name in ("channel", "before", "after", "kind", "outcome", "quote"))
    pages = [url for _, url in routes(bot, "GET") if not url.endswith("/console/live")]
    addresses = [f"{url}?{query}" for url in pages]
    addresses += [f"{bot.address}{path}/{value}" for path in ("incidents", "documents", "console/static", "webhooks")]
    for address in addresses:
        async with bot.session.get(URL(address, encoded=True)) as response:
            assert response.status < 500, address


@pytest.mark.parametrize("name", ["gzip", "deflate"])
async def test_a_body_that_is_not_encoded_as_it_says_is_refused(bot: RunningBot, name: str) -> None:
    headers = {"Content-Type": JSON, "Content-Encoding": name}
    assert not await mistake(bot, "POST", f"{bot.address}webhooks/alertmanager", b"x" + VALID, **headers)


async def test_a_small_body_that_unpacks_to_a_huge_one_is_refused(bot: RunningBot) -> None:
    body = gzip.compress(b" " * (64 * MEGABYTE))
    headers = {"Content-Type": JSON, "Content-Encoding": "gzip"}
    assert not await mistake(bot, "POST", f"{bot.address}webhooks/alertmanager", body, **headers)


REQUEST = b"POST /webhooks/alertmanager HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
AUTHORISED = REQUEST + f"Authorization: Bearer {TOKEN}\r\n".encode()


@every_case(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET\r\n\r\n",
        b"BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
        REQUEST + b"Authorization: Bearer \xff\xfe\r\nContent-Length: 2\r\n\r\n{}",
        REQUEST + b"Authorization: Basic \xff\xfe\r\nContent-Length: 2\r\n\r\n{}",
        REQUEST + b"Authorization: Basic dXNlcjr//w==\r\nContent-Length: 2\r\n\r\n{}",
        AUTHORISED + b"Content-Encoding: br\r\nContent-Length: 2\r\n\r\n{}",
        AUTHORISED + b"Content-Encoding: zstd\r\nContent-Length: 2\r\n\r\n{}",
        AUTHORISED + b"Content-Length: -1\r\n\r\n{}",
        AUTHORISED + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        AUTHORISED + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    ],
)
async def test_bytes_that_are_no_request_are_refused(bot: RunningBot, sent: bytes) -> None:
    assert 400 <= await status_of(bot, sent) < 500


async def test_a_body_that_breaks_off_leaves_no_trace(bot: RunningBot) -> None:
    reader, writer = await connection(bot)
    writer.write(AUTHORISED + b"Content-Length: 5000\r\n\r\n" + VALID[:100])
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    assert await reader.read() == b""
    async with bot.session.get(f"{bot.address}healthz") as response:
        assert response.status == 200


async def status_of(bot: RunningBot, sent: bytes) -> int:
    reader, writer = await connection(bot)
    writer.write(sent)
    line = await asyncio.wait_for(reader.readline(), 10)
    writer.close()
    await writer.wait_closed()
    return int(line.split()[1])


async def connection(bot: RunningBot) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    parts = urlsplit(bot.address)
    return await asyncio.open_connection(parts.hostname, parts.port)
