"""Run the tests in a process for each core: `-n` names how many, and `-n0` runs them in the process that collects them.

The processes are forked when the tests are collected: modules are imported, and cases are listed, once for all of them.
Each asks for a few tests that follow each other while it runs its last ones, and reports what has ended.
"""

from __future__ import annotations

import gc
import mmap
import os
import signal
import sys
import traceback
from collections import deque
from collections.abc import Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from tempfile import TemporaryFile
from typing import NoReturn

import pytest
from _pytest.capture import FDCaptureBase
from _pytest.runner import runtestprotocol
from moduletrees import name_shared, parse_module

MOST = 64
"""How many tests a process runs before it asks for others, at most: those of a module share what they read."""


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    # pytest-xdist has the same option, and works, too: where it is installed, the settings turn it off.
    if not pluginmanager.hasplugin("xdist"):
        # pytest keeps short options in lower case for itself and for this one, which everybody knows.
        group = parser.getgroup("processes", "processes that run tests")
        group._addoption("-n", dest="processes", default="0", help="how many processes run the tests, or `auto`")


def pytest_configure(config: pytest.Config) -> None:
    count = count_processes(config)
    if count and not config.option.usepdb:
        config.pluginmanager.register(_Processes(config, count))


def count_processes(config: pytest.Config) -> int:
    """Return how many processes are asked for: one more than cores, as some tests wait for other programs."""
    words = config.getoption("processes", "0")
    if config.option.collectonly:
        return 0
    return (os.cpu_count() or 1) + 1 if words == "auto" else int(words)


def divide(items: list[pytest.Item], processes: int) -> Iterator[range]:
    """Yield the tests of each module together, but few of a long one, and ever fewer at the end.

    All tests of the code are run by one process, for to parse all modules takes seconds, and so are those of a module
    that says so: each process that runs some of them would do again what takes long.
    """
    start = 0
    while start < len(items):
        shared = name_shared(items[start])
        few = 1 + (len(items) - start) // (processes * 8)
        is_whole = shared is parse_module or getattr(getattr(items[start], "module", None), "IN_ONE_PROCESS", False)
        most = len(items) if is_whole else start + min(MOST, few)
        stop = start + 1
        while stop < min(most, len(items)) and name_shared(items[stop]) == shared:
            stop += 1
        yield range(start, stop)
        start = stop


class _Process:
    """A process that runs tests: which it has been given, and has not reported yet."""

    def __init__(self, number: int, connection: Connection) -> None:
        self.number, self.connection = number, connection
        self.given: deque[int] = deque()
        self.last = 0


