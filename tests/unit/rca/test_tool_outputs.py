from __future__ import annotations

import pytest

from core.model.findings import EvidenceKind, Hypothesis
from core.rca.cluster.reading import read
from core.rca.cluster.state import stem
from core.rca.explain import explain
from core.rca.failures import trouble
from core.rca.log_lines import MAX_QUOTE
from core.rca.tool_outputs import ToolOutput
from tests.benchmarks.rca_engines import observed
from tests.cases import every_case

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


def causes(question: str, *outputs: ToolOutput) -> tuple[Hypothesis, ...]:
    return explain(observed(question, outputs))[0].hypotheses


def cause(question: str, *outputs: ToolOutput) -> Hypothesis:
    """Return the stated cause, which there has to be."""
    found = causes(question, *outputs)
    assert found
    return found[0]


@every_case(
    ("line", "is_cause"),
    [
        ("ERROR could not reach the ledger: connection refused", True),
        ("java.sql.SQLException: password authentication failed for user x", True),
        ("level=error msg=PAYMENT_FAILED", True),
        ("will retry in 5 s", False),
        ('10.0.0.1 - "GET /cart HTTP/1.1" 503 12', False),
    ],
)
def test_a_complaint_is_a_cause_or_what_follows_from_one(line: str, is_cause: bool) -> None:
    found = trouble(line)
    assert found is not None
    assert found.is_cause is is_cause


