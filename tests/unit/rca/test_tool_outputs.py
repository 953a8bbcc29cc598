from __future__ import annotations

import pytest

from core.model.incident import EvidenceKind
from core.rca.tool_outputs.clue import MAX_QUOTE, Role, ToolOutput
from core.rca.tool_outputs.conclusion import MAX_WORDS, conclude
from core.rca.tool_outputs.fields import parse_fields
from core.rca.tool_outputs.focus import stem
from core.rca.tool_outputs.reading import clues
from core.rca.tool_outputs.trouble import trouble

DESCRIBED = """Name:             {name}
Namespace:        shop
Labels:           app=cart
Status:           Running
Containers:
  web:
    Image:          web:2
    Command:
      /app/start
    State:          Waiting
      Reason:       CrashLoopBackOff
    Last State:     Terminated
      Reason:       {reason}
      Exit Code:    {code}
    Ready:          False
    Restart Count:  5
    Limits:
      memory:  64Mi
Events:
  Type     Reason   Age   From     Message
  ----     ------   ----  ----     -------
  Warning  BackOff  1m    kubelet  Back-off restarting failed container web in pod {name}
"""


def described(name: str = "cart-0", reason: str = "Error", code: int = 1) -> ToolOutput:
    text = DESCRIBED.format(name=name, reason=reason, code=code)
    return ToolOutput("kubectl_describe", {"kind": "pod", "name": name, "namespace": "shop"}, text)


def log(text: str, name: str = "cart-0") -> ToolOutput:
    return ToolOutput("logs", {"pod_name": name, "namespace": "shop"}, text)


@pytest.mark.parametrize(
    ("line", "role"),
    [
        ("ERROR could not reach the ledger: connection refused", Role.CAUSE),
        ("java.sql.SQLException: password authentication failed for user x", Role.CAUSE),
        ("level=error msg=PAYMENT_FAILED", Role.CAUSE),
        ("will retry in 5 s", Role.EFFECT),
        ('10.0.0.1 - "GET /cart HTTP/1.1" 503 12', Role.EFFECT),
    ],
)
def test_a_complaint_is_a_cause_or_what_follows_from_one(line: str, role: Role) -> None:
    found = trouble(line)
    assert found is not None
    assert found.role is role


@pytest.mark.parametrize(
    "line",
    [
        "INFO done with 0 errors",
        "offset=3, error=None",
        "GET /error-page served",
        "no errors found",
        "pod fail-over-test",
    ],
)
def test_what_only_holds_the_word_is_no_complaint(line: str) -> None:
    assert trouble(line) is None


def test_what_says_why_is_stronger_than_what_only_complains() -> None:
    why, complaint = trouble("ERROR upload failed: no space left on device"), trouble("ERROR upload failed")
    assert why is not None
    assert complaint is not None
    assert why.strength > complaint.strength


def test_fields_of_a_description_and_of_yaml_are_the_same_tree() -> None:
    plain = parse_fields("Last State:  Terminated\n  Exit Code:  137".splitlines())
    yaml = parse_fields("lastState: Terminated\n  exitCode: 137".splitlines())
    for root in (plain, yaml):
        state = root.child("laststate")
        assert state is not None
        assert state.get("exitcode") == "137"


def test_items_of_a_yaml_list_are_kept_apart() -> None:
    root = parse_fields("containers:\n- name: one\n  image: a\n- name: two\n  image: b".splitlines())
    containers = root.child("containers")
    assert containers is not None
    assert [(item.get("name"), item.get("image")) for item in containers.children] == [("one", "a"), ("two", "b")]


def test_deep_nesting_is_read_without_end() -> None:
    deep = "Name: x\nNamespace: y\n" + "".join(f"{' ' * depth}k{depth}:\n" for depth in range(3_000))
    assert clues(ToolOutput("kubectl_describe", {"name": "x"}, deep)) == []