class _Processes:
    """Starts the processes, gives them tests, and reports what they report."""

    def __init__(self, config: pytest.Config, count: int) -> None:
        self.config, self.count = config, count
        self.running: dict[Connection, _Process] = {}
        self.started = 0
        self.is_stopped = mmap.mmap(-1, 1)
        """Memory that all processes share: not zero if no other test is to begin."""

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed and not self.config.option.continue_on_collection_errors:
            raise session.Interrupted(f"{session.testsfailed} errors during collection")
        self.session = session
        self.left = deque(divide(session.items, self.count))
        try:
            for _ in range(min(self.count, len(self.left))):
                self._start()
            while self.running:
                for connection in wait(list(self.running)):
                    self._receive(self.running[connection])
        finally:
            for process in self.running.values():
                os.kill(process.number, signal.SIGKILL)
                os.waitpid(process.number, 0)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        return True

    def _start(self) -> None:
        ours, theirs = Pipe()
        self.started += 1
        folder = self.config._tmp_path_factory.getbasetemp() / f"process-{self.started}"
        folder.mkdir()
        sys.stdout.flush()
        sys.stderr.flush()
        number = os.fork()
        if not number:
            for connection in (ours, *self.running):
                connection.close()
            self.config._tmp_path_factory._basetemp = folder
            _run(self.session, theirs, self.is_stopped)
        theirs.close()
        self.running[ours] = _Process(number, ours)

    def _receive(self, process: _Process) -> None:
        """Report a test, or give others to a process that asks for them."""
        try:
            answer = process.connection.recv()
        except (EOFError, ConnectionResetError):
            self._end(process, "")
            return
        match answer:
            case None:
                items = () if self.is_stopped[0] or not self.left else self.left.popleft()
                process.given.extend(items)
                process.connection.send(items)
            case str():
                self._end(process, answer)
            case index, reports:
                process.last = process.given.popleft()
                assert process.last == index
                self._report(self.session.items[index], reports)

    def _report(self, item: pytest.Item, reports: float | list[dict[str, object]]) -> None:
        hook = self.config.hook
        if isinstance(reports, float):
            passed = pytest.TestReport(item.nodeid, item.location, {}, "passed", None, "call", duration=reports)
            hook.pytest_runtest_logreport(report=passed)
        else:
            for data in reports:
                report = hook.pytest_report_from_serializable(config=self.config, data=data)
                hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        if self.session.shouldfail or self.session.shouldstop:
            self.is_stopped[0] = 1

    def _end(self, process: _Process, reason: str) -> None:
        """Wait for a process. If it has failed, so has the test that it ran, and another one runs the rest."""
        del self.running[process.connection]
        process.connection.close()
        code = os.waitstatus_to_exitcode(os.waitpid(process.number, 0)[1])
        if self.is_stopped[0]:
            return
        if code or process.given:
            # Behind the last test, fixtures of modules and of the session end.
            index = process.given.popleft() if process.given else process.last
            reason = reason or f"the process of this test has ended with the exit code {code}"
            self._report_end(self.session.items[index], reason)
        if process.given:
            self.left.appendleft(tuple(process.given))
        if self.left and not self.is_stopped[0]:
            self._start()

    def _report_end(self, item: pytest.Item, reason: str) -> None:
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", reason, "call")
        self.config.hook.pytest_runtest_logreport(report=report)
        if self.session.shouldfail:
            self.is_stopped[0] = 1


class _Protocol:
    """Runs a test without reporting it to the plugins of this process; `reports` has what is sent."""

    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        if all(report.passed for report in reports):
            self.reports = sum(report.duration for report in reports if report.when == "call")
        else:
            as_data = item.config.hook.pytest_report_to_serializable
            self.reports = [
                as_data(config=item.config, report=report)
                for report in reports
                if report.when == "call" or not report.passed
            ]
        return True


def _run(session: pytest.Session, connection: Connection, is_stopped: mmap.mmap) -> NoReturn:
    """Run tests in this process until there are no others, and end it."""
    code = 1
    try:
        config = session.config
        _write_apart(config)
        config.pluginmanager.unregister(name="terminalreporter")
        protocol = _Protocol()
        config.pluginmanager.register(protocol)
        gc.enable()

        def ask() -> Iterator[int]:
            while True:
                connection.send(None)
                given = connection.recv()
                if not given:
                    return
                yield from given

        indexes = ask()
        index = next(indexes, None)
        while index is not None:
            following = next(indexes, None)
            item, nextitem = session.items[index], None if following is None else session.items[following]
            if is_stopped[0]:
                break
            config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
            connection.send((index, protocol.reports))
            index = following
        session._setupstate.teardown_exact(None)
        code = 0
    except BaseException:  # noqa: BLE001 -- the process that collects reports it
        connection.send(traceback.format_exc())
    finally:
        os._exit(code)


def _write_apart(config: pytest.Config) -> None:
    """Let this process write what tests print to files of its own. Streams stay open: modules may keep them."""
    captured = config.pluginmanager.getplugin("capturemanager")._global_capturing
    for stream in filter(None, (captured.out, captured.err)):
        # What is captured without descriptors is in memory.
        if isinstance(stream, FDCaptureBase):
            with TemporaryFile() as own:
                os.dup2(own.fileno(), stream.tmpfile.fileno(), inheritable=False)
