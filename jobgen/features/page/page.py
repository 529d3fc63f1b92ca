"""Assemble the page: a shell with one style, one script and the data, and a policy that allows nothing else."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple
from urllib.parse import SplitResult, quote, urlsplit

from jobgen import __version__
from jobgen.api.errors import UsageError
from jobgen.features.page.encode import Table
from jobgen.k8s.secrets import hide_credentials
from jobgen.model.lazy_re import lazy_pattern
from jobgen.repo import git
from jobgen.repo.changed_files import list_changed_files
from jobgen.reports.escape import visible

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
    values = {
        "policy": _make_policy(fixed),
        "title": escape(title),
        "favicon": _make_favicon(title),
        "data": data,
    }
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


class InvalidRepoUrlError(ValueError):
    """A value of `--repo-url` is wrong; the message is for the user."""


def parse_repo_url(text: str) -> Links:
    """Parse the value of `--repo-url`: an address, or a template.

    Credentials are removed. The form of links of an unknown host is that of GitHub, which GitLab accepts too.
    """
    if not text:
        return NO_LINKS
    parts = _split(text)
    if parts is None or parts.scheme not in _WEB or "{" in parts.netloc or any(map(str.isspace, text)):
        raise InvalidRepoUrlError(
            f"`{_hide_credentials(text)}` is not the address of a repository; write it as `https://example.com/jobs`"
        )
    shown = parts._replace(netloc=_strip_credentials(parts.netloc))
    if "{" in text:
        return Links("", _check_template(shown.geturl()))
    if shown.query or shown.fragment:
        raise InvalidRepoUrlError(
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
    """Return the sort of a Git server; empty if it is not known."""
    if "/_git/" in path and (host == "dev.azure.com" or host.endswith(".visualstudio.com")):
        return AZURE
    if _SERVER_PATH.fullmatch(path.rstrip("/")):
        return BITBUCKET_SERVER
    if host == "bitbucket.org":
        return BITBUCKET
    words = host.split(".")
    return next((server for word, server in _WORDS.items() if word in words), "")


def _check_template(template: str) -> str:
    names = _PLACEHOLDER.findall(template)
    unknown = next((name for name in names if name not in _FIELDS), None)
    if unknown is not None:
        raise InvalidRepoUrlError(
            f"`{{{unknown}}}` is not a part of a link; use `{{revision}}`, `{{file}}` and `{{line}}`"
        )
    if "file" not in names:
        raise InvalidRepoUrlError(f"`{template}` lacks `{{file}}`; every link would be the same")
    return template


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
    links = parse_url(repo_url) if repo_url is not None else find_links(git.read_remote(root))
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


def parse_url(repo_url: str) -> Links:
    """Parse the value of `--repo-url`; raise a UsageError if it is not an address that a page may link to."""
    try:
        return parse_repo_url(repo_url)
    except InvalidRepoUrlError as error:
        raise UsageError(str(error)) from error


def make_title(head: dict[str, str], changed: Table) -> str:
    """Return the title of a page: which repository, which revision, and whether files differ from it."""
    if not head["revision"]:
        return head["name"]
    return f"{head['name']} @ {head['revision'][:10]}" + (" + uncommitted changes" if changed.rows else "")
