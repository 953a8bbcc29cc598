"""What the diff of a change takes away, adds, lowers or raises, and which failures that makes."""

from __future__ import annotations

import pytest

from core.ports import Change
from core.rca.cause_candidates import cause_candidates
from core.rca.changes import active_lines, is_inert, makes
from core.rca.explain import explain
from core.rca.failures import Kind
from core.rca.incident_signals import survey
from tests.cases import every_case
from tests.fakes.outage import change, errors, gauge, observations, traffic


def edit(
    diff: str, path: str = "src/berth.py", title: str = "Tidy up", before: float = -12, id_: str = "C-1"
) -> Change:
    made = change(id_, "shop", before, title, "deploy")
    return Change(
        **{
            **{name: getattr(made, name) for name in made.__slots__},
            "diff": f"--- a/{path}\n+++ b/{path}\n{diff}",
            "files": (path,),
        }
    )


@every_case(
    "diff",
    [
        "+# berth lookup failed: see the runbook",
        "-// old\n+// berth lookup failed",
        "+    /* berth lookup failed */",
        "+-- berth lookup failed",
        "+\n-",
        "-    a = 1\n-    b = 2\n+    b = 2\n+    a = 1",
        "-if(a){\n-b();\n+if (a) {\n+  b();",
        "-    lookup(berth)\n+\tlookup(berth),",
        '+    logger.warning("berth lookup failed: %s", berth)',
        "-    console.log(berth)\n+    console.debug(berth)",
        "-    res = lookup(berth)\n-    return res\n+    found = lookup(berth)\n+    return found",
        "-    let n = size(x);\n-    use(n);\n+    let count = size(x);\n+    use(count);",
        "-    check(a)\n-    use(a)\n+    prepare(a)\n+def prepare(a):\n+    check(a)\n+    use(a)",
        '-    raise ValueError("no berth")\n+    raise ValueError(f"no berth {berth} at {pier}")',
        '-    return errors.New("lookup")\n+    return errors.New("lookup of " + berth)',
        "+def test_no_berth():\n+    assert lookup(None) is None",
        "+func TestNoBerth(t *testing.T) {\n+\tlookup(nil)\n+}",
    ],
)
def test_an_edit_that_cannot_change_behaviour_is_inert(diff: str) -> None:
    assert is_inert(edit(diff))


def test_what_gives_more_room_did_not_bring_about_that_there_is_too_little() -> None:
    pool = errors("shop", "QueuePool limit of size 4 reached, connection pool exhausted", -10.5)
    more = edit("-pool_max_size: 4\n+pool_max_size: 40", title="Give QueuePool more room")
    less = edit("-pool_max_size: 40\n+pool_max_size: 4", title="Save sessions", id_="C-2")
    for changes in ([more, less], [less, more]):
        found, _ = explain(observations([traffic("shop"), pool], [], changes))
        assert found.cause is not None
        assert found.cause.change is not None
        assert found.cause.change.id == "C-2"


@every_case("path", ["docs/berth.md", "tests/test_berth.py", "src/berth_test.go", "web/berth.spec.ts", "README.rst"])
def test_documents_and_tests_are_inert(path: str) -> None:
    assert is_inert(edit("+    lookup(berth).failed = True", path))


@every_case(
    "diff",
    [
        "-    lookup(berth)",
        "+#include <berth.h>",
        "-    found = lookup(berth)\n+    found = search(berth)",
        "-    raw['berth']\n+    raw['quay']",
        "-    a.berth = 1\n+    a.quay = 1",
        "-    return limit\n+    return offset",
        '+    log.fatal("no berth")',
        "-    res = a\n-    out = b\n+    res = b\n+    out = a",
        "-max_size: 40\n+max_size: 4",
    ],
)
def test_an_edit_that_changes_behaviour_is_active(diff: str) -> None:
    assert not is_inert(edit(diff))
    assert active_lines(edit(diff).diff)


