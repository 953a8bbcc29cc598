"""Levels of log records in the forms of many libraries, and words and numbers that only look like one."""

from __future__ import annotations

from core.model.log_levels import level_in, level_named, level_of
from tests.cases import every_case


@every_case(
    ("text", "level"),
    [
        # Numbers of pino and bunyan.
        ('{"level":60,"time":1773479400000,"pid":7,"hostname":"web","msg":"cannot bind"}', "FATAL"),
        (
            '{"name":"ferry","hostname":"a","pid":1,"level":50,"msg":"refused","time":"2026-03-14T09:10:00Z","v":0}',
            "ERROR",
        ),
        ('{"level":40,"msg":"slow query"}', "WARN"),
        ('{"lvl":"50","message":"lost the lease"}', "ERROR"),
        ('{"level":30,"msg":"ready"}', "INFO"),
        ("time=2026-03-14T09:10:00Z level=50 msg=refused", "ERROR"),
        # Syslog, GELF, journald.
        ("<11>Mar 14 09:10:00 web app[7]: refused", "ERROR"),
        ("<34>1 2026-03-14T09:10:00Z web su - ID47 - failed", "CRITICAL"),
        ("<12>1 2026-03-14T09:10:00Z web app - - - slow", "WARN"),
        ("<190>Mar 14 09:10:00 web app[7]: started", "INFO"),
        ('{"version":"1.1","host":"web","short_message":"refused","level":3}', "ERROR"),
        ('{"PRIORITY":"4","MESSAGE":"low on memory"}', "WARN"),
        ('{"PRIORITY":"2","_SYSTEMD_UNIT":"x.service","message":"dying"}', "CRITICAL"),
        # Python.
        ('{"levelno":40,"message":"refused"}', "ERROR"),
        ('{"levelname":"CRITICAL","message":"out of disk"}', "CRITICAL"),
        ('{"level_number":30,"event":"slow"}', "WARN"),
        ("2026-03-14 09:10:00,123 - ferry.api - ERROR - refused", "ERROR"),
        # klog and glog.
        ("E0611 23:04:18.000101       7 leader.go:330] lost lease", "ERROR"),
        ("F1231 00:00:00.000000   1 main.go:3] no config", "FATAL"),
        ("W0101 10:00:00.5 1 x.go:1] deprecated", "WARN"),
        ('{"log":"E0611 23:04:18.000101 7 leader.go:330] lost lease\\n","stream":"stderr"}', "ERROR"),
        # OpenTelemetry.
        ('{"severity_number":17,"body":"refused"}', "ERROR"),
        ('{"SeverityNumber":21,"Body":"dying"}', "FATAL"),
        ('{"severityNumber":13,"body":{"stringValue":"slow"}}', "WARN"),
        ('{"SeverityText":"Error","SeverityNumber":9,"Body":"refused"}', "ERROR"),
        ('{"severity_text":"WARN","body":"slow"}', "WARN"),
        # Serilog and .NET.
        ('{"@t":"2026-03-14T09:10:00Z","@l":"Fatal","@m":"dying"}', "FATAL"),
        ('{"@l":"Warning","@mt":"{Count} left"}', "WARN"),
        ("[09:10:00 ERR] refused", "ERROR"),
        ("[09:10:00 FTL] dying", "FATAL"),
        ("crit: Ferry.Api.Startup[3]", "CRITICAL"),
        ("fail: Microsoft.EntityFrameworkCore.Database.Command[20102]", "ERROR"),
        ("dbug: Ferry.Api[0] polled", "DEBUG"),
        ('{"EventId":3,"LogLevel":"Critical","Category":"Ferry","Message":"dying"}', "CRITICAL"),
        ('{"LogLevel":4,"Message":"refused"}', "ERROR"),
        # Google Cloud and Monolog.
        ('{"severity":"EMERGENCY","message":"dying"}', "FATAL"),
        ('{"severity":"ALERT","textPayload":"dying","message":"x"}', "CRITICAL"),
        ('{"severity":500,"message":"refused"}', "ERROR"),
        ('{"message":"refused","level":400,"level_name":"ERROR","channel":"app"}', "ERROR"),
        # Names in fields.
        ('{"log.level":"error","message":"refused"}', "ERROR"),
        ('{"log":{"level":"error","logger":"x"},"message":"refused"}', "ERROR"),
        ('{"log_level":"warn","msg":"slow"}', "WARN"),
        ('{"lvl":"eror","msg":"refused"}', "ERROR"),
        ('{"level":"panic","msg":"dying"}', "FATAL"),
        ('{"level":"\\u001b[31merror\\u001b[39m","message":"refused"}', "ERROR"),
        ('t=2026-03-14T09:10:00Z lvl=crit msg="dying"', "CRITICAL"),
        ("loglevel=warning slow", "WARN"),
        ('{"@level":"error","@message":"refused","@module":"raft"}', "ERROR"),
        ('{"level":"E","msg":"refused"}', "ERROR"),
        # Letters and signs.
        ("E20260314 09:10:00.000101  7 leader.cc:33] lost lease", "ERROR"),
        ("W260314 09:10:00.000101 7 kv/leader.go:33 [n1] slow", "WARN"),
        ("2026-03-14T09:10:00Z E! [outputs.influxdb] refused", "ERROR"),
        ("2026-03-14T09:10:00Z W! [agent] slow", "WARN"),
        ("2026-03-14 09:10:00.000101 E | etcdserver: refused", "ERROR"),
        ("2026-03-14 09:10:00.000101 C | etcdmain: dying", "CRITICAL"),
        ('{"t":{"$date":"x"},"s":"E","c":"NETWORK","id":22943,"ctx":"listener","msg":"refused"}', "ERROR"),
        ('{"t":{"$date":"x"},"s":"D2","c":"REPL","id":4,"ctx":"x","msg":"polled"}', "DEBUG"),
        ("1:M 14 Mar 2026 09:10:00.123 # Out of memory", "WARN"),
        ("7:S 14 Mar 2026 09:10:00.123 * Connecting to MASTER", "INFO"),
        ("[2026-03-14 09:10:00] production.ERROR: refused", "ERROR"),
        ("[2026-03-14T09:10:00.1+00:00] app.WARNING: slow [] []", "WARN"),
        # Words.
        ("2026/03/14 09:10:00 [emerg] 1#1: bind() failed", "FATAL"),
        ("2026/03/14 09:10:00 [alert] 1#1: worker exited", "CRITICAL"),
        ("[Sat Mar 14 09:10:00 2026] [core:error] [pid 7] refused", "ERROR"),
        ("2026-03-14T09:10:00Z ALERT dying", "CRITICAL"),
        ("Mar 14 09:10:00 PANIC: no space", "FATAL"),
        ("2026-03-14 09:10:00 UTC [7] FATAL:  too many connections", "FATAL"),
        ("\x1b[31mERROR\x1b[0m refused", "ERROR"),
        ("panic: runtime error: index out of range", "FATAL"),
        ("Mar 14, 2026 9:10:00 AM ferry.Main run SEVERE: refused", "ERROR"),
    ],
)
def test_the_level_is_read_in_the_form_of_each_library(text: str, level: str) -> None:
    assert level_in(text) == level


