"""The contract of SecretDetector, and the formats that the real one knows."""

from __future__ import annotations

import random
import string

from hypothesis import given
from hypothesis import strategies as st

from adapters.secret_detector import SecretPatterns
from tests.cases import every_case
from tests.secret_lines import INNOCENT, PARTS, SECRETS, innocent_lines, measured, secret_lines

DETECTOR = SecretPatterns()
LETTERS = string.ascii_letters + string.digits


# Some kinds are no secret in some places: a password of plain letters below a heading is like a sentence's word.
MISSED = {"kinds and places": 0.065, "held-out places": 0.1}


def some(length: int, characters: str = LETTERS) -> str:
    return "".join(random.Random(length).choices(characters, k=length))


def found(text: str) -> list[str]:
    return [text[start:end] for start, end in DETECTOR.find(text)]


@given(st.text(alphabet="pastoken: =\"'`/@-_x7A\n", max_size=120))
def test_what_is_found_is_in_order_within_the_text_and_does_not_overlap(text: str) -> None:
    spans = DETECTOR.find(text)
    bounds = [bound for span in spans for bound in span]
    assert bounds == sorted(bounds)
    assert all(0 <= start < end <= len(text) for start, end in spans)


@every_case(
    "secret",
    [
        f"AKIA{some(16, string.ascii_uppercase)}",
        f"ghp_{some(36)}",
        f"glpat-{some(20)}",
        f"xoxb-{some(11, string.digits)}-{some(24)}",
        f"sk_live_{some(24)}",
        f"eyJ{some(30)}.eyJ{some(40)}.{some(43)}",
        f"-----BEGIN EC PRIVATE KEY-----\n{some(64)}\n{some(60)}\n-----END EC PRIVATE KEY-----",
    ],
)
def test_a_known_format_is_found_whole_wherever_it_stands(secret: str) -> None:
    for text in (secret, f"use {secret}", f"a\n\n  key: {secret}\nb", f"`{secret}`,", f"({secret})"):
        assert found(text) == [secret], text


def test_a_key_whose_end_is_missing_is_taken_out_to_the_end() -> None:
    key = f"-----BEGIN PRIVATE KEY-----\n{some(64)}"
    assert found(f"x {key}") == [key]


def test_a_secret_far_down_a_long_text_is_found() -> None:
    secret = f"ghp_{some(36)}"
    text = f"{'word ' * 5_000}{secret}{' word' * 5_000}"
    assert found(text) == [secret]


def test_more_than_one_in_a_line_is_found() -> None:
    assert found("password=Otter-12 token=u7Hh2kd93jf8dk2l") == ["Otter-12", "u7Hh2kd93jf8dk2l"]


def test_what_only_looks_like_one_is_left_alone() -> None:
    cases: list[str] = [
        "the password is wrong",
        "password: ${DB_PASSWORD}",
        "token: {{ vault.token }}",
        "secret: /run/secrets/db",
        "disk-pressure-eviction-threshold-exceeded-on-node",
        "commit 4f1d2c9a8be07355d19c2e9f0f4f7d1b3f6b2a11",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "--initial-cluster-token etcd-cluster-1",
        "boarding-pass issue: f5346856",
        "PASS: TestRemoteWrite/prometheus/Gauge",
        'topologyKey: "kubernetes.io/hostname"',
    ]
    for text in cases:
        assert found(text) == [], text


@every_case("part", PARTS)
def test_nearly_every_form_of_a_secret_is_found_and_hardly_an_innocent_line_is_touched(part: str) -> None:
    missed, touched = measured(DETECTOR.find, part)
    assert len(secret_lines(part)) >= SECRETS
    assert len(innocent_lines(part)) == INNOCENT
    assert len(missed) <= MISSED.get(part, 0.05) * len(secret_lines(part)), missed
    assert len(touched) <= INNOCENT / 200, touched


def test_a_value_beside_a_word_for_a_secret_is_found_in_any_place() -> None:
    cases: list[tuple[str, str]] = [
        ("    client-key-data: {}", f"LS0t{some(90)}=="),
        ("Cookie: lang=en; session={}", some(34)),
        ("curl -b 'sid={}' https://a.example", some(34)),
        ("git clone https://{}:x-oauth-basic@git.example/a.git", some(40)),
        ("## Root password\n\n{}\n", "Otter#4711"),
        ("Deploy token\n{}\n\nContact", some(26)),
        ("<b>Password</b><br>{}", "Otter-4711"),
        ("<p><strong>API key:</strong> <code>{}</code></p>", some(32)),
        ("password\t{}", "Otter-4711"),
        ("host,user,password\na.example,ops,{}\nb.example,,", "Otter-4711"),
        ("login('ops', '{}')", "Otter-4711"),
        ('os.getenv("API_TOKEN", "{}")', some(32)),
        ("vault login {}", f"s.{some(24)}"),
        ("mysql -p{} -u root shop", "Otter-4711"),
        ("docker login -p {} -u ops registry.example", "Otter-4711"),
        ("newtool connect -u ops -w {}", "Otter#4711"),
        ("the deploy token for staging is now {}", some(30)),
        ("creds are ops:{}", "Otter-4711"),
        ("left in the log: {}", f"newvendor-{some(48)}"),
        ("NEWVENDOR={}", f"nv2_pat_{some(40)}"),
    ]
    for text, secret in cases:
        assert found(text.format(secret)) == [secret], (text, secret)


def test_a_secret_in_two_rows_of_a_table_is_found_in_both() -> None:
    row = "| ops | Otter-1234 |\n"
    assert found(f"| User | Password |\n|---|---|\n{row}{row}") == ["Otter-1234"] * 2


