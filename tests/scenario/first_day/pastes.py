"""Logs and stack traces as engineers paste them, and what the answer must tell: what failed, the page, the owner."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Paste:
    """`failed` is the line that says what failed, `page` the title of the page that says what to do."""

    name: str
    text: str
    failed: str
    page: str
    owner: str = ""  # of the service that the paste names


GITHUB_ACTIONS = """\
2026-03-02T08:11:04.1290012Z ##[group]Run docker buildx build --push -t chandlery.marigold-ferries.example/pricing .
2026-03-02T08:11:04.1290431Z docker buildx build --push -t chandlery.marigold-ferries.example/pricing .
2026-03-02T08:11:04.1311877Z shell: /usr/bin/bash -e {0}
2026-03-02T08:11:04.1312120Z ##[endgroup]
2026-03-02T08:11:06.4410339Z #1 [internal] load build definition from Dockerfile
2026-03-02T08:11:06.9922301Z #5 [2/6] COPY go.mod go.sum ./
2026-03-02T08:11:07.3318823Z #6 [3/6] RUN go mod download
2026-03-02T08:12:41.8844120Z #7 [4/6] COPY . .
2026-03-02T08:12:42.0012744Z #8 [5/6] RUN go build ./cmd/pricing
2026-03-02T08:13:55.2201345Z #8 73.02 # pricing/internal/fares
2026-03-02T08:13:55.2203988Z #8 73.02 write /tmp/go-build/b214/_pkg_.a: no space left on device
2026-03-02T08:13:55.3377018Z #8 ERROR: process "/bin/sh -c go build ./cmd/pricing" did not complete successfully: exit code: 1
2026-03-02T08:13:55.3990871Z ------
2026-03-02T08:13:55.4021190Z ERROR: failed to solve: process "/bin/sh -c go build ./cmd/pricing" did not complete: exit code: 1
2026-03-02T08:13:55.4100012Z ##[error]Process completed with exit code 1.
"""

GITLAB = """\
Running with gitlab-runner 17.8.0 on barge-11 t1_x2k9p
section_start:1772438001:prepare_executor
Preparing the "docker" executor
section_end:1772438004:prepare_executor
section_start:1772438004:get_sources
Fetching changes with git depth set to 20...
Checking out 8f2c1ab7 as detached HEAD (ref is faster-checkout)...
section_end:1772438009:get_sources
section_start:1772438009:step_script
$ corepack enable
$ pnpm install --frozen-lockfile
Lockfile is up to date, resolution step is skipped
Packages: +1412
Done in 21.4s
$ pnpm --filter web-store exec next build
   Creating an optimized production build ...
<--- Last few GCs --->
[214:0x6a2c000]   194332 ms: Mark-Compact (reduce) 4089.1 (4131.2) -> 4088.4 (4130.9) MB, 2117.40 / 0.00 ms
FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory
----- Native stack trace -----
 1: 0xb8ced1 node::OOMErrorHandler(char const*, v8::OOMDetails const&) [node]
