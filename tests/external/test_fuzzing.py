"""Anything may come in at any door: never a 5xx, never a traceback, never half of anything in the database.

PLUMBLINE_FUZZ_EXAMPLES says how many requests are made in all, and how many documents are damaged: 2 000 unless it says
otherwise; `make fuzz` makes 100 000.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from math import ceil
from pathlib import Path

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from bot.web.webhook_sources import describe
from tests.damaged_documents import damaged_documents_read
from tests.external.fuzzed_bot import AUTHORISED, JSON, TIMEOUT, Answer, FuzzedBot, fuzzed_bot
from tests.external.inbound_formats.changes import FORM
from tests.external.inbound_formats.console import addresses, forms
from tests.external.inbound_formats.headers import headers
from tests.external.inbound_formats.slack import slack_requests
from tests.external.inbound_formats.teams import teams_bodies
from tests.external.inbound_formats.webhooks import WEBHOOKS
from tests.scenario.application import TOKEN

pytestmark = pytest.mark.external

EXAMPLES = int(os.environ.get("PLUMBLINE_FUZZ_EXAMPLES", "2000"))
SECRET = {"Authorization": f"Bearer {TOKEN}"}
DESCRIPTION = describe()
OPERATIONS = sum(method in {"get", "post"} for operations in DESCRIPTION["paths"].values() for method in operations)
DESCRIBED = 0.2  # as many again, as a share, are made from the description
STRATEGIES = len(WEBHOOKS) + 5
LEFT_OUT = "^/(console/live|readyz)$"  # one does not end, the other misses the work that was left out


@pytest.fixture(scope="module")
def bot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FuzzedBot]:
    with fuzzed_bot(tmp_path_factory.mktemp("fuzzed")) as running:
        yield running


def _fuzzed(share: float) -> settings:
    """This share of all examples, the same ones each time unless somebody asks for more of them."""
    return settings(
        max_examples=ceil(EXAMPLES * share),
        deadline=None,
        derandomize=EXAMPLES <= 2_000,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
    )


OWN = _fuzzed(1 / STRATEGIES)


@pytest.mark.parametrize("name", WEBHOOKS)
def test_a_webhook(bot: FuzzedBot, name: str) -> None:
    source, bodies = WEBHOOKS[name]

    @OWN
    @given(bodies)
    def taken_or_refused(body: bytes) -> None:
        answer = bot.checked(bot.send("POST", f"/webhooks/{source}", body, SECRET | {"Content-Type": JSON}))
        assert answer.status in {202, 400, 413}

    taken_or_refused()


def test_a_request_of_slack(bot: FuzzedBot) -> None:
    @OWN
    @given(slack_requests())
    def taken_or_refused(request: tuple[bytes, dict[str, str]]) -> None:
        body, headers = request
        assert bot.checked(bot.send("POST", "/slack/events", body, headers)).status in {200, 400, 401, 413}

    taken_or_refused()


def test_an_activity_of_teams(bot: FuzzedBot) -> None:
    @OWN
    @given(teams_bodies)
    def taken_or_refused(body: bytes) -> None:
        answer = bot.checked(bot.send("POST", "/api/messages", body, {"Content-Type": JSON}))
        assert answer.status in {200, 202, 400, 401, 413}

    taken_or_refused()


def test_a_form_of_the_local_page(bot: FuzzedBot) -> None:
    @OWN
    @given(forms)
    def taken_or_refused(form: tuple[str, bytes]) -> None:
        path, body = form
        bot.checked(bot.send("POST", path, body, AUTHORISED | {"Content-Type": FORM}))

    taken_or_refused()


def test_an_address(bot: FuzzedBot) -> None:
    @OWN
    @given(addresses(), st.sampled_from(["GET", "GET", "HEAD", "POST", "PUT", "OPTIONS"]))
    def shown_or_refused(address: str, method: str) -> None:
        bot.checked(bot.send(method, address, b"", AUTHORISED))

    shown_or_refused()


def test_headers(bot: FuzzedBot) -> None:
    doors = ["/webhooks/alertmanager", "/webhooks/pagerduty", "/slack/events", "/api/messages", "/console/messages"]

    @OWN
    @given(st.sampled_from(doors), headers, st.sampled_from([b"", b"{}", b"channel=help&text=x", b"\x1f\x8b"]))
    def taken_or_refused(path: str, headers: dict[str, str], body: bytes) -> None:
        bot.checked(bot.send("POST", path, body, headers))

    taken_or_refused()


schema = schemathesis.openapi.from_dict(DESCRIPTION).exclude(path_regex=LEFT_OUT)


session = requests.Session()


@schema.parametrize()
@_fuzzed(DESCRIBED / OPERATIONS)
def test_what_is_made_from_the_description(case: schemathesis.Case, bot: FuzzedBot) -> None:
    response = case.call(
        base_url=bot.address.rstrip("/"), headers=AUTHORISED, session=session, timeout=TIMEOUT, allow_redirects=False
    )
    headers = {name.title(): values[0] for name, values in response.headers.items()}
    bot.checked(Answer(response.status_code, headers, response.content))
    case.validate_response(response, checks=[status_code_conformance, response_schema_conformance])


async def test_documents(tmp_path: Path) -> None:
    report = await damaged_documents_read(tmp_path, range(EXAMPLES))
    left_out = sum(map(len, report.left_out.values()))
    sys.stdout.write(f"{EXAMPLES} files: {report.added} documents indexed, {left_out} left out.\n")


def test_as_many_requests_were_made_as_were_asked_for(bot: FuzzedBot) -> None:
    sys.stdout.write(f"{bot.checks} requests were made.\n")
    assert bot.checks >= EXAMPLES
