"""The server and its workspaces."""

from __future__ import annotations

import asyncio
import logging
import pickle
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path
from pygls.workspace import TextDocument

from jobgen.features.editor.completion.names import KnownCache
from jobgen.features.editor.context import GoodText
from jobgen.features.editor.index import Decisions, DecisionsAnswer
from jobgen.features.editor.lint_workspace import HEAD_BYTES, Request, Snapshot, decode_length, encode_frame
from jobgen.features.editor.workspace import Workspace
from jobgen.model.finding import Finding
from jobgen.model.limits import MAX_PATH_LENGTH
from jobgen.repo.root import find_root, has_settings
from jobgen.reports.escape import visible

MAX_SECONDS = 3.0
"""The time of the CPU that one answer may take."""
SLOW_PAUSE = 60.0
"""How long what takes too long is not tried again."""
MAX_STARTS = 5
"""How often the process is started within a minute."""
_STARTS_WITHIN = 60.0
_END_SECONDS = 2.0
log = logging.getLogger("jobgen.lsp")
Handler = TypeVar("Handler", bound=Callable[..., Any])
Result = TypeVar("Result")


class TimeLimitError(BaseException):
    """An answer takes too long. It is no Exception, so that no handler of errors on the way takes it for a bug."""


class _Limit:
    """True if the code that runs may be interrupted."""

    is_active = False


def run_limited(seconds: float, function: Callable[..., Result], *args: Any) -> Result:
    """Call a function. If it takes longer than it may, raise a TimeLimitError."""
    is_main = threading.current_thread() is threading.main_thread()
    if _Limit.is_active or not is_main or not hasattr(signal, "setitimer"):
        return function(*args)
    signal.signal(signal.SIGPROF, _interrupt)
    try:
        # The signal may come after the function has ended, which must not leave the limit active.
        try:
            _Limit.is_active = True
            # It interrupts again if code that Python calls on its own has ignored the first exception.
            signal.setitimer(signal.ITIMER_PROF, seconds, 0.5)
            return function(*args)
        finally:
            _Limit.is_active = False
    finally:
        _Limit.is_active = False
        signal.setitimer(signal.ITIMER_PROF, 0)


def _interrupt(*_: object) -> None:
    if _Limit.is_active:
        raise TimeLimitError