Aborted (core dumped)
section_end:1772438231:step_script
ERROR: Job failed: exit code 134
"""

JENKINS = """\
Started by user Hana Petrov
[Pipeline] Start of Pipeline
[Pipeline] node
Running on barge-03 in /work/booking-api
[Pipeline] {
[Pipeline] stage
[Pipeline] { (Test)
[Pipeline] sh
+ ./gradlew test
> Task :compileJava UP-TO-DATE
> Task :processResources UP-TO-DATE
> Task :compileTestJava
> Task :test FAILED

FAILURE: Build failed with an exception.

* What went wrong:
Execution failed for task ':test'.
> Process 'Gradle Test Executor 7' finished with non-zero exit value 137

* Try:
> Run with --stacktrace option to get the stack trace.
> Run with --info or --debug option to get more log output.

BUILD FAILED in 6m 12s
4 actionable tasks: 2 executed, 2 up-to-date
[Pipeline] }
[Pipeline] // stage
[Pipeline] }
[Pipeline] // node
[Pipeline] End of Pipeline
ERROR: script returned exit code 1
Finished: FAILURE
"""

AZURE_PIPELINES = """\
2026-02-11T13:02:17.0011234Z ##[section]Starting: Deploy search to north
2026-02-11T13:02:17.0101234Z ==============================================================================
2026-02-11T13:02:17.0101299Z Task         : Kubectl
2026-02-11T13:02:17.0101377Z Description  : Deploy, configure, update a Kubernetes cluster
2026-02-11T13:02:17.0101455Z ==============================================================================
2026-02-11T13:02:18.2299011Z [command]/usr/local/bin/kubectl apply -f search.yaml
2026-02-11T13:02:19.0020124Z service/search unchanged
2026-02-11T13:02:19.4481003Z Error from server: admission webhook "portcullis.platform" denied the request: no matching \
signature for chandlery.marigold-ferries.example/search@sha256:9d1c
2026-02-11T13:02:19.5102210Z ##[error]The process '/usr/local/bin/kubectl' failed with exit code 1
2026-02-11T13:02:19.5200010Z ##[section]Finishing: Deploy search to north
"""

CIRCLECI = """\
Task spin up environment
Build-agent version 1.0.4120 (2026-02-20T09:11:02+0000)
#!/bin/bash -eo pipefail
cd services/timetable && npm ci && npm run migrate:check
+ npm ci
added 611 packages in 9s
+ npm run migrate:check
> timetable@4.7.0 migrate:check
> flyway migrate -url=jdbc:postgresql://pg-fleet:5432/timetable
Flyway Community Edition 10.20.1
Current version of schema "public": 118
Migrating schema "public" to version "119 - index on sailing berth"
ERROR: migration aborted: lock timeout
npm ERR! code 1
npm ERR! path /home/circleci/project/services/timetable
npm ERR! command failed
Exited with code exit status 1
"""

PYTHON = """\
Traceback (most recent call last):
  File "/srv/notifications/worker.py", line 88, in deliver
    batch = self._consumer.poll(timeout_ms=500)
  File "/srv/notifications/consumer.py", line 41, in poll
    raise CommitFailed(reason)
consumer.CommitFailed: member was removed

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/srv/notifications/main.py", line 23, in <module>
    run()
  File "/srv/notifications/main.py", line 17, in run
    worker.deliver()
  File "/srv/notifications/worker.py", line 95, in deliver
    raise RebalanceError("CONSUMER_COORDINATOR rebalancing, max.poll.interval.ms exceeded")
worker.RebalanceError: CONSUMER_COORDINATOR rebalancing, max.poll.interval.ms exceeded
"""

JAVA = """\
org.springframework.web.util.NestedServletException: Request processing failed
\tat org.springframework.web.servlet.FrameworkServlet.processRequest(FrameworkServlet.java:1014)
\tat org.springframework.web.servlet.FrameworkServlet.doPost(FrameworkServlet.java:909)
Caused by: org.springframework.transaction.CannotCreateTransactionException: Could not open JPA EntityManager
\tat org.springframework.orm.jpa.JpaTransactionManager.doBegin(JpaTransactionManager.java:466)
\tat example.marigold.payment.gateway.Authoriser.authorise(Authoriser.java:118)
\t... 38 more
Caused by: java.sql.SQLTransientConnectionException: HikariPool-1 - Connection is not available, request timed out after 3000ms
\tat com.zaxxer.hikari.pool.HikariPool.createTimeoutException(HikariPool.java:696)
\tat com.zaxxer.hikari.HikariDataSource.getConnection(HikariDataSource.java:100)
\t... 52 more
"""

GO = """\
panic: JWT rejected: unknown kid mf-2026-03-01

goroutine 214 [running]:
example.marigold/check-in/internal/auth.mustVerify(0xc0004a2000, 0x5f)
\t/src/check-in/internal/auth/verify.go:77 +0x1d4
example.marigold/check-in/internal/http.(*Server).scan(0xc00011e000, {0x9a3f40, 0xc0003c8000})
\t/src/check-in/internal/http/scan.go:52 +0x8c
net/http.HandlerFunc.ServeHTTP(0xc0001a6000, {0x9a3f40, 0xc0003c8000})
\t/usr/local/go/src/net/http/server.go:2166 +0x29
exit status 2
"""

NODE = """\
/srv/web-store/.next/server/app/routes/page.js:214
    throw new Error(`page data: ${cause.message}`, { cause });
    ^

