from __future__ import annotations

from core.rca.log_lines import Frame, frames
from tests.cases import every_case

PYTHON = """ERROR request failed
Traceback (most recent call last):
  File "/app/shop/api.py", line 88, in checkout
    pool.acquire()
  File "/app/shop/pool.py", line 12, in acquire
    raise Exhausted
Exhausted: no connection left"""
JAVA = """ERROR Job failed
java.lang.IllegalStateException: closed
\tat com.acme.pay.SettlementJob.run(SettlementJob.java:41)
\tat com.acme.pay.Pool$Lease.close(Pool.java:9)
Caused by: java.net.SocketException: reset"""
GO = """panic: runtime error
goroutine 1 [running]:
github.com/acme/fleet/pool.(*Pool).Acquire(0xc000)
\t/src/fleet/pool/pool.go:77 +0x1d
main.main()
\t/src/fleet/main.go:12 +0x2"""
NODE = """TypeError: Cannot read properties of undefined
    at Pool.acquire (/app/src/pool.ts:10:5)
    at async checkout (file:///app/src/api.ts:4:11)
    at /app/src/index.ts:1:1"""


@every_case(
    ("trace", "found"),
    [
        (PYTHON, (Frame("checkout", "/app/shop/api.py", 88), Frame("acquire", "/app/shop/pool.py", 12))),
        (
            JAVA,
            (
                Frame("com.acme.pay.SettlementJob.run", "com/acme/pay/SettlementJob.java", 41),
                Frame("com.acme.pay.Pool$Lease.close", "com/acme/pay/Pool.java", 9),
            ),
        ),
        (
            GO,
            (
                Frame("pool.(*Pool).Acquire", "/src/fleet/pool/pool.go", 77),
                Frame("main.main", "/src/fleet/main.go", 12),
            ),
        ),
        (
            NODE,
            (
                Frame("Pool.acquire", "/app/src/pool.ts", 10),
                Frame("checkout", "/app/src/api.ts", 4),
                Frame("", "/app/src/index.ts", 1),
            ),
        ),
        ("no trace, at all (really:12)", ()),
        ("a\n" + "at " * 5_000, ()),
    ],
)
def test_the_frames_of_each_language_are_read(trace: str, found: tuple[Frame, ...]) -> None:
    assert frames(trace) == found