def test_in_a_list_of_resources_each_state_belongs_to_its_own() -> None:
    item = (
        "- kind: Pod\n  metadata:\n    name: {0}\n  status:\n    containerStatuses:\n    - name: web\n"
        "      ready: false\n      lastState:\n        terminated:\n          exitCode: {1}\n          reason: Error\n"
        "      state:\n        waiting:\n          reason: CrashLoopBackOff\n"
    )
    listed = "apiVersion: v1\nkind: List\nitems:\n" + item.format("cart-0", 127) + item.format("reports-0", 139)
    found = conclude("Why does the cart crash?", [ToolOutput("kubectl_get_yaml", {"kind": "pod"}, listed)])
    assert "cart-0 exited with code 127" in found.cause


def test_a_container_out_of_memory_is_told_with_its_limit() -> None:
    found = conclude("Why does cart-0 restart?", [described(reason="OOMKilled", code=137)])
    assert "OOMKilled" in found.cause
    assert "64Mi" in found.cause
    assert any("memory:  64Mi" in evidence.quote for evidence in found.evidence)


def test_the_log_explains_a_crash_and_the_crash_is_what_follows() -> None:
    found = conclude(
        "Why does cart-0 crash?", [described(), log("boot\nfatal: open /etc/cart.yaml: permission denied\n")]
    )
    assert found.evidence[0].kind is EvidenceKind.LOG
    assert found.cause.index("permission denied") < found.cause.index("CrashLoopBackOff")


def test_the_innermost_cause_of_a_stack_trace_goes_first() -> None:
    trace = (
        "10:00:00 ERROR Start failed\norg.example.StartException: cannot start\n\tat org.example.Main.run(Main.java:3)\n"
        "Caused by: java.net.UnknownHostException: ledger-db\n\tat java.net.Inet.get(Inet.java:9)\n"
    )
    found = conclude("Why does cart-0 not start?", [log(trace)])
    assert "UnknownHostException: ledger-db" in found.cause
    assert "Caused by: java.net.UnknownHostException: ledger-db" in found.evidence[0].quote


def test_what_the_question_names_goes_before_louder_trouble_elsewhere() -> None:
    table = ToolOutput(
        "kubectl_get",
        {"namespace": "shop"},
        "NAME         READY   STATUS             RESTARTS   AGE\ncart-0       0/1     Pending            0          5m\n"
        "reports-0    0/1     OOMKilled          90         9d\n",
    )
    assert "cart-0 is Pending" in conclude("Why does the cart not come up?", [table]).cause


def test_what_an_error_speaks_of_is_looked_at_as_well() -> None:
    outputs = [
        log("ERROR cannot reach ledger: connection refused\n", "cart-0"),
        ToolOutput(
            "kubectl_get", {}, "NAME       READY   STATUS      RESTARTS   AGE\nledger-0   0/1     OOMKilled   3   5m\n"
        ),
        log("ERROR cannot write cache: disk quota exceeded\n", "reports-0"),
    ]
    found = conclude("Why does cart answer with errors?", outputs)
    assert "connection refused" in found.cause
    assert found.cause.startswith("cart-0")


def test_a_setting_that_names_what_an_error_speaks_of_is_quoted() -> None:
    manifest = ToolOutput(
        "kubectl_get_yaml",
        {"name": "cart-0"},
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: cart-0\nspec:\n  env: redis://cache:6380\n",
    )
    found = conclude("Why does cart-0 fail?", [manifest, log("ERROR dial cache:6380: connection refused\n")])
    assert "env: redis://cache:6380" in [evidence.quote for evidence in found.evidence]


def test_nothing_is_made_up_where_nothing_complains() -> None:
    calm = log("INFO started\nINFO served 12 requests, 0 errors\nWARN option x is deprecated\nINFO served 9 requests\n")
    found = conclude("Is anything wrong with cart-0?", [calm])
    assert found.cause == ""
    assert found.read


def test_without_any_answer_nothing_was_read() -> None:
    found = conclude("Why does cart-0 fail?", [ToolOutput("logs", {"pod_name": "cart-0"}, "")])
    assert (found.cause, found.evidence, found.read) == ("", (), False)