Error: page data: fetch failed
    at loadRoute (/srv/web-store/.next/server/app/routes/page.js:214:11)
    at async collectPageData (/srv/web-store/node_modules/next/dist/build/utils.js:511:7) {
  [cause]: Error: fetch failed: ECONNREFUSED while Collecting page data
      at createConnectionError (node:net:1651:14)
      at afterConnectMultiple (node:net:1681:16)
}

Node.js v22.14.0
"""

DOTNET = """\
Unhandled exception. System.AggregateException: One or more errors occurred.
 ---> Npgsql.PostgresException: 53300: remaining connection slots are reserved, PgBouncer query_wait_timeout on pg-booking
   at Npgsql.Internal.NpgsqlConnector.Open(NpgsqlTimeout timeout) in /src/Npgsql/Internal/NpgsqlConnector.cs:line 611
   at Marigold.PortOffice.Sailings.Load(String vessel) in /src/PortOffice/Sailings.cs:line 84
   --- End of inner exception stack trace ---
   at Marigold.PortOffice.Program.Main(String[] args) in /src/PortOffice/Program.cs:line 19
"""


def long_build() -> str:
    """A build log whose failure comes after more than 6,000 characters of downloads."""
    quiet = [
        f"Downloading https://chandlery.marigold-ferries.example/maven/library-{n}/1.{n}.0.jar" for n in range(120)
    ]
    return "\n".join(
        [
            "+ ./gradlew assemble",
            *quiet,
            "> Task :identity:compileJava",
            "> Could not GET 'https://repo.maven.apache.org/maven2/org/slf4j/slf4j-api/2.0.17/slf4j-api-2.0.17.pom'. Connect timed out",
            "FAILURE: Build failed with an exception.",
            "* What went wrong:",
            "Could not resolve org.slf4j:slf4j-api:2.0.17: Connect timed out",
            "BUILD FAILED in 14m 2s",
            "exit status 1",
        ]
    )


def long_trace() -> str:
    """A trace whose first cause comes after more than 6,000 characters of frames."""
    frames = "\n".join(f"\tat example.marigold.refunds.Pipeline.step{n}(Pipeline.java:{n})" for n in range(1, 121))
    return (
        f"example.marigold.refunds.BatchFailed: batch 4411 was given back\n{frames}\n"
        "Caused by: example.marigold.refunds.AttemptsExhausted: refund attempt 7 of 7, row stays in refund_request\n"
        "\tat example.marigold.refunds.Worker.send(Worker.java:203)\n\t... 61 more\n"
    )


PASTES = (
    Paste(
        "GitHub Actions",
        GITHUB_ACTIONS,
        "no space left on device",
        'Build fails with "no space left on device"',
        "Bookings",
    ),
    Paste("GitLab CI", GITLAB, "JavaScript heap out of memory", "Building the web-store", "Storefront"),
    Paste("Jenkins", JENKINS, "non-zero exit value 137", "Building Java services", "Bookings"),
    Paste(
        "Azure Pipelines", AZURE_PIPELINES, "no matching signature", "Image signing and the portcullis", "Storefront"
    ),
    Paste("CircleCI", CIRCLECI, "migration aborted: lock timeout", "Database migrations", "Fleet"),
    Paste("Python", PYTHON, "CONSUMER_COORDINATOR rebalancing", "TidelineConsumerLagHigh", "Boarding"),
    Paste("Java", JAVA, "Connection is not available", "PaymentGatewayLatencyHigh"),
    Paste("Go", GO, "unknown kid", '401 storm with "unknown kid"', "Boarding"),
    Paste("Node.js", NODE, "ECONNREFUSED", "Building the web-store", "Storefront"),
    Paste(".NET", DOTNET, "query_wait_timeout on pg-booking", "pg-booking", "Platform"),
    Paste("a build log of 9,000 characters", long_build(), "Connect timed out", "Building Java services", "Identity"),
    Paste("a trace of 7,000 characters", long_trace(), "refund attempt 7 of 7", "Refunds backlog is growing"),
)
