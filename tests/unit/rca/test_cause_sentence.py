"""The cause in a sentence, from whatever parts there are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.ports import Change
from core.rca.changes import ChangedSetting, Revision
from core.rca.explain import explain
from core.rca.wording import telling_setting, with_person
from tests.fakes.outage import change, errors, gauge, incident, observations, traffic

ORDINARY = [traffic(service) for service in ("shop", "cart", "login", "stock", "vault")]
PENDING = gauge("shop", "pool_pending", lambda offset: 0 if offset < -10 else 30)
DIFF = change(
    "C-1", "shop", -11, "shop: new layout", "config", "Keys sorted. Diff: pool.maximumSize 40 -> 4, log.out a -> a"
)


def cause(made: Change) -> str:
    found, _ = explain(observations([*ORDINARY, errors("shop", "pool request timed out", -10.5)], [PENDING], [made]))
    assert found.cause is not None
    return found.cause.cause


def test_it_says_who_set_what_to_what_and_which_metric_followed() -> None:
    said = cause(DIFF)
    assert said.startswith("`pool.maximumSize` of shop was lowered from 40 to 4 at 09:19 (C-1); ")
    assert "pool_pending rose from 0 to 30" in said
    assert "timed out" not in said, "a metric says more than a line of a log"


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("deploy", "“new layout” was deployed to shop at 09:19 (C-1); "),
        ("rotation", "“new layout” rotated a key of shop at 09:19 (C-1); "),
        ("experiment", "“new layout” made a change (experiment) to shop at 09:19 (C-1); "),
    ],
)
def test_without_a_setting_it_says_what_was_done(kind: str, told: str) -> None:
    assert cause(replace(DIFF, kind=kind, detail="")).startswith(told)


def test_a_sign_that_is_the_setting_itself_does_not_follow_from_it() -> None:
    size = gauge("shop", "pool_size", lambda offset: 40 if offset < -11 else 4)
    found, _ = explain(observations([*ORDINARY, errors("shop", "timed out", -10.5)], [size, PENDING], [DIFF]))
    assert found.cause is not None
    assert "pool_pending rose from 0 to 30" in found.cause.cause
    assert "pool_size" not in found.cause.cause


@pytest.mark.parametrize(
    ("service", "told"),
    [
        ("shop", "cart is in trouble, and shop depends on it; "),
        ("stock", "cart is in trouble, and it depends on stock; "),
        ("elsewhere", "cart is in trouble; "),
    ],
)
def test_a_dependency_is_told_as_the_graph_has_it(service: str, told: str) -> None:
    struck = incident(service=service, title=f"{service} is slow")
    trouble = [errors("cart", "basket cannot be read", -8), errors("cart", "no answer", -7)]
    found, _ = explain(observations([*ORDINARY, *trouble], of=struck))
    assert found.cause is not None
    assert found.cause.cause.startswith(told)


def test_a_flag_is_switched() -> None:
    said = cause(replace(DIFF, kind="flag", title="new-pool: off -> on", detail=""))
    assert said.startswith("`new-pool` of shop was switched from off to on at 09:19 (C-1); ")


def test_the_end_of_a_sentence_is_no_part_of_a_value() -> None:
    assert "from 40 to 4 at" in cause(replace(DIFF, detail="Diff: pool.maximumSize 40 -> 4."))


@pytest.mark.parametrize("made", [DIFF, replace(DIFF, detail=""), replace(DIFF, kind="deploy", detail="")])
def test_a_person_is_named_last_and_only_if_the_evidence_is_strong(made: Change) -> None:
    found, _ = explain(observations([*ORDINARY, errors("shop", "pool request timed out", -10.5)], [PENDING], [made]))
    assert found.cause is not None
    assert "Asha" not in found.cause.cause
    assert "(C-1, by Asha); " in with_person(found.cause, str).cause
    assert "(C-1, by [name]); " in with_person(found.cause, lambda _: "[name]").cause


def test_a_change_without_an_author_names_nobody() -> None:
    found, _ = explain(observations([*ORDINARY], [PENDING], [replace(DIFF, author="")]))
    assert found.cause is not None
    assert with_person(found.cause, str) == found.cause


@pytest.mark.parametrize(
    ("diff", "told"),
    [
        (
            "-    with pool.lease(): work()\n+    # pool is full\n+    pool.lock(basket)",
            "removed `with pool.lease(): work()` and added `pool.lock(basket)`",
        ),
        ("+    # the pool request timed out\n+\n+    pool.lock()", "added `pool.lock()`"),
        ("-  pool.release()\n-\n   return", "removed `pool.release()`"),
        (f"-  pool.release('{'x' * 99}')", f"removed `pool.release('{'x' * 65}…`"),
    ],
)
def test_the_line_that_is_shown_changes_something(diff: str, told: str) -> None:
    said = cause(replace(DIFF, kind="commit", title="Tidy up", detail="", diff=diff))
    assert said.startswith(f"“Tidy up” changed the code of shop at 09:19 (C-1): it {told}; ")


def test_the_title_stays_whole_beside_the_detail_that_says_more() -> None:
    title = "Give every harbour its own timetable service and let the desk choose between the new and the old one"
    said = cause(replace(DIFF, title=title, detail="The pool request was timed. Nothing else."))
    assert said.startswith(f"“{title}” changed the configuration of shop at 09:19 (C-1): The pool request was timed; ")


def test_an_arrow_in_a_sentence_is_no_setting() -> None:
    said = cause(replace(DIFF, title="Key rotated: key-01 -> key-02", detail="commit 2f41c7e -> 9b03d51"))
    assert said.startswith("“Key rotated: key-01 -> key-02” changed the configuration of shop at 09:19 (C-1); ")


@pytest.mark.parametrize("length", [10, 40])
def test_a_log_message_is_cut_to_its_beginning_and_its_end_which_says_why(length: int) -> None:
    long = errors("shop", "pool request timed out " + "while waiting for it " * length + "as the pool is closed", -10.5)
    found, _ = explain(observations([*ORDINARY, long], [], [replace(DIFF, detail="")]))
    assert found.cause is not None
    assert "; at once shop logged a new error 126 times, “pool request timed out" in found.cause.cause
    assert "as the pool is closed" in found.cause.cause
    assert len(found.cause.cause) < 260


def test_a_setting_is_read_from_a_diff() -> None:
    diff = "--- a/shop.yaml\n+++ b/shop.yaml\n@@ -1,4 +1,4 @@\n pool:\n-  maximumSize: 40\n-  name: 'shop'\n+  maximumSize: 4\n+  name: shop\n"
    bare = replace(DIFF, detail="", diff=diff)
    assert telling_setting(Revision(bare, bare.at, {}), ()) == ChangedSetting("maximumSize", "40", "4")
    assert telling_setting(Revision(replace(bare, diff=""), bare.at, {}), ()) is None