def test_documents_say_what_could_happen_and_are_no_evidence() -> None:
    page = ToolOutput("fetch", {"url": "https://wiki.example/runbook"}, "If the cart fails with connection refused, …")
    assert clues(page) == []
    assert conclude("Why does the cart fail?", [page]).evidence == ()


def test_what_a_tool_says_of_how_it_was_called_is_no_cause() -> None:
    refused = ToolOutput(
        "kubectl_previous_logs",
        {"pod_name": "cart-0"},
        'Error from server (BadRequest): previous terminated container "web" in pod "cart-0" not found',
        failed=True,
    )
    assert clues(refused) == []


def test_a_name_that_was_only_guessed_is_not_reported_missing() -> None:
    missing = ToolOutput(
        "logs", {"pod_name": "cart"}, 'Error from server (NotFound): pods "cart" not found', failed=True
    )
    there = ToolOutput(
        "kubectl_get", {}, "NAME     READY   STATUS    RESTARTS   AGE\ncart-0   1/1     Running   0   5m\n"
    )
    assert "not found" in conclude("Why does cart fail?", [missing]).cause
    assert conclude("Why does cart fail?", [missing, there]).cause == ""


def test_the_occurrence_with_the_id_of_the_question_is_quoted() -> None:
    text = "".join(f"ERROR order {number} rejected: card expired\n" for number in range(4700, 4720))
    found = conclude("Why was order 4711 rejected?", [log(text)])
    assert "order 4711" in found.evidence[0].quote


def test_slowness_is_trouble_to_who_asks_about_it() -> None:
    text = log("query took 12 ms\nquery to the price table took 4200 ms\nquery took 9 ms\n")
    assert "price table" in conclude("Why is cart-0 slow?", [text]).cause
    assert conclude("Is cart-0 well?", [text]).cause == ""


def test_quotes_are_verbatim_and_bounded_and_so_is_the_cause() -> None:
    line = "ERROR " + "x" * 900 + " failed: connection refused by ledger " + "y" * 900
    text = "\n".join(
        [line, *(f"ERROR part {word} failed: no such file" for word in ("alpha", "beta", "gamma", "delta"))]
    )
    found = conclude("Why does cart-0 fail?", [log(text)])
    assert len(found.cause.split()) <= MAX_WORDS
    for evidence in found.evidence:
        assert len(evidence.quote) <= MAX_QUOTE
        assert evidence.quote in text


def test_of_a_long_message_the_innermost_reason_is_quoted() -> None:
    message = f'Failed to pull image "{"x" * 150}": {"wrapped once more: " * 12}lookup registry.example: no such host'
    text = f"Name: cart-0\nNamespace: shop\nEvents:\n  Warning  Failed  1m  kubelet  {message}\n"
    found = conclude("Why does cart-0 not start?", [ToolOutput("kubectl_describe", {"name": "cart-0"}, text)])
    assert "no such host" in found.evidence[0].quote


def test_terminal_colours_do_not_reach_a_quote() -> None:
    found = conclude("Why does cart-0 fail?", [log("\x1b[31mERROR\x1b[0m cannot open /data: permission denied\n")])
    assert found.evidence[0].quote == "ERROR cannot open /data: permission denied"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("api-7d4b9c6f5d-x2x4z", "api"),
        ("batch-28490-b7xkq", "batch-28490"),
        ("store-0", "store-0"),
        ("price-cache", "price-cache"),
    ],
)
def test_a_generated_suffix_is_no_part_of_a_name(name: str, expected: str) -> None:
    assert stem(name) == expected


def test_a_short_complaint_is_no_repetition_only_because_a_long_one_holds_its_words() -> None:
    long = "ERROR order 17 failed: payment service refused connection to database billing on port 5432 after 3 retries"
    short = "ERROR connection to database billing refused"
    same = "ERROR order 18 failed: payment service refused connection to database billing on port 5432 after 4 retries"
    found = conclude("why do orders fail?", [log("\n".join([long, same] * 3)), ToolOutput("db_logs", {}, short)])
    quotes = [evidence.quote for evidence in found.evidence]
    assert any(quote == short for quote in quotes)