@every_case(
    "text",
    [
        "GET /quotes 500 12ms",
        '{"status":500,"message":"answered"}',
        '{"level":50,"player":"ann","msg":"reached"}',
        '{"msg":"river level is high","level":50}',
        '{"water_level":50,"message":"measured"}',
        '{"sensor":"tank 3","level":40,"message":"measured"}',
        '{"level":3,"message":"entered"}',
        "level=50% fuel left",
        "battery.level=20",
        '{"level":50}',
        "alert sent to the crew",
        "The alert was closed",
        "sent ALERT to 3 people",
        "retry after panic of the guests",
        "no error, all fine",
        "failed: 0",
        '{"priority":2,"message":"queued"}',
        '{"level":"beginner","message":"enrolled"}',
        '{"severity":true,"message":"x"}',
        "<999> not a priority",
        "E03 12:00 train to Emden",
        "E! is a channel",
        "row 3 | E | 12",
        '{"s":"E","msg":"south-east"}',
        "12:M seats # 3 are free",
        "see docs.ERROR for more",
        "error-free run",
        "opened /var/log/ERROR/today",
        '{"msg":"checked","book":{"level":50}}',
        "",
        "{",
        "[]",
    ],
)
def test_what_only_looks_like_a_level_is_none(text: str) -> None:
    assert level_in(text) == ""


@every_case(
    ("labels", "level"),
    [
        ({"level": "50"}, "ERROR"),
        ({"detected_level": "unknown", "severity_text": "Error"}, "ERROR"),
        ({"severity_number": "17"}, "ERROR"),
        ({"PRIORITY": "3"}, "ERROR"),
        ({"severity": "emerg"}, "FATAL"),
        ({"level": "500"}, "CRITICAL"),
        ({"level": "3"}, "ERROR"),
        ({"app": "error"}, "INFO"),
        ({"level": "unknown"}, "INFO"),
    ],
)
def test_labels_state_the_level_in_the_same_forms(labels: dict[str, str], level: str) -> None:
    assert level_of(labels, "refused") == level


@every_case(
    ("name", "level"), [("Err", "ERROR"), ("[WARN]", "WARN"), ("LogLevel.Error", "ERROR"), ("high", ""), ("", "")]
)
def test_a_name_in_another_spelling_is_the_same_level(name: str, level: str) -> None:
    assert level_named(name) == level
