"""Who gets into the local page, and what is refused at its door."""

from __future__ import annotations

from collections.abc import AsyncIterator
from io import BytesIO

import aiohttp
import pytest

from adapters.signing_in.guard import SESSION, WRONG_TOKENS, WRONG_TOKENS_PER_SECOND
from core.model.conversation import MAX_MESSAGE, was_cut
from core.model.errors import ChatUnavailable
from tests.cases import every_case
from tests.fakes.console_site import Site, console_site

TOKEN = "a-long-console-token"
FORM = "application/x-www-form-urlencoded"
PAGES = (
    "/",
    "/incidents",
    "/incidents/x",
    "/sources",
    "/documents/a/b.md",
    "/predictions",
    "/audit",
    "/dead-letters",
)
DATA = ("/console/messages.json?channel=help", "/console/live?channel=help")
POSTS = ("/console/messages", "/console/feedback", "/console/replays", "/console/dead-letters")


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        yield session


@pytest.fixture
async def open_site() -> AsyncIterator[Site]:
    async with console_site() as site:
        yield site


@pytest.fixture
async def locked_site() -> AsyncIterator[Site]:
    async with console_site(token=TOKEN) as site:
        yield site


@every_case("path", [*PAGES, *DATA])
async def test_nothing_is_read_without_the_token(locked_site: Site, http: aiohttp.ClientSession, path: str) -> None:
    async with http.get(locked_site.address + path) as response:
        assert response.status == 401
        assert "PLUMBLINE_CONSOLE_TOKEN" in await response.text()


@every_case("path", POSTS)
async def test_nothing_is_written_without_the_token(locked_site: Site, http: aiohttp.ClientSession, path: str) -> None:
    async with http.post(locked_site.address + path, data={"channel": "help", "text": "hello"}) as response:
        assert response.status == 401
    assert locked_site.messages.all() == []
    assert locked_site.inbox.questions == []


async def test_the_token_lets_a_browser_in_and_leads_it_to_the_page_that_it_wanted(
    locked_site: Site, http: aiohttp.ClientSession
) -> None:
    form = {"token": TOKEN, "page": "/sources"}
    async with http.post(f"{locked_site.address}/console/login", data=form, allow_redirects=False) as response:
        assert (response.status, response.headers["Location"]) == (303, "/sources")
        cookie = response.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert TOKEN not in cookie
    async with http.get(f"{locked_site.address}/sources") as response:
        assert response.status == 200


async def test_a_wrong_token_lets_nobody_in(locked_site: Site, http: aiohttp.ClientSession) -> None:
    async with http.post(f"{locked_site.address}/console/login", data={"token": "guess"}) as response:
        assert response.status == 401
        assert "Set-Cookie" not in response.headers
        assert "not the token" in await response.text()


async def log_in(site: Site, http: aiohttp.ClientSession, token: str = TOKEN, **headers: str) -> aiohttp.ClientResponse:
    form = {"token": token, "page": "/sources"}
    async with http.post(
        f"{site.address}/console/login", data=form, allow_redirects=False, headers=headers
    ) as response:
        await response.read()
        return response


async def test_a_session_ends(locked_site: Site, http: aiohttp.ClientSession) -> None:
    await log_in(locked_site, http)
    locked_site.clock.advance(SESSION - 1)
    async with http.get(f"{locked_site.address}/sources") as response:
        assert response.status == 200
    locked_site.clock.advance(1)
    async with http.get(f"{locked_site.address}/sources") as response:
        assert response.status == 401


@pytest.mark.parametrize("cookie", ["", "x", "1.x", ".", "9" * 40 + ".0", "-1.0", "٣.0", "{later}.{proof}"])
async def test_a_made_up_session_is_refused(locked_site: Site, http: aiohttp.ClientSession, cookie: str) -> None:
    response = await log_in(locked_site, http)
    begin, _, proof = response.cookies["plumbline_console"].value.partition(".")
    made_up = cookie.format(later=int(begin) + SESSION, proof=proof)
    headers = {"Cookie": f"plumbline_console={made_up}"}
    async with (
        aiohttp.ClientSession() as other,
        other.get(f"{locked_site.address}/sources", headers=headers) as response,
    ):
        assert response.status == 401


@pytest.mark.parametrize(("proto", "secure"), [("https", True), ("http", False)])
async def test_the_session_does_not_travel_unencrypted_where_the_login_was_encrypted(
    locked_site: Site, http: aiohttp.ClientSession, proto: str, secure: bool
) -> None:
    response = await log_in(locked_site, http, **{"X-Forwarded-Proto": proto})
    assert ("Secure" in response.headers["Set-Cookie"]) is secure


