"""Run many jobgen commands, each exactly as `python -m jobgen` would run it, without starting Python for each.

Starting an interpreter, importing jobgen and reading the shipped kinds and policies costs more than most commands.
`run_commands` runs several commands in one child process. `run_jobgen` forks a process for each command from one that
has done all this. Nothing here names a module of jobgen.
"""

from __future__ import annotations

import atexit
import base64
import functools
import gc
import io
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

ROOT = Path(__file__).parent.parent
WARM_UP = (
    ["-C", str(ROOT / "tests/repositories/two-teams"), "lint", "--no-cache"],
    ["-C", str(ROOT), "lint", "--no-cache"],
    ["-C", str(ROOT), "render", "-e", "prod"],
)
"""What the process runs that others are forked from, so that shipped data is read once."""


class Outcome(NamedTuple):
    """What a command left behind: its exit code and what it printed."""

    code: int
    out: bytes
    err: str


def run_commands(commands: Sequence[Sequence[str]], cache: Path) -> list[Outcome]:
    """Run the commands one after another; they share the cache folder and start outside of any repository."""
    with tempfile.TemporaryDirectory() as elsewhere:
        done = subprocess.run(
            [sys.executable, __file__],
            input=json.dumps([list(map(str, command)) for command in commands]),
            cwd=elsewhere,
            env={**os.environ, "XDG_CACHE_HOME": str(cache)},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    return [Outcome(code, base64.b64decode(out), err) for code, out, err in json.loads(done.stdout)]


def run_here(arguments: list[str]) -> tuple[int, str, str]:
    """Run one command in this process and capture what it prints."""
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
    timeout: float = 60,
    limit: Callable[[], None] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run one command in a process of its own; `limit` is called once in the process that it is forked from."""
    words = list(map(str, arguments))
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        stdin.write(given)
        stdin.seek(0)
        request = {"arguments": words, "cwd": str(cwd), "env": dict(os.environ if env is None else env)}
        code = _start_server(limit).run(request, [stdin.fileno(), out.fileno(), err.fileno()], timeout)
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(["jobgen", *words], code, out.read(), err.read())


def run_jobgen_text(cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run one command in a process of its own, and return its output as text."""
    done = run_jobgen(cwd, *arguments)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


class _Server:
    """A process that has run jobgen, and forks a process for each command. It serves one command at a time."""

    def __init__(self, limit: Callable[[], None] | None) -> None:
        self.connection, other = socket.socketpair()
        # What decides the encoding of standard streams is the same on every machine.
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH", "HOME")}
        with other:
            self.process = subprocess.Popen(
                [sys.executable, __file__, str(other.fileno())],
                env=kept,
                pass_fds=[other.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                preexec_fn=limit,  # noqa: PLW1509
            )
        atexit.register(self.close, os.getpid())

    def run(self, request: dict[str, object], files: list[int], timeout: float) -> int:
        """Return the exit code of a command; if a signal ended it, the negative number of the signal."""
        text = json.dumps(request).encode()
        socket.send_fds(self.connection, [len(text).to_bytes(4, "big")], files)
        self.connection.sendall(text)
        process = self._receive(None)
        try:
            return self._receive(timeout)
        except TimeoutError:
            os.kill(process, signal.SIGKILL)
            self._receive(None)
            raise subprocess.TimeoutExpired(["jobgen"], timeout) from None

    def _receive(self, timeout: float | None) -> int:
        self.connection.settimeout(timeout)
        answer = self.connection.recv(4)
        assert answer, "the process that runs jobgen has ended"
        return int.from_bytes(answer, "big", signed=True)

    def close(self, process: int) -> None:
        """End the process and wait for it, so that its CPU time is that of a child."""
        if os.getpid() == process:
            self.connection.close()
            self.process.wait()


_start_server = functools.cache(_Server)


def _serve(connection: socket.socket) -> None:
    for arguments in WARM_UP:
        run_here(arguments)
    gc.collect()
    gc.freeze()  # forked processes share what is never looked at again
    while True:
        size, files, _, _ = socket.recv_fds(connection, 4, 3)
        if not size:
            return
        request = json.loads(connection.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL))
        process = os.fork()
        if not process:
            connection.close()
            _run_and_exit(files, **request)
        for file in files:
            os.close(file)
        connection.sendall(process.to_bytes(4, "big"))
        _, status = os.waitpid(process, 0)
        connection.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, "big", signed=True))


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
    if sys.argv[1:]:
        _serve(socket.socket(fileno=int(sys.argv[1])))
    else:
        json.dump([run_here(arguments) for arguments in json.load(sys.stdin)], sys.stdout)
