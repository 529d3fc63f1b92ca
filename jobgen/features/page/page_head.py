"""What a page says about its repository: the name, the revision, and the links to files."""

from __future__ import annotations

from pathlib import Path

from jobgen import __version__
from jobgen.api.errors import UsageError
from jobgen.features.page.encode import Table
from jobgen.features.page.links import InvalidRepoUrlError, Links, find_links, parse_repo_url
from jobgen.repo import git
from jobgen.repo.changed_files import list_changed_files


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
