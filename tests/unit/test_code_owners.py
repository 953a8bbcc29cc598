from __future__ import annotations

import pytest

from core.model import team as code_owners
from core.model.team import CodeOwners, _covers


def owners(text: str, path: str) -> list[str]:
    return [owner for rule in CodeOwners.parsed(text).rules_for(path) for owner in rule.owners]


def test_a_pattern_covers_what_github_says_it_covers() -> None:
    cases: list[tuple[str, str, bool]] = [
        ("*", "any/thing.py", True),
        ("*.js", "web/app/main.js", True),
        ("*.js", "web/app/main.ts", False),
        ("/build/logs/", "build/logs/today.txt", True),
        ("/build/logs/", "other/build/logs/today.txt", False),
        ("docs/*", "docs/start.md", True),
        ("docs/*", "docs/app/start.md", False),
        ("apps/", "web/apps/main.py", True),
        ("apps/", "apps", False),
        ("/docs", "docs/app/start.md", True),
        ("**/logs", "deep/down/logs/x.txt", True),
        ("**/logs", "logs/x.txt", True),
        ("/a/**/z.py", "a/b/c/z.py", True),
        ("/a/**/z.py", "a/z.py", True),
        ("/a/**", "a/b/c.py", True),
        ("/scripts/*.sh", "scripts/deep/x.sh", False),
        ("README.md", "docs/README.md", True),
        ("/src/[ab].py", "src/a.py", False),
        ("/src/[ab].py", "src/[ab].py", True),
        ("bill*", "billing/ledger/post.py", True),
        ("/bill*", "billing/post.py", True),
        ("/bill*", "old/billing/post.py", False),
        ("pay?", "pays/refund.py", True),
        ("/pay/v?", "pay/v2/api.py", True),
        ("/pay/*", "pay/v2/api.py", False),
        ("/pay/*/", "pay/v2/api.py", True),
        ("/pay/*/", "pay/readme.md", False),
        ("pay/ledger/**", "pay/ledger", False),
        ("pay/ledger/**", "pay/ledger/deep/post.py", True),
        ("**/ledger/**", "ledger", False),
        ("**", "any/thing.py", True),
        (r"/what\?.md", "what?.md", True),
        (r"/what\?.md", "whats.md", False),
        (r"all\*.py", "src/all*.py", True),
        (r"all\*.py", "src/allow.py", False),
        (r"\#notes.md", "#notes.md", True),
        (r"/our\ plans/", "our plans/a.md", True),
        ("/Pay/", "pay/a.py", False),
        ("***/pay", "x/pay", False),
    ]
    for pattern, path, covers in cases:
        assert (owners(f"{pattern} @acme/team", path) == ["@acme/team"]) is covers, (pattern, path, covers)


def test_the_last_rule_that_covers_a_path_counts() -> None:
    text = "* @acme/all\n/pay/ @acme/payments\n/pay/docs/ @acme/writers\n"
    assert owners(text, "pay/ledger.py") == ["@acme/payments"]
    assert owners(text, "pay/docs/a.md") == ["@acme/writers"]
    assert owners(text, "else.py") == ["@acme/all"]


def test_a_rule_without_owners_takes_a_path_away_from_everybody() -> None:
    assert owners("/pay/ @acme/payments\n/pay/generated/\n", "pay/generated/x.py") == []


def test_comments_blanks_in_paths_people_and_addresses_are_understood() -> None:
    text = "# whose is what\n/my\\ files/ @ana dev@acme.example # the rest is a comment @nobody\n"
    assert owners(text, "my files/x.py") == ["@ana", "dev@acme.example"]


def test_every_section_of_gitlab_has_its_own_last_rule_and_its_default_owners() -> None:
    text = "[Payments][2] @acme/payments\n/pay/\n/pay/risk/ @acme/fraud\n^[Docs] @acme/writers\n*.md\n"
    assert owners(text, "pay/ledger.py") == ["@acme/payments"]
    assert owners(text, "pay/risk/model.md") == ["@acme/fraud", "@acme/writers"]


def test_a_section_of_gitlab_never_owns_what_it_excludes_and_other_sections_do() -> None:
    text = "* @acme/all\n[Pay] @acme/payments\n/pay/\n!/pay/vendored/\n!*.lock\n/pay/vendored/ours/ @acme/payments\n"
    assert owners(text, "pay/ledger.py") == ["@acme/all", "@acme/payments"]
    assert owners(text, "pay/vendored/x.js") == ["@acme/all"]
    assert owners(text, "pay/vendored/ours/x.js") == ["@acme/all"]
    assert owners(text, "pay/poetry.lock") == ["@acme/all"]


def test_a_comment_after_a_pattern_leaves_the_section_its_default_owners() -> None:
    assert owners("[Docs] @acme/writers # since May\n*.md # all pages\n", "a/b.md") == ["@acme/writers"]


def test_a_relative_path_applies_anywhere_in_a_file_of_gitlab_and_at_the_root_in_others() -> None:
    rule = "pay/ledger/ @acme/payments\n"
    assert owners(rule, "old/pay/ledger/x.py") == []
    assert owners(f"[Pay]\n{rule}", "old/pay/ledger/x.py") == ["@acme/payments"]
    assert CodeOwners.parsed(rule, matches_below=True).rules_for("old/pay/ledger/x.py")


def test_an_exclusion_is_no_rule_of_github() -> None:
    code = CodeOwners.parsed("*.md @acme/writers\n!README.md\n", may_exclude=False)
    assert [rule.owners for rule in code.rules_for("README.md")] == [("@acme/writers",)]


def test_the_path_of_a_stack_trace_is_found_by_its_end_and_never_by_a_rule_for_everything() -> None:
    code = CodeOwners.parsed("* @acme/all\n/pay/ledger/ @acme/payments\n")
    assert [rule.pattern for rule in code.rules_for_traced("/usr/src/app/pay/ledger/post.py")] == ["/pay/ledger/"]
    assert code.rules_for_traced("/usr/lib/python3/json/decoder.py") == ()


def test_a_hostile_file_costs_no_more_than_it_is_long() -> None:
    pattern = "/" + "/".join(["**", "*a*a*a*b"] * 20)
    assert owners(f"{pattern} @x/y", "/".join(["a" * 100] * 30) + "/b") == []


def test_what_cannot_be_understood_is_left_out() -> None:
    assert CodeOwners.parsed("a***b @acme/team\n" + "x" * 400 + " @acme/team\n").rules == ()


def test_of_thousands_of_rules_only_those_are_looked_at_that_may_speak_of_a_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    areas = "\n".join(f"/area{number}/src/ @acme/team{number}" for number in range(5_000))
    code = CodeOwners.parsed(f"{areas}\nsecrets/ @acme/security\n*.md @acme/writers\n")
    looked_at: list[str] = []

    def covers(pattern: str, parts: list[str]) -> bool:
        looked_at.append(pattern)
        return _covers(pattern, parts)

    monkeypatch.setattr(code_owners, "_covers", covers)
    assert [rule.owners for rule in code.rules_for("area7/src/secrets/x.py")] == [("@acme/security",)]
    assert looked_at == ["/area7/src/", "secrets/", "*.md"]