def test_the_cells_below_a_heading_that_calls_them_secret_are_found_and_the_others_are_not() -> None:
    table = "| Host | Password | Port |\n| :--- | --- | ---: |\n| a.example | Otter-1234 | 5432 |\n| b.example | see Vault | 5433 |"
    assert found(f"Logins\n\n{table}\n\nOtter-1234 | x") == ["Otter-1234"]


def test_a_password_of_letters_is_found_where_nothing_else_can_follow_and_not_in_a_sentence() -> None:
    assert found("password: swordfish") == ["swordfish"]
    assert found('{"password": "swordfish", "port": 1}') == ["swordfish"]
    assert found("password: swordfish is what the docs say") == []
    assert found("password: required") == []


@every_case(
    "table",
    [
        "| Host | Password |\n| --- | --- |\n| a.example | {} |\n| b.example | {} |\n| c.example | see Vault |",
        "||Host||PW||\n|a.example|{}|\n|b.example|{}|\n|c.example|in 1Password|",
        "host\tcred\na.example\t{}\nb.example\t{}\nc.example\t${{VAULT}}\n",
        "host;mot de passe\na.example;{}\nb.example;{}\nc.example;required",
        "Recovery codes for the bot:\n- {}\n- {}\n- required\n",
    ],
)
def test_below_a_heading_every_value_goes_if_one_looks_like_a_secret(table: str) -> None:
    assert found(table.format("Quince-12!", "rack-B-north")) == ["Quince-12!", "rack-B-north"]
    assert found(table.format("string", "optional")) == []


def test_a_word_that_is_made_like_a_password_is_found_where_the_text_speaks_of_one() -> None:
    cases: list[tuple[str, str]] = [
        ("Mot de passe provisoire du portail : {}", "Orage-51Brume"),
        ("wachtwoord van de gateway: {}", "Zeewolf-72Dijk"),
        ("Lösenord till skrivaren är {}", "Björn-88Älg"),
        ("Hasło do routera: {}", "Wrona_7Most"),
        ("Passwort lautet: {}", "Wer?wie?Wann5"),
        ("I changed the password for the scanner to {} this morning", "Birke&Ahorn31"),
        ("when prompted enter {} and press return", "Tann3nzapfen"),
        ("Failed password for invalid user {} from 10.0.0.8 port 5022 ssh2", "Reg3n-Wolke"),
        ("ops@web01:~$ {}\n-bash: Salz: command not found", "Salz&Ufer1987"),
        ("## Root password (rescue system)\n\n    {}\n\nChanged in May", "R4-quince-Förde-9"),
    ]
    for text, secret in cases:
        assert found(text.format(secret)) == [secret], (text, secret)


def test_a_name_a_version_or_an_address_in_such_a_place_is_left_alone() -> None:
    cases: list[str] = [
        "enter the name of the Ubuntu-22.04 host when prompted",
        "the password of PostgreSQL-14 is hashed with SCRAM-SHA-256",
        "reset the counter at 2026-03-04T10:00:01Z",
        "log in to https://a.example/Page-1",
        "the password is read by com.acme.OAuth2.TokenV2",
        "login to the [GCP console][link-12]",
        "ops@web01:~$ ./deploy-Web1.sh",
        "| Flow | Password |\n| --- | --- |\n| a | supported |\n| b | unsupported |",
        "Tokens\nfirst-item\nsecond-item\n",
        "please unlock and reset my password_x000D_\n",
    ]
    for text in cases:
        assert found(text) == [], text


def test_a_value_with_marks_in_groups_or_in_part_is_found_whole() -> None:
    cases: list[tuple[str, str]] = [
        ("https://a.example/cb?key=AB12&token={}&x=1", some(32)),
        ("SECRET_KEY = '{}'", "w(3q^9zk)r!t7&v0x$m2"),
        ("- name: CACHE_AUTH\n  value: {}", some(48, "0123456789abcdef")),
        ('<machineKey validationKey="{}" />', some(64, "0123456789ABCDEF")),
        ("db.example:5432:shop:ops:{}", "Aal7\\:dorade"),
        ("setup key: {}", "GK4A XN5N HIDI NSFV FPBK TCPF"),
        ("Key 1: {}", some(44)),
        ("$ vault kv get -field=value kv/ops/bmc\n{}\n", some(20)),
        ("{}-----", f"{some(64)}\n{some(64)}\n{some(20)}==\n-----END EC PRIVATE KEY"),
    ]
    for text, secret in cases:
        assert found(text.format(secret)) == [secret], (text, secret)


def test_more_of_a_line_is_searched_after_a_value() -> None:
    assert found('<a password="Otter-12"/><b token="u7Hh2kd93jf8dk2l"/>') == ["Otter-12", "u7Hh2kd93jf8dk2l"]


def test_of_several_manifests_only_the_values_of_secrets_are_found() -> None:
    secret = "apiVersion: v1\ndata:\n  url: YWJjZGVm\n  user: {{ .user }}\nkind: Secret\n"
    assert found(
        f"kind: ConfigMap\ndata:\n  level: debug-12\n---\n{secret}---\nkind: ConfigMap\ndata:\n  a: debug-12\n"
    ) == ["YWJjZGVm"]


def test_each_command_of_a_line_is_read_with_its_own_options() -> None:
    assert found("docker login registry.example && docker run -p 8080:80 web") == []
    assert found("curl -u ops:Otter-12 https://a.example | mysql -pOtter-34 x") == ["Otter-12", "Otter-34"]


def test_a_heading_is_no_password() -> None:
    assert found("| User | Password | Location |\n| --- | --- | --- |\n| ops | in Vault | eu |") == []
