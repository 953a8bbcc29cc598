"""Tests in several processes that share one collection: each is a fork of the process that collected them.

`-p tests.forks --forks 3`: each takes a file at a time, in the order of collection, so a module's fixture is set up once.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable
from itertools import chain, groupby, pairwise
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

import pytest

FORKS = multiprocessing.get_context("fork")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--forks", type=int, default=1, help="in how many processes the tests run")


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    option = session.config.option
    forks: int = option.forks
    if forks < 2 or session.testsfailed or option.collectonly or option.usepdb:
        return None
    files = [list(items) for _, items in groupby(session.items, key=lambda item: item.path)]
    folders: pytest.TempPathFactory = vars(session.config)["_tmp_path_factory"]
    folders.getbasetemp()  # one for all, which pytest removes at the end
    left = FORKS.SimpleQueue()
    for number in chain(range(len(files)), [None] * forks):
        left.put(number)
    processes: dict[Connection, BaseProcess] = {}
    for _ in range(forks):
        reports, end = FORKS.Pipe(duplex=False)
        taken = chain.from_iterable(files[number] for number in iter(left.get, None))
        processes[reports] = FORKS.Process(target=_run, args=(session.config, taken, end))
        processes[reports].start()
        end.close()  # the other one closes with the process, which is how its end is seen
    try:
        _report(session, processes)
    finally:
        for process in processes.values():
            process.terminate()
    return True


def _run(config: pytest.Config, items: Iterable[pytest.Item], end: Connection) -> None:
    plugins = config.pluginmanager
    if capture := plugins.get_plugin("capturemanager"):  # the files that it has are those of every process
        capture.stop_global_capturing()
        capture.start_global_capturing()
    plugins.unregister(name="terminalreporter")
    plugins.register(_Teller(config, end))
    for item, following in pairwise(chain[pytest.Item | None](items, [None])):
        assert item is not None
        config.hook.pytest_runtest_protocol(item=item, nextitem=following)


class _Teller:
    """Sends on what the process that collected shows and counts."""

    def __init__(self, config: pytest.Config, end: Connection) -> None:
        self._config, self._end = config, end

    def pytest_runtest_logstart(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        self._end.send((nodeid, location, None))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._end.send((report.nodeid, report.location, data))


def _report(session: pytest.Session, processes: dict[Connection, BaseProcess]) -> None:
    """Report what the processes say until all have ended, or pytest has seen enough."""
    config, hook = session.config, session.config.hook
    under_way = dict.fromkeys(processes, ("", ("", None, "")))
    while processes:
        for connection in wait(list(processes)):
            assert isinstance(connection, Connection)
            try:
                nodeid, location, data = connection.recv()
            except EOFError:
                process = processes.pop(connection)
                process.join()
                if process.exitcode:
                    hook.pytest_runtest_logreport(report=_death(process, *under_way[connection]))
            else:
                if data is None:
                    under_way[connection] = nodeid, location
                    hook.pytest_runtest_logstart(nodeid=nodeid, location=location)
                    continue
                hook.pytest_runtest_logreport(report=hook.pytest_report_from_serializable(config=config, data=data))
                if data.get("when") == "teardown":
                    hook.pytest_runtest_logfinish(nodeid=nodeid, location=location)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)


def _death(process: BaseProcess, nodeid: str, location: tuple[str, int | None, str]) -> pytest.TestReport:
    text = f"The process of this test ended with {process.exitcode}; what follows in its file did not run."
    return pytest.TestReport(nodeid, location, {}, "failed", text, "call")