class Worker:
    """The background process of a workspace. A process that ends is started again, and gets the newest request."""

    def __init__(self, root: Path, take: Callable[[Snapshot | DecisionsAnswer], None]) -> None:
        self.number = 0
        """The number of the newest request."""
        self.watches = False
        """True if the process looks for changed files, because the editor does not report them."""
        self._root = root
        self._take = take
        self._starts: deque[float] = deque(maxlen=MAX_STARTS)
        self._process: asyncio.subprocess.Process | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._sending = asyncio.Lock()
        self._waiting: asyncio.TimerHandle | None = None
        self._next: Request | None = None
        """The request that is sent after the one that is being sent."""
        self._unanswered: Request | None = None
        """The newest request, until it is answered."""
        self._is_stopped = False

    def request(self, drafts: Mapping[str, bytes], delay: float = 0) -> None:
        """Ask for a lint of everything, after a pause in which no other request arrives."""
        self.number += 1
        self._unanswered = Request(self.number, dict(drafts), self.watches)
        self._send_later(self._unanswered, delay)

    def stop(self) -> None:
        """End the process."""
        self._is_stopped = True
        if self._waiting:
            self._waiting.cancel()
        if self._process and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()

    async def end(self) -> None:
        """End the process, and wait until it has ended: the loop must not close before its pipes."""
        self.stop()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_END_SECONDS)
            await asyncio.sleep(0)

    def _send_later(self, request: Request, delay: float) -> None:
        if self._waiting:
            self._waiting.cancel()
        if not self._is_stopped:
            self._waiting = asyncio.get_running_loop().call_later(delay, lambda: self._start(self._send(request)))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finish)

    def _finish(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.warning("the background process of %s: %r", self._root, error)

    async def _send(self, request: Request) -> None:
        """Send a request. While another one is being sent, only the newest waits: a process may read nothing."""
        self._next = request
        if self._sending.locked():
            return
        async with self._sending:
            while self._next and not self._is_stopped:
                request, self._next = self._next, None
                if self._process is None or self._process.returncode is not None:
                    if wait := self._find_pause():
                        self._send_later(request, wait)
                        continue
                    self._process = await self._start_process()
                if self._process.stdin:
                    # If it has just ended, the request is sent to the next one.
                    with suppress(ConnectionError):
                        self._process.stdin.write(encode_frame(request))
                        await self._process.stdin.drain()

    def _find_pause(self) -> float:
        """Return how long to wait before the process is started again; 0 if it has not been started often."""
        if len(self._starts) < MAX_STARTS:
            return 0
        return max(0.0, self._starts[0] + _STARTS_WITHIN - time.monotonic())

    async def _start_process(self) -> asyncio.subprocess.Process:
        self._starts.append(time.monotonic())
        # The current folder is often the workspace, whose modules must not be imported (-P).
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "jobgen", "lsp", "--background", str(self._root)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        self._start(self._receive(process))
        return process

    async def _receive(self, process: asyncio.subprocess.Process) -> None:
        """Take answers until the process ends; then send the request that it has not answered to a new one."""
        assert process.stdout is not None
        try:
            while True:
                head = await process.stdout.readexactly(HEAD_BYTES)
                content = await process.stdout.readexactly(decode_length(head))
                answer = pickle.loads(content)  # noqa: S301 -- written by our own process
                if self._unanswered and answer.number >= self._unanswered.number:
                    self._unanswered = None
                if not self._is_stopped:
                    self._take(answer)
        except asyncio.IncompleteReadError:
            pass
        except Exception:
            log.exception("an answer of the background process of %s could not be used", self._root)
            with suppress(ProcessLookupError):
                process.kill()
        await process.wait()
        if self._is_stopped:
            return
        log.warning("the background process of %s has ended with code %s", self._root, process.returncode)
        pause = self._find_pause()
        if pause:
            log.warning("it has ended %d times within a minute; it is started again in %d s", MAX_STARTS, pause)
        if self._unanswered:
            self._send_later(self._unanswered, pause)


class OpenWorkspace:
    """A workspace of the editor, its background process, and who wants to know about new results."""

    def __init__(self, folder: Path, notify: Callable[[OpenWorkspace], None]) -> None:
        self.workspace = Workspace(folder)
        self.uris: dict[str, str] = {}
        """The URIs of open documents, as the editor writes them, by path from the root."""
        self.shown: dict[str, tuple[tuple[Finding, ...], int | None]] = {}
        """The findings that the editor shows, and the version of the document, by path from the root."""
        self.alone: dict[str, tuple[Finding, ...]] = {}
        """The findings that open documents have by themselves, as they are now."""
        self.good: dict[str, GoodText] = {}
        """What open documents had before a line of them was half typed."""
        self.half_typed: set[str] = set()
        """The documents whose findings are kept although a line of them is half typed."""
        self.edited: dict[str, int] = {}
        """The number of the first request that has the newest edit of a document."""
        self.slow: dict[str, float] = {}
        """When a document that takes too long may be linted by itself again."""
        self.is_shared = True
        """True if files beside the open documents are linted too."""
        self.known = KnownCache()
        """What the repository knows: kinds, clusters and names."""
        self._logged: dict[str, str] = {}
        """The errors of the last results, by what was not done."""
        self.warning = ""
        """What the editor is to show, because findings may be missing; empty once it has."""
        self._notify = notify
        self.worker = Worker(self.workspace.root, self._take)

    def is_current(self, file: str) -> bool:
        """Return True if the background process has linted a file as it is in the editor, by its path from the root."""
        return self.workspace.snapshot.number >= self.edited.get(file, 0)

    def find_decisions(self) -> Decisions:
        """Return what Kueue decides about the jobs as they are now; empty if it is not known, or not yet."""
        answer, newest = self.workspace.decisions, max((self.worker.number, *self.edited.values()))
        return answer.decisions if answer.number >= newest else {}

    def forget(self) -> None:
        """Forget what was computed from files, so that it is computed again."""
        self.workspace.forget()
        self.known = KnownCache()

    def request_lint(self, delay: float = 0) -> None:
        """Lint everything in the background, with the contents of open documents."""
        if self.is_shared:
            self.worker.request(self.workspace.drafts, delay)

    def _take(self, answer: Snapshot | DecisionsAnswer) -> None:
        if isinstance(answer, DecisionsAnswer):
            self.workspace.decisions = answer
            self._log_once("the queues of %s were not simulated: %s", answer.error)
        else:
            self.workspace.take(answer)
            is_new = self._log_once("the workspace %s was not linted: %s", answer.error)
            if answer.has_failed and is_new:
                self.warning = f"{self.workspace.root} was not linted, and its findings are old: {answer.error}"
        self._notify(self)

    def _log_once(self, text: str, error: str) -> bool:
        """Write an error to the log and return True, unless the last results had it too: each edit has new results."""
        is_new = bool(error) and error != self._logged.get(text)
        if is_new:
            log.warning(text, self.workspace.root, error)
        self._logged[text] = error
        return is_new


class JobgenServer(LanguageServer):
    """The language server of jobgen."""

    def __init__(self) -> None:
        super().__init__("jobgen", version("jobgen"), types.TextDocumentSyncKind.Incremental)
        self.workspaces: dict[Path, OpenWorkspace] = {}
        self.watches = False
        """True if the background processes look for changed files, because the editor does not report them."""
        self.options: dict[str, Any] = {}
        """The settings that the editor sent when it started the server."""
        self.client_commands: frozenset[str] = frozenset()
        """The commands that the editor has for this server."""
        self._slow: dict[tuple[str, str], float] = {}
        """When a request about a document that takes too long may be tried again, by method and URI."""
        self.edit_listeners: list[Callable[[OpenWorkspace], None]] = []
        """Called when a document has been edited, and linted by itself."""
        self.listeners: list[Callable[[OpenWorkspace], None]] = []
        """Called when a workspace has new results."""

    def feature(self, feature_name: str, options: Any = None) -> Callable[[Handler], Handler]:
        """Register what answers a request. If it raises an exception, the answer is empty, and the server lives."""
        register = super().feature(feature_name, options)

        def add(handler: Handler) -> Handler:
            known = types.METHOD_TO_TYPES.get(feature_name)
            is_computed = known is not None and known[1] is not None
            is_limited = is_computed and feature_name not in (types.INITIALIZE, types.SHUTDOWN)
            is_limited = is_limited and not asyncio.iscoroutinefunction(handler)
            register(guard(feature_name, partial(self._answer, feature_name, handler) if is_limited else handler))
            return handler

        return add

    def command(self, command_name: str) -> Callable[[Handler], Handler]:
        """Register a command. If it raises an exception, its result is empty, and the server lives."""
        register = super().command(command_name)

        def add(handler: Handler) -> Handler:
            register(guard(command_name, handler))
            return handler

        return add

    def _answer(self, method: str, handler: Callable[..., Result], params: Any) -> Result | None:
        """Answer a request; with nothing, if the same request about the document has just taken too long.

        Editors ask again after each edit, so that a few large documents would keep the server from all others.
        """
        asked = method, getattr(getattr(params, "text_document", None), "uri", "")
        now = time.monotonic()
        if self._slow.get(asked, 0) > now:
            return None
        try:
            return self.limit(handler, params)
        except TimeLimitError:
            self._slow = {each: until for each, until in self._slow.items() if until > now}
            self._slow[asked] = time.monotonic() + SLOW_PAUSE
            raise

    def limit(self, function: Callable[..., Result], *args: Any) -> Result:
        """Call a function. If it takes longer than an answer may, raise a TimeLimitError."""
        try:
            return run_limited(MAX_SECONDS, function, *args)
        except TimeLimitError:
            # It was interrupted anywhere, so what it was about to keep may be incomplete.
            for opened in self.workspaces.values():
                opened.forget()
            raise

    def report_server_error(self, error: Exception, source: type[Exception]) -> None:
        """Write an error to the log. A message on the screen for each would disturb the user."""
        log.warning("%s: %s", source.__name__, error)

    def find_workspace(self, uri: str) -> tuple[OpenWorkspace, str] | None:
        """Return the workspace of a document, and its path from the root; None for other documents.

        A document of another jobs repository, which may be inside one of the editor's folders, has its own workspace.
        A document outside of the editor's folders that belongs to no repository is linted by itself.
        """
        full = _read_path(uri)
        if full is None:
            return None
        settings = _find_settings(full)
        if settings is not None:
            opened = self.workspaces.get(settings.resolve()) or self.open_folder(settings)
        else:
            found = [(each, file) for each in self.workspaces.values() if (file := each.workspace.find_relative(full))]
            if found or not Path(full).parent.is_dir():
                return max(found, key=lambda each: len(each[0].workspace.root.parts), default=None)
            opened = self.open_folder(Path(full).parent, is_shared=False)
        file = opened.workspace.find_relative(full)
        return (opened, file) if file is not None else None

    def list_workspaces(self, uri: str) -> list[OpenWorkspace]:
        """Return the workspaces that are open and have a file."""
        full = _read_path(uri)
        return [each for each in self.workspaces.values() if full and each.workspace.find_relative(full)]

    def open_folder(self, folder: Path, *, is_shared: bool = True) -> OpenWorkspace:
        """Open a folder, unless its repository is open already."""
        opened = OpenWorkspace(folder, self._notify)
        known = self.workspaces.setdefault(opened.workspace.root, opened)
        if known is opened or (is_shared and not known.is_shared):
            known.is_shared = is_shared
            known.worker.watches = self.watches
            known.request_lint()
        return known

    def has_nearer(self, opened: OpenWorkspace, file: str) -> bool:
        """Return True if a file of a workspace belongs to a repository inside of it."""
        settings = _find_settings(str(opened.workspace.root / file))
        return settings is not None and settings.resolve() != opened.workspace.root

    def _notify(self, opened: OpenWorkspace) -> None:
        if opened.warning:
            message, opened.warning = visible(f"jobgen: {opened.warning}"), ""
            self.window_show_message(types.ShowMessageParams(types.MessageType.Error, message))
        for listener in self.listeners:
            guard("results", listener)(opened)

    def find_document(self, uri: str) -> TextDocument | None:
        """Return an open document; None if it is not open."""
        found: TextDocument | None = self.workspace.text_documents.get(unquote(uri))
        return found

    def find_uri(self, opened: OpenWorkspace, file: str) -> str:
        """Return the URI of a file of a workspace, as the editor writes it if the file is open."""
        return opened.uris.get(file) or from_fs_path(opened.workspace.name_file(file)) or ""


@contextmanager
def _log_errors(name: str) -> Iterator[None]:
    try:
        yield
    except TimeLimitError:
        log.warning("`%s` takes longer than %d s, so it is not answered", name, MAX_SECONDS)
    except Exception:
        log.exception("`%s` failed; please report this bug in jobgen", name)


def guard(name: str, handler: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls a handler. An exception of it is logged with the name, and the result is None.

    A command gets its arguments as they were sent, since pygls cannot see the types that the handler wants.
    """
    if asyncio.iscoroutinefunction(handler):

        async def guarded(*args: Any) -> Any:
            with _log_errors(name):
                return await handler(*args)
    else:

        def guarded(*args: Any) -> Any:  # type: ignore[misc]
            with _log_errors(name):
                return handler(*args)

    return guarded


def _read_path(uri: str) -> str | None:
    """Return the path of a file; None for another URI, and for a path that no file has."""
    try:
        full = to_fs_path(uri) if uri.startswith("file:") else None
    except ValueError:  # a host such as `[`
        return None
    return full if full and "\0" not in full and len(full) <= MAX_PATH_LENGTH else None


def _find_settings(full: str) -> Path | None:
    """Return the nearest folder above a document that has settings; None if there is none."""
    folder = Path(full).parent
    found = find_root(folder)
    return found if found is not None and has_settings(found) else None
