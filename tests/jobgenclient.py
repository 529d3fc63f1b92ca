"""Ask the server of jobgenprocess.py to run a command. Imports little, so that it starts in few milliseconds.

`python -IS jobgenclient.py ADDRESS WORD...` does what `jobgen WORD...` does, with the streams, the folder and the
variables of this process. Signals are not passed on.
"""

from __future__ import annotations

import _socket
import marshal
import os
import sys
from collections.abc import Iterable, Mapping, Sequence


class Request:
    """A command that the server runs."""

    def __init__(
        self, address: str, words: Sequence[str], cwd: str, env: Mapping[str, str], files: Iterable[int]
    ) -> None:
        self.connection = _socket.socket(_socket.AF_UNIX)
        self.connection.connect(address)
        request = marshal.dumps((list(words), cwd, dict(env)))
        numbers = b"".join(file.to_bytes(4, sys.byteorder) for file in files)
        self.connection.sendmsg([len(request).to_bytes(4, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, numbers)])
        self.connection.sendall(request)
        self.process = self._receive()

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code of the command; if a signal ended it, the negative number of the signal."""
        self.connection.settimeout(timeout)
        code = self._receive()
        self.connection.close()
        return code

    def _receive(self) -> int:
        answer = self.connection.recv(4)
        assert answer, "the process that runs jobgen has ended"
        return int.from_bytes(answer, "big", signed=True)


if __name__ == "__main__":
    code = Request(sys.argv[1], sys.argv[2:], os.getcwd(), os.environ, (0, 1, 2)).wait()
    # As a shell reports the end by a signal.
    os._exit(code if code >= 0 else 128 - code)
