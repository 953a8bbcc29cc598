"""Pastes: build logs of three systems, stack traces of six languages, and two messages that are no paste."""

from __future__ import annotations

GITHUB_ACTIONS = """\
2026-03-14T09:20:01.1234567Z ##[group]Run ./gradlew build
2026-03-14T09:20:01.1234567Z ./gradlew build
2026-03-14T09:20:01.1234567Z shell: /usr/bin/bash -e {0}
2026-03-14T09:20:01.1234567Z ##[endgroup]
2026-03-14T09:20:05.0000000Z Downloading https://services.gradle.org/distributions/gradle-8.5-bin.zip
2026-03-14T09:20:15.0000000Z > Task :compileJava
2026-03-14T09:20:25.0000000Z > Task :processResources
2026-03-14T09:20:35.0000000Z > Task :jar FAILED
2026-03-14T09:20:35.1000000Z FAILURE: Build failed with an exception.
2026-03-14T09:20:35.2000000Z * What went wrong:
2026-03-14T09:20:35.3000000Z Execution failed for task ':jar'.
2026-03-14T09:20:35.3000000Z > java.io.IOException: No space left on device
2026-03-14T09:20:35.4000000Z * Try:
2026-03-14T09:20:35.4000000Z > Run with --stacktrace option to get the stack trace.
2026-03-14T09:20:35.5000000Z BUILD FAILED in 30s
2026-03-14T09:20:35.6000000Z ##[error]Process completed with exit code 1.
"""
GITLAB = """\
Running with gitlab-runner 16.1.0
Preparing the "docker" executor
section_start:1700000000:step_script
$ npm ci
npm ERR! code E401
npm ERR! Incorrect or missing password.
npm ERR! A complete log of this run can be found in: /root/.npm/_logs/x.log
ERROR: Job failed: exit code 1
"""
JENKINS = """\
[Pipeline] sh
+ docker build -t app .
Step 4/9 : RUN apt-get update
E: Could not resolve 'deb.debian.org'
The command '/bin/sh -c apt-get update' returned a non-zero code: 100
[Pipeline] }
[Pipeline] End of Pipeline
ERROR: script returned exit code 100
Finished: FAILURE
"""
JAVA = """\
why does this happen?
Exception in thread "main" org.springframework.beans.factory.BeanCreationException: Error creating bean with name 'ledger'
	at org.springframework.Foo.bar(Foo.java:12)
	at com.acme.Main.main(Main.java:3)
Caused by: org.hibernate.HibernateException: cannot open session
	at org.hibernate.X.y(X.java:99)
	... 12 more
Caused by: java.sql.SQLTransientConnectionException: HikariPool-1 - Connection is not available, request timed out after 30000ms.
	at com.zaxxer.hikari.pool.HikariPool.create(HikariPool.java:1)
	... 20 more
"""
CHAINED_PYTHON = """\
Traceback (most recent call last):
  File "/srv/a.py", line 3, in load
    open(p)
FileNotFoundError: [Errno 2] No such file or directory: '/etc/keys.json'

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/srv/b.py", line 30, in main
    load()
RuntimeError: cannot start
"""
PYTHON = """\
Traceback (most recent call last):
  File "/srv/a.py", line 3, in load
    open(p)
  File "/srv/a.py", line 4, in x
    y()
requests.exceptions.ConnectionError: HTTPSConnectionPool(host='vault', port=8200): Max retries exceeded
"""
GO = """\
panic: runtime error: invalid memory address or nil pointer dereference
[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x4a]

goroutine 1 [running]:
main.handle(0x0)
	/src/app/main.go:12 +0x1d
main.main()
	/src/app/main.go:6 +0x20
"""
NODE = """\
/srv/app/index.js:10
    throw new Error('x');
    ^

Error: connect ECONNREFUSED 10.0.0.3:5432
    at TCPConnectWrap.afterConnect [as oncomplete] (net.js:1146:16)
    at Pool.connect (/srv/app/node_modules/pg/pool.js:4:5)
"""
RUBY = """\
app/models/order.rb:12:in `total': undefined method `price' for nil:NilClass (NoMethodError)
	from app/models/order.rb:30:in `map'
	from app/controllers/x.rb:2:in `show'
	from bin/rails:4:in `<main>'
"""
DOTNET = """\
Unhandled exception. System.InvalidOperationException: Sequence contains no elements
   at System.Linq.ThrowHelper.ThrowNoElementsException()
   at Acme.Ledger.Book.Total() in /src/Book.cs:line 14
   at Acme.Program.Main() in /src/Program.cs:line 3
"""
QUESTION = """\
Hello, I have a question.
We use two clusters.
The first one is for staging.
How do I roll back a canary there?
"""
YAML = """\
can I write it like this?
tools:
  - kind: prometheus
    url: x
  - kind: loki
    url: error
"""
