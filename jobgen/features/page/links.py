"""Links to files in Git: the address of a line, for each sort of Git server.

A link is a template with `{revision}`, `{file}` and `{line}`, which the page fills in.
"""

from __future__ import annotations

from urllib.parse import SplitResult, quote, urlsplit

from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple

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