@every_case(
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


def test_deep_nesting_is_read_without_end() -> None:
    deep = "Name: x\nNamespace: y\n" + "".join(f"{' ' * depth}k{depth}:\n" for depth in range(1_200))
    assert causes("Why?", ToolOutput("kubectl_describe", {"name": "x"}, deep)) == ()


ITEM = """- kind: Pod
  metadata:
    name: {0}
    uid: {0}
  status:
    phase: Running
    containerStatuses:
    - name: web
      ready: false
      lastState:
        terminated:
          exitCode: {1}
          reason: Error
      state:
        waiting:
          reason: CrashLoopBackOff
  spec:
    containers:
    - name: web
"""


def test_in_a_list_of_resources_each_state_belongs_to_its_own() -> None:
    listed = "apiVersion: v1\nkind: List\nitems:\n" + ITEM.format("cart-0", 127) + ITEM.format("reports-0", 139)
    found = cause("Why does the cart crash?", ToolOutput("kubectl_get_yaml", {"kind": "pod"}, listed))
    assert found.service == "cart"
    assert "exit code 127" in found.cause
    assert "139" not in found.cause


def test_a_container_out_of_memory_is_told_with_its_limit() -> None:
    found = cause("Why does cart-0 restart?", described(reason="OOMKilled", code=137))
    assert "OOMKilled" in found.cause
    assert "64Mi" in found.cause
    assert any("Reason:       OOMKilled" in each.quote for each in found.evidence)


@pytest.mark.parametrize("between", ["", "Init Containers:\n"])
def test_a_container_of_several_is_named(between: str) -> None:
    app = f"Containers:\n  app:\n    State:  Running\n    Ready:  True\n    Restart Count:  0\n{between}"
    text = DESCRIBED.format(name="cart-0", reason="OOMKilled", code=137).replace("Containers:\n", app)
    found = cause("Why does cart-0 restart?", ToolOutput("kubectl_describe", {"name": "cart-0"}, text))
    assert f"the {'init ' if between else ''}container web" in found.cause
    assert "was OOMKilled" in found.cause


def test_the_log_explains_a_crash_and_the_crash_is_what_follows() -> None:
    found = cause("Why does cart-0 crash?", described(), log("boot\nfatal: open /etc/cart.yaml: permission denied\n"))
    assert "permission denied" in found.cause
    assert any(each.kind is EvidenceKind.LOG and "permission denied" in each.quote for each in found.evidence)


def test_the_innermost_cause_of_a_stack_trace_is_told() -> None:
    trace = (
        "10:00:00 ERROR Start failed\norg.example.StartException: cannot start\n\tat org.example.Main.run(Main.java:3)\n"
        "Caused by: java.net.UnknownHostException: ledger-db\n\tat java.net.Inet.get(Inet.java:9)\n"
    )
    found = cause("Why does cart-0 not start?", log(trace))
    assert "ledger-db" in found.cause
    assert "Caused by: java.net.UnknownHostException: ledger-db" in "\n".join(each.quote for each in found.evidence)


def test_what_the_question_names_goes_before_louder_trouble_elsewhere() -> None:
    table = ToolOutput(
        "kubectl_get",
        {"namespace": "shop"},
        "NAME         READY   STATUS             RESTARTS   AGE\ncart-0       0/1     Error              9          5m\n"
        "reports-0    0/1     OOMKilled          90         9d\n",
    )
    assert cause("Why does the cart not come up?", table).service == "cart"
    assert cause("Why do reports not come up?", table).service == "reports"


def test_what_an_error_speaks_of_is_looked_at_as_well() -> None:
    outputs = [
        log("ERROR cannot reach ledger: connection refused\n", "cart-0"),
        ToolOutput(
            "kubectl_get", {}, "NAME       READY   STATUS      RESTARTS   AGE\nledger-0   0/1     OOMKilled   3   5m\n"
        ),
        log("ERROR cannot write cache: disk quota exceeded\n", "reports-0"),
    ]
    found = cause("Why does cart answer with errors?", *outputs)
    assert found.service == "ledger"
    assert "OOMKilled" in found.cause


def test_the_log_of_what_the_question_names_goes_before_that_of_another() -> None:
    outputs = [
        log("ERROR cannot reach ledger: connection refused\n", "cart-0"),
        log("ERROR cannot write cache: disk quota exceeded\n", "reports-0"),
    ]
    assert "connection refused" in cause("Why does cart answer with errors?", *outputs).cause
    assert "disk quota exceeded" in cause("Why do reports come late?", *outputs).cause


def test_nothing_is_made_up_where_nothing_complains() -> None:
    calm = log("INFO started\nINFO served 12 requests, 0 errors\nWARN option x is deprecated\nINFO served 9 requests\n")
    assert causes("Is anything wrong with cart-0?", calm) == ()


def test_nothing_is_concluded_from_an_empty_answer() -> None:
    assert causes("Why does cart-0 fail?", ToolOutput("logs", {"pod_name": "cart-0"}, "")) == ()


DOCUMENTS = (
    "If the cart fails with connection refused, …",
    "NAME     READY   STATUS      RESTARTS   AGE\ncart-0   0/1     OOMKilled   3          5m\n",
    DESCRIBED.format(name="cart-0", reason="OOMKilled", code=137),
    "apiVersion: v1\nkind: List\nitems:\n" + ITEM.format("cart-0", 127),
    "ERROR cannot open /data: permission denied\n",
)


@every_case("text", DOCUMENTS)
def test_documents_and_failed_calls_are_no_evidence(text: str) -> None:
    page = ToolOutput("fetch", {"url": "https://wiki.example/runbook"}, text)
    failed = ToolOutput("logs", {"pod_name": "cart-0"}, text, failed=True)
    for output in (page, failed):
        observations = observed("Why does the cart fail?", [output])
        assert explain(observations)[0].hypotheses == ()
        assert read([output], observations.until).resources == {}
        assert observations.records == ()


def test_what_a_tool_says_of_how_it_was_called_is_no_cause() -> None:
    said = 'Error from server (BadRequest): previous terminated container "web" in pod "cart-0" not found'
    assert causes("Why?", ToolOutput("kubectl_previous_logs", {"pod_name": "cart-0"}, said)) == ()


@every_case("said", ["not available", "Not found.", "No logs were found", "[none]", "No data", "N/A"])
def test_a_tool_that_has_nothing_to_tell_tells_of_no_trouble(said: str) -> None:
    assert causes("Why is cart down?", ToolOutput("get_errors", {"service": "cart"}, said)) == ()


def test_a_complaint_that_something_was_not_found_is_trouble() -> None:
    assert "config.yaml not found" in cause("Why?", log("ERROR config.yaml not found, giving up")).cause


def test_the_occurrence_with_the_id_of_the_question_is_quoted() -> None:
    text = "".join(f"ERROR order {number} rejected: card expired\n" for number in range(4700, 4720))
    found = cause("Why was order 4711 rejected?", log(text))
    assert any("order 4711" in each.quote for each in found.evidence)


def test_quotes_are_verbatim_and_bounded_and_so_is_the_cause() -> None:
    line = "ERROR " + "x" * 900 + " failed: connection refused by ledger " + "y" * 900
    text = "\n".join(
        [line, *(f"ERROR part {word} failed: no such file" for word in ("alpha", "beta", "gamma", "delta"))]
    )
    found = causes("Why does cart-0 fail?", log(text))
    assert found
    for each in found:
        assert len(each.cause) <= 2 * MAX_QUOTE
        for evidence in each.evidence:
            assert len(evidence.quote) <= 400
            assert evidence.quote in text


def test_of_a_long_message_the_innermost_reason_is_quoted() -> None:
    message = f'Failed to pull image "{"x" * 150}": {"wrapped once more: " * 12}lookup registry.example: no such host'
    text = (
        "Name: cart-0\nNamespace: shop\nStatus: Pending\nNode: n-1\nContainers:\n  web:\n    Image: web:2\n"
        f"    State: Waiting\n      Reason: ImagePullBackOff\nEvents:\n  Warning  Failed  1m  kubelet  {message}\n"
    )
    found = cause("Why does cart-0 not start?", ToolOutput("kubectl_describe", {"name": "cart-0"}, text))
    assert "no such host" in found.evidence[0].quote


def test_terminal_colours_do_not_reach_a_quote() -> None:
    found = cause("Why does cart-0 fail?", log("\x1b[31mERROR\x1b[0m cannot open /data: permission denied\n"))
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


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ("Web server failed to start. Port 8080 was already in use.", "already in use"),
        ("mkdir: cannot create directory '/data/base': Permission denied", "Permission denied"),
        ("panic: listen tcp :8080: bind: address already in use", "address already in use"),
    ],
)
def test_words_alone_are_quoted_as_trouble_and_are_no_fault_of_an_object(said: str, fault: str) -> None:
    found = cause("Why does cart fail?", log(said))
    assert fault in found.cause
    assert found.evidence[0].kind is EvidenceKind.LOG
    assert "is in trouble" in found.cause


def test_trouble_of_nothing_in_particular_is_told_in_a_whole_sentence() -> None:
    found = cause("Why do orders fail?", ToolOutput("get_logs", {}, "ERROR cannot open /data: permission denied"))
    assert "permission denied" in found.cause
    assert not found.cause.startswith(" ")
    assert "  " not in found.cause
    assert found.evidence[0].source.strip() != "log of"
