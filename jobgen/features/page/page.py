"""Assemble the page: a shell with one style, one script and the data, and a policy that allows nothing else."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from operator import sub
from pathlib import Path
from urllib.parse import SplitResult, quote, urlsplit

from jobgen import __version__
from jobgen.api.errors import UsageError
from jobgen.k8s.redaction import hide_credentials
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.repo import git
from jobgen.repo.changed_files import list_changed_files
from jobgen.reports.escape import visible

# Encode the data of a page as compact JSON: one list of texts, and tables whose columns are numbers.

VERSION = 1
NONE = -1
"""A reference to no row."""
_MAX_SKIPPED = 12
"""How many lines of the base are dropped to go on copying; a line that is equal by chance may be far away."""
_TEXT = ":text"
_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
# What an added line says about its sources.
_NO_SOURCE, _NEXT_LINE, _OTHER_LINE, _ALL_SOURCES = range(4)


# A page has hundreds of thousands of these. Tuples are sent to another process in a tenth of the time of named ones.
LineSource = tuple[str, str, int, str]
"""A layer that sets the value of a line, its file, which is empty if no file does, the line there, and the value.

The value is the one that another layer overrides; it is empty for the layer that wins.
"""

Line = tuple[str, tuple[LineSource, ...]]
"""The text of a line, and its sources: the first one wins, and the others are overridden."""


class Change(NamedTuple):
    """How many lines of the base are skipped, how many are then copied, and the lines that are then added."""

    skipped: int
    copied: int
    added: tuple[Line, ...]


def find_changes(lines: Sequence[Line], base: Sequence[Line] = ()) -> tuple[Change, ...]:
    """Find the changes that turn the lines of the base into other lines.

    One pass: a line is copied from the next place of the base that has it, if that is near.
    """
    if not base:
        return (Change(0, 0, tuple(lines)),)
    changes: list[Change] = []
    at, skipped, copied, added = 0, 0, 0, list[Line]()
    end = len(base)
    for line in lines:
        if at < end and base[at] == line:
            found = at
        else:
            near = base[at : at + _MAX_SKIPPED + 1]
            if line not in near:
                added.append(line)
                continue
            found = at + near.index(line)
        if found > at or added:
            changes.append(Change(skipped, copied, tuple(added)))
            skipped, copied, added = found - at, 0, []
        copied += 1
        at = found + 1
    changes.append(Change(skipped, copied, tuple(added)))
    return tuple(change for change in changes if any(change))


class Table(NamedTuple):
    """Rows of a table. A column `a:text` has texts, `a:jobs` the numbers of rows of `jobs`, `a` plain numbers."""

    name: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[str | int]]
    lines: Sequence[Sequence[Change]] = ()
    """The lines of each row, as changes to those of its `base`."""


def encode(view: str, head: Mapping[str, str | int], tables: Sequence[Table]) -> str:
    """Return the JSON of a page, which is safe inside of a `script` element.

    The tables `files` and `origins` are added: the files that tables refer to by `:files`, which have their paths here,
    and the layers in files that set values.
    """
    writer = _Writer(tables)
    written = {table.name: writer.write_table(table) for table in tables if table.rows}
    shown = {
        name: visible(hide_credentials(value)) if isinstance(value, str) else value for name, value in head.items()
    }
    document = {
        "version": VERSION,
        "view": view,
        "head": shown,
        "tables": {**written, **{table.name: writer.write_table(table) for table in writer.list_places()}},
        "texts": [visible(hide_credentials(text)) for text in writer.texts],
    }
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


class _Writer:
    """Writes tables. A text that is used often has a small number, which is short."""

    def __init__(self, tables: Sequence[Table]) -> None:
        self._parts: dict[str, tuple[int, str]] = {}
        self._origins = {("", ""): 0}
        self._files = {"": NONE}
        counts = Counter[str]()
        for table in tables:
            counts.update(self._list_texts(table))
        counts.update(part for origin in self._origins for part in origin)
        counts.update(self._files)
        self.texts = ["", *(text for text, _ in counts.most_common() if text)]
        self._numbers = {text: number for number, text in enumerate(self.texts)}
        self._lines = {line: (level, self._numbers[text]) for line, (level, text) in self._parts.items()}

    def _list_texts(self, table: Table) -> list[str]:
        """List every text each time that it is used; note lines, files and origins on the way."""
        texts: list[str] = []
        for place, column in enumerate(table.columns):
            if column.endswith(_TEXT):
                texts += [str(row[place]) for row in table.rows]
            elif column.endswith(":files"):
                self._note_files([str(row[place]) for row in table.rows])
        for changes in table.lines:
            for change in changes:
                texts += self._list_line_texts(change.added)
        return texts

    def _list_line_texts(self, lines: Iterable[Line]) -> list[str]:
        parts, origins, texts = self._parts, self._origins, list[str]()
        for text, sources in lines:
            split = parts.get(text)
            if split is None:
                # The level of indentation, two spaces each, and the text.
                rest = text.lstrip(" ")
                level, odd = divmod(len(text) - len(rest), 2)
                split = parts[text] = (level, " " * odd + rest) if rest else (0, "")
            texts.append(split[1])
            for place, (layer, file, _, value) in enumerate(sources):
                if (layer, file) not in origins:
                    self._note_files((file,))
                    origins[layer, file] = len(origins)
                if place:
                    texts.append(value)
        return texts

    def _note_files(self, files: Iterable[str]) -> None:
        for file in files:
            self._files.setdefault(file, len(self._files) - 1)

    def list_places(self) -> list[Table]:
        """List the tables of files and origins."""
        return [
            Table("files", ("path:text",), [(file,) for file in self._files if file]),
            Table("origins", ("layer:text", "file:files"), list(self._origins)),
        ]

    def write_table(self, table: Table) -> dict[str, object]:
        """Return a table by columns, each as the distances of its numbers, and its lines."""
        columns: dict[str, str] = {}
        for place, column in enumerate(table.columns):
            values = [row[place] for row in table.rows]
            if column.endswith(_TEXT):
                columns[column] = encode_distances([self._numbers[str(value)] for value in values])
            elif column.endswith(":files"):
                columns[column] = encode_distances([self._files[str(value)] for value in values])
            else:
                columns[column] = encode_distances(list(map(int, values)))
        written: dict[str, object] = {"rows": len(table.rows), "columns": columns}
        if table.lines:
            written["lines"] = [encode_numbers(self._write_changes(changes)) for changes in table.lines]
        return written

    def _write_changes(self, changes: Sequence[Change]) -> list[int]:
        """Return the numbers of changes. Each line is relative to the one before it: its level, origin and number."""
        numbers: list[int] = []
        level = origin = at = 0
        for skipped, copied, added in changes:
            numbers += (skipped, copied, len(added))
            for text, sources in added:
                depth, number = self._lines[text]
                step = _to_unsigned(depth - level) << 2
                level = depth
                if not sources:
                    numbers += (number, step | _NO_SOURCE)
                    continue
                layer, file, line, _ = sources[0]
                first = self._origins[layer, file]
                if len(sources) > 1 or first != origin:
                    numbers += (number, step | _ALL_SOURCES, len(sources))
                    self._write_sources(sources, at, numbers)
                elif line == at + 1:
                    numbers += (number, step | _NEXT_LINE)
                else:
                    numbers += (number, step | _OTHER_LINE, _to_unsigned(line - at))
                origin, at = first, line
        return numbers

    def _write_sources(self, sources: Sequence[LineSource], at: int, numbers: list[int]) -> None:
        for place, (layer, file, line, value) in enumerate(sources):
            numbers += (self._origins[layer, file], _to_unsigned(line - at))
            numbers += (self._numbers[value],) if place else ()
            at = line


@lru_cache(maxsize=65_536)
def _to_unsigned(number: int) -> int:
    """Return an integer with its sign in the lowest bit."""
    return number << 1 if number >= 0 else (-number << 1) | 1


def encode_distances(numbers: Sequence[int]) -> str:
    """Encode integers, each as the distance to the one before it."""
    distances = map(sub, numbers, (0, *numbers[:-1]))
    return encode_numbers(map(_to_unsigned, distances))


def encode_numbers(numbers: Iterable[int]) -> str:
    """Encode integers that are not negative in base 64: five bits in each digit, 32 in all digits but the last."""
    return "".join(map(_encode_number, numbers))


@lru_cache(maxsize=65_536)
def _encode_number(number: int) -> str:
    digits = ""
    while number > 31:
        digits += _DIGITS[32 | number & 31]
        number >>= 5
    return digits + _DIGITS[number]


_TOKEN = lazy_pattern(r"\{\{(\w+)((?: [\w.-]+)*)\}\}")
_ELEMENT = lazy_pattern(r"<(style|script)>(.*?)</\1>", re.DOTALL)


def assemble_page(title: str, data: str) -> str:
    """Return the page. `data` is the JSON of `encode`; the title is the only other text that users write."""
    title = visible(hide_credentials(title))
    assets = files("jobgen").joinpath("data", "page")

    def read_assets(names: str) -> str:
        return "\n".join(assets.joinpath(name).read_text("utf-8").strip() for name in names.split())

    shell = read_assets("page.html")
    fixed = _TOKEN.sub(lambda token: read_assets(token[2]) if token[1] == "files" else token[0], shell)
    values = {"policy": _make_policy(fixed), "title": escape(title), "favicon": _make_favicon(title), "data": data}
    # One pass, so that nothing in a value is replaced.
    head, found, tail = fixed.partition("{{data}}")
    parts = [_TOKEN.sub(lambda token: values.get(token[1], token[0]), part) for part in (head, tail)]
    return (data if found else "").join(parts) + "\n"


def _make_policy(shell: str) -> str:
    """Return the Content-Security-Policy: only the styles and scripts of the shell, by their hashes."""
    hashes: dict[str, list[str]] = {"style": [], "script": []}
    for name, content in _ELEMENT.findall(shell):
        digest = b64encode(sha256(content.encode()).digest()).decode()
        hashes[name].append(f"'sha256-{digest}'")
    allowed = [f"{name}-src {' '.join(found)}" for name, found in hashes.items() if found]
    return "; ".join(("default-src 'none'", *allowed, "img-src data:", "base-uri 'none'", "form-action 'none'"))


def _make_favicon(title: str) -> str:
    """Return an icon as a data URL: the first letter of the repository, in a color that is its own."""
    letter = next((character for character in title if character.isalnum()), "j").upper()
    hue = sha256(title.partition("@")[0].encode("utf-8", "replace")).digest()[0] * 360 // 256
    image = (
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'>"
        f"<rect width='32' height='32' rx='7' fill='hsl({hue} 60% 35%)'/>"
        "<text x='16' y='23' font-family='sans-serif' font-size='20' font-weight='700' text-anchor='middle' "
        f"fill='#fff'>{escape(letter)}</text></svg>"
    )
    return "data:image/svg+xml," + quote(image, safe="")


GITHUB, GITLAB, GITEA = "GitHub", "GitLab", "Gitea"
BITBUCKET, BITBUCKET_SERVER, AZURE = "Bitbucket Cloud", "Bitbucket Server", "Azure DevOps"
_FORMS = {
    GITHUB: "/blob/{revision}/{file}#L{line}",
    GITLAB: "/-/blob/{revision}/{file}#L{line}",
    GITEA: "/src/commit/{revision}/{file}#L{line}",
    BITBUCKET: "/src/{revision}/{file}#lines-{line}",
    BITBUCKET_SERVER: "/browse/{file}?at={revision}#{line}",
    AZURE: "?path=/{file}&version=GC{revision}&line={line}&lineEnd={line}&lineStartColumn=1&lineEndColumn=999",
}
# The server of a host, by a word of its name: `github.com`, `gitlab.example.com`, `git.forgejo.example.com`.
_WORDS = {"github": GITHUB, "ghe": GITHUB, "gitlab": GITLAB, "gitea": GITEA, "forgejo": GITEA, "codeberg": GITEA}
_FIELDS = ("revision", "file", "line")

_WEB = ("https", "http")
_HOST = lazy_pattern(r"[a-z0-9-]+(\.[a-z0-9-]+)+")
_SCP = lazy_pattern(r"(?:[^@/:\s]*@)?([^@/:\s]+):(?!//)([^\s]+)")
_SERVER_PATH = lazy_pattern(r"(/[^/]+)*/(projects|users)/[^/]+/repos/[^/]+")
_PLACEHOLDER = lazy_pattern(r"\{([^{}]*)\}")
_PATH_CHARACTERS = "/%~:@!$&'()*+,;="


class Links(NamedTuple):
    """Where a repository can be browsed; both are empty if that is not known."""

    home: str
    """The address of the repository; empty if only the template is known."""
    template: str
    """The address of a line, with `{revision}`, `{file}` and `{line}`."""


NO_LINKS = Links("", "")


def parse_repo_url(text: str) -> Links:
    """Parse the value of `--repo-url`: an address, or a template; raise a UsageError if no page may link to it.

    Credentials are removed. The form of links of an unknown host is that of GitHub, which GitLab accepts too.
    """
    if not text:
        return NO_LINKS
    parts = _split(text)
    if parts is None or parts.scheme not in _WEB or "{" in parts.netloc or any(map(str.isspace, text)):
        raise UsageError(
            f"`{_hide_credentials(text)}` is not the address of a repository; write it as `https://example.com/jobs`"
        )
    shown = parts._replace(netloc=_strip_credentials(parts.netloc))
    if "{" in text:
        names = _PLACEHOLDER.findall(shown.geturl())
        for name in names:
            if name not in _FIELDS:
                raise UsageError(f"`{{{name}}}` is not a part of a link; use `{{revision}}`, `{{file}}` and `{{line}}`")
        if "file" not in names:
            raise UsageError(f"`{shown.geturl()}` lacks `{{file}}`; every link would be the same")
        return Links("", shown.geturl())
    if shown.query or shown.fragment:
        raise UsageError(
            f"`{shown.geturl()}` has a query or a fragment; write the address of the repository, or a template "
            "with `{revision}`, `{file}` and `{line}`"
        )
    home = _make_home(shown.scheme, shown.netloc, shown.path)
    return Links(home, home + _FORMS[_find_server(shown.hostname or "", shown.path) or GITHUB])


def find_links(remote: str) -> Links:
    """Find the links of a repository by the address of its remote; none if its server is not known for sure."""
    scheme, netloc, path = _parse_remote(remote)
    parts = _split(f"{scheme}://{netloc}")
    host = (parts.hostname or "") if parts else ""
    server = _find_server(host, path)
    if not server or not _HOST.fullmatch(host) or path.strip("/").count("/") < 1:
        return NO_LINKS
    home = _make_home(scheme, netloc, path)
    return Links(home, home + _FORMS[server])


def _parse_remote(remote: str) -> tuple[str, str, str]:
    """Return the scheme, the host and the path of the web page of a remote, without credentials."""
    parts = _split(remote)
    if parts and parts.scheme in _WEB and not (parts.query or parts.fragment):
        return parts.scheme, _strip_credentials(parts.netloc), parts.path
    scp = _SCP.fullmatch(remote)
    if parts and parts.scheme in {"ssh", "git+ssh"}:
        host, path = parts.hostname or "", parts.path
    elif scp:
        host, path = scp[1].lower(), "/" + scp[2].lstrip("/")
    else:
        return "", "", ""
    words = path.strip("/").split("/")
    if host in {"ssh.dev.azure.com", "vs-ssh.visualstudio.com"}:
        is_known = len(words) == 4 and words[0] == "v3"
        return ("https", "dev.azure.com", "/{1}/{2}/_git/{3}".format(*words)) if is_known else ("", "", "")
    # Servers take SSH on port 443 under another name.
    return "https", host.removeprefix("altssh.").removeprefix("ssh."), path


def _find_server(host: str, path: str) -> str:
    if "/_git/" in path and (host == "dev.azure.com" or host.endswith(".visualstudio.com")):
        return AZURE
    if _SERVER_PATH.fullmatch(path.rstrip("/")):
        return BITBUCKET_SERVER
    if host == "bitbucket.org":
        return BITBUCKET
    words = host.split(".")
    return next((server for word, server in _WORDS.items() if word in words), "")


def _make_home(scheme: str, netloc: str, path: str) -> str:
    return f"{scheme}://{netloc}{quote(path.rstrip('/').removesuffix('.git'), safe=_PATH_CHARACTERS)}"


def _split(text: str) -> SplitResult | None:
    """Split an address; None if it has no host, or its host or port is invalid."""
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return None
    return parts if host else None


def _strip_credentials(netloc: str) -> str:
    return netloc.rpartition("@")[2]


def _hide_credentials(text: str) -> str:
    """Return an address for a message, without what stands before the last `@` of its host."""
    before, separator, rest = text.partition("://")
    host, slash, path = rest.partition("/")
    return f"{before}{separator}{_strip_credentials(host)}{slash}{path}" if separator else _strip_credentials(text)


def describe_repository(
    root: Path, repo_url: str | None, *, shows_work_tree: bool = True
) -> tuple[dict[str, str], Table]:
    """Return what the page says about the repository, and the files of the work tree that differ from its revision.

    Without a URL, the remote `origin` says where the repository is browsed. There are no links if Git cannot say which
    files differ: a link to another content would mislead.
    """
    links = parse_repo_url(repo_url) if repo_url is not None else find_links(git.read_remote(root))
    try:
        revision, prefix = git.resolve_commit(root, "HEAD"), git.find_prefix(root)
    except git.GitError:
        revision = prefix = ""
    try:
        changed = list_changed_files(root, revision) if revision and shows_work_tree else []
    except git.GitError:
        changed, links = [], links._replace(template="")
    head = {
        "name": links.home.rpartition("/")[2] or root.name,
        "revision": revision,
        "url": links.home,
        "link": links.template,
        "prefix": prefix,
        "jobgen": __version__,
    }
    return head, Table("changedFiles", ("path:text",), [(path,) for path in changed])


def make_title(head: dict[str, str], changed: Table) -> str:
    """Return the title of a page: which repository, which revision, and whether files differ from it."""
    if not head["revision"]:
        return head["name"]
    return f"{head['name']} @ {head['revision'][:10]}" + (" + uncommitted changes" if changed.rows else "")