async def test_who_guesses_the_token_is_soon_not_listened_to_and_those_who_are_in_stay_in(
    locked_site: Site, http: aiohttp.ClientSession
) -> None:
    await log_in(locked_site, http)
    async with aiohttp.ClientSession() as guesser:
        answers = [await log_in(locked_site, guesser, f"guess {number}") for number in range(WRONG_TOKENS + 1)]
        assert [answer.status for answer in answers] == [401] * WRONG_TOKENS + [429]
        assert int(answers[-1].headers["Retry-After"]) == 1 / WRONG_TOKENS_PER_SECOND
        assert (await log_in(locked_site, guesser)).status == 429  # nor is the right one looked at
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with guesser.get(f"{locked_site.address}/sources", headers=headers) as response:
            assert response.status == 429
        async with http.get(f"{locked_site.address}/sources") as response:
            assert response.status == 200
        locked_site.clock.advance(1 / WRONG_TOKENS_PER_SECOND)
        assert (await log_in(locked_site, guesser)).status == 303


@every_case("path", POSTS)
async def test_a_form_with_a_session_must_say_which_page_it_was_on(
    locked_site: Site, http: aiohttp.ClientSession, path: str
) -> None:
    await log_in(locked_site, http)
    form = {"channel": "help", "text": "hello"}
    async with http.post(locked_site.address + path, data=form) as response:
        assert response.status == 403
    async with http.post(locked_site.address + path, data=form, headers={"Sec-Fetch-Site": "same-origin"}) as response:
        assert response.status != 403


@every_case("site", ["cross-site", "same-site", "", "nonsense"])
@every_case("path", [*POSTS, "/console/login"])
async def test_a_form_that_the_browser_says_is_from_another_site_is_refused(
    open_site: Site, http: aiohttp.ClientSession, path: str, site: str
) -> None:
    form = {"channel": "help", "text": "hello"}
    async with http.post(open_site.address + path, data=form, headers={"Sec-Fetch-Site": site}) as response:
        assert response.status == 403
    assert open_site.messages.all() == []


@pytest.mark.parametrize(
    "page", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", " //evil.example"]
)
async def test_a_login_leads_to_no_other_site(locked_site: Site, http: aiohttp.ClientSession, page: str) -> None:
    form = {"token": TOKEN, "page": page}
    async with http.post(f"{locked_site.address}/console/login", data=form, allow_redirects=False) as response:
        assert response.headers["Location"] == "/"


@pytest.mark.parametrize(
    "page",
    [
        "/\r\nSet-Cookie: a=b",
        "/\nx",
        "/\rx",
        "/\t/evil.example",
        "\t//evil.example",
        "/\x00",
        "/\x85x",
    ],
)
async def test_a_login_with_a_line_end_or_a_tab_in_its_page_is_refused(
    locked_site: Site, http: aiohttp.ClientSession, page: str
) -> None:
    form = {"token": TOKEN, "page": page}
    async with http.post(f"{locked_site.address}/console/login", data=form, allow_redirects=False) as response:
        assert response.status == 400
        assert "Location" not in response.headers
        assert "Set-Cookie" not in response.headers


@pytest.mark.parametrize("credential", ["Bearer wrong", "Bearer", f"Basic {TOKEN}", "Bearer ünïcode", TOKEN])
async def test_a_wrong_bearer_token_is_refused(locked_site: Site, credential: str) -> None:
    headers = {"Authorization": credential}
    async with aiohttp.ClientSession() as http, http.get(f"{locked_site.address}/sources", headers=headers) as response:
        assert response.status == 401


async def test_a_program_gets_in_with_a_bearer_token(locked_site: Site) -> None:
    url, headers = f"{locked_site.address}/console/messages.json?channel=help", {"Authorization": f"Bearer {TOKEN}"}
    async with aiohttp.ClientSession() as http, http.get(url, headers=headers) as response:
        assert await response.json() == {"channel": "help", "messages": []}


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "[::2]", "localhost."])
async def test_without_a_token_the_page_answers_to_no_foreign_name(
    open_site: Site, http: aiohttp.ClientSession, host: str
) -> None:
    async with http.get(f"{open_site.address}/", headers={"Host": host}) as response:
        assert response.status == 403
        assert "PLUMBLINE_CONSOLE_TOKEN" in await response.text()


@pytest.mark.parametrize("host", ["localhost", "localhost:9000", "127.0.0.1:1", "[::1]:8080", "LocalHost"])
async def test_without_a_token_the_page_answers_to_local_names(
    open_site: Site, http: aiohttp.ClientSession, host: str
) -> None:
    async with http.get(f"{open_site.address}/", headers={"Host": host}) as response:
        assert response.status == 200


@every_case("origin", ["https://evil.example", "null", "http://127.0.0.1:1", ""])
@every_case("path", [*POSTS, "/console/login"])
async def test_another_site_cannot_post(open_site: Site, http: aiohttp.ClientSession, path: str, origin: str) -> None:
    form = {"channel": "help", "text": "hello"}
    async with http.post(open_site.address + path, data=form, headers={"Origin": origin}) as response:
        assert response.status == 403
    assert open_site.messages.all() == []


