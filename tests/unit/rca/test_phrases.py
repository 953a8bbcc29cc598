"""Phrases of `knowledge.toml`: the spellings of the same words that a program may choose."""

from __future__ import annotations

from core.rca.failures import FAULTS, Kind, kinds_of, trouble
from tests.cases import every_case

SPELLINGS = {
    "java.lang.OutOfMemoryError": Kind.MEMORY,
    "status OUT_OF_MEMORY": Kind.MEMORY,
    "out-of-memory: killed process 12": Kind.MEMORY,
    "System.Net.ConnectionRefusedException": Kind.NETWORK,
    "CONNECTION_REFUSED by 10.0.0.7": Kind.NETWORK,
    "connection to redis:6379 has been refused": Kind.NETWORK,
    "code = DeadlineExceeded": Kind.TIMEOUT,
    "java.net.SocketTimeoutException: after 5 s": Kind.TIMEOUT,
    "the request timed out": Kind.TIMEOUT,
    "System.IO.FileNotFoundException": Kind.MISSING,
    "PermissionDenied for reader": Kind.ACCESS,
    "the disk is full": Kind.DISK,
    "the pool of connections is now exhausted": Kind.POOL,
}


@every_case("line", SPELLINGS)
def test_a_phrase_is_recognised_in_every_spelling_of_its_words(line: str) -> None:
    report = trouble(line)
    assert report is not None
    assert report.is_cause
    assert SPELLINGS[line] in kinds_of(line)


@every_case(
    "line",
    [
        "readTimeout=5",
        "maxRetries 10",
        "errorCount 3",
        "list.isEmpty()",
        "GET /error-page",
        "badge updated",
        "payment_failed_total 3",
    ],
)
def test_words_within_other_names_report_nothing(line: str) -> None:
    assert trouble(line) is None


@every_case(
    ("fault", "line", "name"),
    [
        ("DNS", "Error: getaddrinfo ENOTFOUND be-orders", "be-orders"),
        ("DNS", "Error: querySrv ENOTFOUND _mongodb._tcp.orders.example.net", "_mongodb._tcp.orders.example.net"),
        ("DNS", "dial tcp: lookup a.shop.svc on 10.0.0.2:53: no such host", "a.shop.svc"),
        ("DNS", 'could not translate host name "the-db" to address', "the-db"),
        ("DNS", "java.net.UnknownHostException\n\tat java.net.Inet.get(Inet.java:9)", None),
        ("ROUTE", 'host not found in upstream "an-api:8080"', "an-api"),
        ("ACCOUNT", 'error looking up: serviceaccount "is-runner" not found', "is-runner"),
    ],
)
def test_the_name_in_a_phrase_is_whole_and_on_its_line(fault: str, line: str, name: str | None) -> None:
    matches = (match for saying in FAULTS[fault].says if (match := saying.words.search(line)))
    assert next((match["x"] for match in matches if "x" in match.groupdict()), None) == name
