"""Run many jobgen commands, each exactly as `python -m jobgen` would run it, without starting Python for each.

Starting an interpreter, importing jobgen and reading the shipped kinds and policies costs more than most commands.
`run_jobgen` forks a process for each command from one that has done all this, and so does the program that
`install_jobgen` writes. Nothing here names a module of jobgen.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import functools
import gc
import importlib
import io
import marshal
import os
import runpy
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NoReturn

import jobgenclient
from jobgenclient import Request

ROOT = Path(__file__).parent.parent
WARM_UP = (
    ["-C", str(ROOT / "tests/repositories/two-teams"), "lint", "--no-cache"],
    ["-C", str(ROOT), "lint", "--no-cache"],
    ["-C", str(ROOT), "render", "-e", "prod"],
    ["-C", str(ROOT / "tests/repositories/two-teams"), "doctor"],
    ["-C", str(ROOT), "explain", "pytorch-simple", "-e", "prod"],
    ["-C", str(ROOT), "explain", "unknown-field"],
    ["-C", str(ROOT), "migrate", "pytorch-simple", "--to", "trainer"],
    ["-C", str(ROOT), "schema", "list"],
    ["-C", str(ROOT / "tests/repositories/two-teams"), "queue"],
    ["-C", str(ROOT / "tests/repositories"), "diff", "--folders", "two-teams", "one-job"],
    ["-C", str(ROOT / "tests/repositories/two-teams"), "report", "-o", "{folder}"],
    ["-C", str(ROOT / "tests/repositories/two-teams"), "new", "bert"],
    ["-C", "{folder}", "init", "new"],
)
"""What the process runs that others are forked from, so that shipped data is read once."""


def run_here(arguments: list[str]) -> tuple[int, str, str]:
    """Run one command in this process, and return its exit code, its output in Base64, and its standard error."""
    process, leave = os.getpid(), os._exit

    def end(code: int) -> None:
        if os.getpid() != process:  # a forked worker really ends
            leave(code)
        raise SystemExit(code)

    streams = sys.stdout, sys.stderr
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in streams)
    sys.argv, sys.stdout, sys.stderr, os._exit = ["jobgen", *arguments], out, err, end
    try:
        runpy.run_module("jobgen", run_name="__main__")
        code = 0
    except SystemExit as done:
        code = done.code
    finally:
        (sys.stdout, sys.stderr), os._exit = streams, leave
    out.flush()
    err.flush()
    return code, base64.b64encode(out.buffer.getvalue()).decode(), err.buffer.getvalue().decode()


def run_jobgen(
    cwd: Path,
    *arguments: str,
    given: bytes = b"",
    env: Mapping[str, str] | None = None,
    timeout: float = 300,
    limit: Callable[[], None] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run one command in a process of its own; `limit` is called once in the process that it is forked from."""
    words = list(map(str, arguments))
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        stdin.write(given)
        stdin.seek(0)
        files = (stdin.fileno(), out.fileno(), err.fileno())
        request = Request(_find_server(limit), words, str(cwd), os.environ if env is None else env, files)
        try:
            code = request.wait(timeout)
        except TimeoutError:
            os.kill(request.process, signal.SIGKILL)
            request.wait()
            raise subprocess.TimeoutExpired(["jobgen"], timeout) from None
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(["jobgen", *words], code, out.read(), err.read())


def run_jobgen_text(cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run one command in a process of its own, and return its output as text."""
    done = run_jobgen(cwd, *arguments)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def name_program() -> list[str]:
    """Return the words of a program that runs each command as `run_jobgen` does. Signals end the program only."""
    return [sys.executable, "-IS", jobgenclient.__file__, _find_server(None)]


def install_jobgen(folder: Path) -> None:
    """Write a program `jobgen` that runs each command as `run_jobgen` does, for scripts, hooks and shells."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "jobgen").write_text(f'#!/bin/sh\nexec {shlex.join(name_program())} "$@"\n')
    (folder / "jobgen").chmod(0o755)


def start_server() -> None:
    """Start the process that commands are forked from, for this process and those that are forked from it."""
    _start_server(None)


class _Server:
    """A process that has run jobgen, and forks a process for each command. It ends with this process."""

    def __init__(self, limit: Callable[[], None] | None) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="jobgen-server-")
        self.address = str(Path(self.folder.name, "socket"))
        # What decides the encoding of standard streams is the same on every machine.
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH", "HOME")}
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self.address)
            listener.listen(128)
            self.process = subprocess.Popen(
                [sys.executable, __file__, str(listener.fileno())],
                env=kept,
                pass_fds=[listener.fileno()],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                preexec_fn=limit,  # noqa: PLW1509
            )
        atexit.register(self.close, os.getpid())

    def close(self, process: int) -> None:
        """End the process and wait for it, so that its CPU time is that of a child."""
        if os.getpid() == process:
            self.process.communicate()
            self.folder.cleanup()


_start_server = functools.cache(_Server)


def _find_server(limit: Callable[[], None] | None) -> str:
    return _start_server(limit).address


def _serve(listener: socket.socket) -> None:
    """Run commands for all who ask, several at a time, until standard input ends."""
    with tempfile.TemporaryDirectory() as folder:
        for arguments in WARM_UP:
            run_here([word.replace("{folder}", folder) for word in arguments])
    # Most of the start of a language server is to load this.
    with contextlib.suppress(ImportError):
        importlib.import_module("pygls.lsp.server")
    gc.collect()
    gc.freeze()  # forked processes share what is never looked at again
    running: dict[int, socket.socket] = {}
    signalled, signals = socket.socketpair()
    signals.setblocking(False)
    signal.set_wakeup_fd(signals.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready, _, _ = select.select([0, listener, signalled], [], [])
        if 0 in ready:
            return
        if listener in ready:
            asking, _ = listener.accept()
            process = _start(asking, (listener, signalled, signals, *running.values()))
            running[process] = asking
            asking.sendall(process.to_bytes(4, "big"))
        if signalled in ready:
            signalled.recv(4096)
        while running and (ended := os.waitpid(-1, os.WNOHANG))[0]:
            with contextlib.suppress(BrokenPipeError), running.pop(ended[0]) as asking:
                asking.sendall(os.waitstatus_to_exitcode(ended[1]).to_bytes(4, "big", signed=True))


def _start(asking: socket.socket, others: Iterable[socket.socket]) -> int:
    """Fork a process that runs the command that is asked for; return its number."""
    size, files, _, _ = socket.recv_fds(asking, 4, 3)
    request = marshal.loads(asking.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL))
    process = os.fork()
    if not process:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for each in (asking, *others):
            each.close()
        _run_and_exit(files, *request)
    for file in files:
        os.close(file)
    return process


def _run_and_exit(files: list[int], arguments: list[str], cwd: str, env: dict[str, str]) -> NoReturn:
    try:
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(env)
        sys.argv = ["jobgen", *arguments]
        runpy.run_module("jobgen", run_name="__main__")
    except BaseException:  # noqa: BLE001 -- as the interpreter does
        traceback.print_exc()
        sys.stderr.flush()
    os._exit(1)


if __name__ == "__main__":
    sys.path.pop(0)  # the folder of the tests is not for jobgen to import from
    _serve(socket.socket(fileno=int(sys.argv[1])))