@every_case("path", [*PAGES, "/console/static/console.css", "/console/messages.json?channel=none"])
async def test_every_answer_forbids_inline_script_framing_and_sniffing(
    open_site: Site, http: aiohttp.ClientSession, path: str
) -> None:
    async with http.get(open_site.address + path) as response:
        policy = response.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["X-Frame-Options"] == "DENY"
        assert response.headers["Referrer-Policy"] == "same-origin"
        assert response.headers["Cross-Origin-Opener-Policy"] == "same-origin"
        assert "camera=()" in response.headers["Permissions-Policy"]


@pytest.mark.parametrize("path", PAGES)
async def test_no_page_has_inline_script_or_style_or_loads_from_elsewhere(
    open_site: Site, http: aiohttp.ClientSession, path: str
) -> None:
    async with http.get(open_site.address + path) as response:
        html = await response.text()
    assert "<style" not in html
    assert ' style="' not in html
    assert "hx-on" not in html
    assert html.count("<script") == html.count('<script defer src="/console/static/')
    assert 'src="http' not in html
    assert '<link rel="stylesheet" href="http' not in html


@every_case(
    ("path", "sentence"),
    [
        ("/?channel=nowhere", "There is no such channel"),
        ("/?channel=elsewhere", "There is no such channel"),
        ("/?channel=help&before=x", "There is no such message"),
        ("/?channel=help&before=99999999999999999999999", "There is no such message"),
        ("/incidents/nope", "There is no such incident."),
        ("/incidents/%00%ff<script>", "There is no such incident."),
        ("/documents/nope.md", "There is no such document"),
        ("/documents/../../etc/passwd", ""),
        ("/console/static/nope.css", "There is no such file."),
        ("/console/static/THIRD_PARTY.md", "There is no such file."),
        ("/console/messages.json?channel=nowhere", "There is no such channel"),
    ],
)
async def test_what_does_not_exist_is_a_404_with_one_sentence(
    open_site: Site, http: aiohttp.ClientSession, path: str, sentence: str
) -> None:
    async with http.get(open_site.address + path) as response:
        assert response.status == 404
        assert sentence in await response.text()


@pytest.mark.parametrize("after", ["x", "1", "1.2.3", "-1.2", "9" * 40 + ".1", "1.٢"])
async def test_a_made_up_place_to_go_on_from_is_refused(
    open_site: Site, http: aiohttp.ClientSession, after: str
) -> None:
    query = {"channel": "help", "after": after}
    async with http.get(f"{open_site.address}/console/live", params=query) as response:
        assert response.status == 400


@every_case(
    ("body", "content_type", "status"),
    [
        (b"", FORM, 400),
        (b"channel=help&text=", FORM, 400),
        (b"channel=help&text=%20%0a%00", FORM, 400),
        (b"channel=help&text=" + b"x" * (10 * 1024 * 1024), FORM, 413),
        (b"channel=help&text=%ff%fe", FORM, 400),
        (b"channel=help&text=\xff\xfe", FORM, 400),
        (b"&".join(b"text=a" for _ in range(1000)), FORM, 400),
        (b'{"channel": "help", "text": "hello"}', "application/json", 400),
        (b"channel=nowhere&text=hello", FORM, 404),
        (b"channel=help&text=hello&thread=7", FORM, 404),
        (b"channel=help&text=hello&thread=../x", FORM, 404),
    ],
)
async def test_a_message_that_cannot_be_taken_is_refused_in_a_sentence_and_not_kept(
    open_site: Site, http: aiohttp.ClientSession, body: bytes, content_type: str, status: int
) -> None:
    headers = {"Content-Type": content_type, "HX-Request": "true"}
    async with http.post(f"{open_site.address}/console/messages", data=BytesIO(body), headers=headers) as response:
        assert response.status == status
        assert response.content_type == "text/plain"
        assert (await response.text()).endswith(".")
    assert open_site.messages.all() == []
    assert open_site.inbox.questions == []


async def test_a_long_paste_is_asked_with_its_beginning_and_its_end(
    open_site: Site, http: aiohttp.ClientSession
) -> None:
    for length in (4_001, 200_000):
        text = f"What failed? {'x' * length} No space left on device"
        form = {"channel": "help", "text": text}
        async with http.post(
            f"{open_site.address}/console/messages", data=form, headers={"HX-Request": "true"}
        ) as response:
            assert response.status == 204, await response.text()
    whole, cut = (question.text for question in open_site.inbox.questions)
    assert (len(whole), was_cut(whole)) == (4_038, False)
    assert (len(cut), was_cut(cut)) == (MAX_MESSAGE, True)
    assert cut.startswith("What failed?")
    assert cut.endswith("No space left on device")


async def test_an_inbox_that_is_down_is_said_in_a_sentence(open_site: Site, http: aiohttp.ClientSession) -> None:
    open_site.inbox.broken = ChatUnavailable("The database is locked by another process: stop it.")
    form = {"channel": "help", "text": "hello"}
    async with http.post(
        f"{open_site.address}/console/messages", data=form, headers={"HX-Request": "true"}
    ) as response:
        assert response.status == 503
        assert await response.text() == "The database is locked by another process: stop it."