@every_case(
    ("diff", "kind"),
    [
        ("-pool.max: 50\n+pool.max: 10", Kind.POOL),
        ("-limits: {memory: 2Gi}\n+limits: {memory: 300Mi}", Kind.MEMORY),
        ("-timeout_ms: 3000\n+timeout_ms: 30", Kind.TIMEOUT),
        ("-POLL_SECONDS = 60\n+POLL_SECONDS = 1", Kind.LOAD),
        ("-retries: 2\n+retries: 20", Kind.LOAD),
        ("-    if berth is None: return", Kind.CODE),
        ("-    registry.register(BerthHandler)", Kind.MISSING),
        ("-    route('/v1/berths', list_berths)", Kind.MISSING),
        ("-    conn.close()", Kind.POOL),
        ("-    @cached(ttl=300)", Kind.LOAD),
        ("-  - role: reader", Kind.ACCESS),
        ("+DROP INDEX idx_berth;", Kind.TIMEOUT),
        ("+CREATE INDEX idx_berth ON berths (quay);", Kind.LOCK),
        ("+ALTER TABLE berths DROP COLUMN quay;", Kind.SCHEMA),
        ("+    rows = [fetch(each) for each in ids]", Kind.LOAD),
        ("-berth.url: http://a.internal\n+berth.url: http://b.internal", Kind.NAME),
    ],
)
def test_a_directed_edit_makes_its_kind_of_failure(diff: str, kind: Kind) -> None:
    assert kind in makes(edit(diff))


@every_case(
    ("diff", "kind"),
    [
        ("-pool.max: 10\n+pool.max: 50", Kind.POOL),
        ("-timeout_ms: 30\n+timeout_ms: 3000", Kind.TIMEOUT),
        ("-POLL_SECONDS = 1\n+POLL_SECONDS = 60", Kind.LOAD),
        ("-retries: 20\n+retries: 2", Kind.LOAD),
        ("+    conn.close()", Kind.POOL),
        ("+  - role: reader", Kind.ACCESS),
        ("+    @cached(ttl=300)", Kind.LOAD),
    ],
)
def test_the_same_edit_in_the_other_direction_does_not(diff: str, kind: Kind) -> None:
    assert kind not in makes(edit(diff))


@pytest.mark.parametrize(
    ("said", "culprit", "decoy"),
    [
        (
            "pool exhausted: pool.max=10, no free connection for berth",
            "-  pool.max: 50\n+  pool.max: 10",
            "-    pool = take(berth)\n-    exhausted(pool)\n+    connection = take(berth)\n+    exhausted(connection)",
        ),
        (
            "no handler registered for BerthMoved",
            "-    registry.register(BerthMoved, on_moved)",
            "+    # the handler registered for BerthMoved is found here",
        ),
        (
            "KeyError: 'quay' is missing in berth",
            '-    "quay": berth.quay,\n+    "quay_code": berth.quay,',
            "-    check(quay)\n-    missing(berth)\n+    missing(berth)\n+    check(quay)",
        ),
    ],
)
def test_the_edit_whose_direction_fits_comes_before_one_that_only_speaks_of_it(
    said: str, culprit: str, decoy: str
) -> None:
    changes = [
        edit(culprit, before=-14, id_="C-1"),
        edit(decoy, before=-10.7, id_="C-2", title=f"Refactor: {said}"),
    ]
    failing = gauge("shop", "error_ratio", lambda offset: 0 if offset < -10 else 30)
    seen = observations([traffic("shop"), errors("shop", said, -10.5)], [failing], changes)
    first = cause_candidates(survey(seen), seen)[0]
    assert first.change is not None
    assert first.change.id == "C-1"


@pytest.mark.parametrize("diff", ["+# the pool request timed out", "-    a()\n-    b()\n+    b()\n+    a()", "+\n-"])
def test_an_inert_edit_is_ruled_out_by_its_diff(diff: str) -> None:
    changes = [edit(diff, before=-11, title="The pool request timed out")]
    seen = observations([traffic("shop"), errors("shop", "pool request timed out", -10.5)], [], changes)
    found, _ = explain(seen)
    assert found.cause is None or found.cause.change is None
    assert any("it changes only comments, logging, tests, documents or formatting" in line for line in found.ruled_out)
