"""Where the rendered jobs are to be found: the repository, the tree in it, and its environments."""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    """A Git repository with a tree that `jobgen render -o rendered` wrote."""

    repo: str
    revision: str
    prefix: tuple[str, ...] = ()
    """The folders between the top of the Git repository and the jobs repository."""

    @property
    def tree(self) -> tuple[str, ...]:
        """The folder of all environments, from the top."""
        return (*self.prefix, "rendered")

    def rendered(self, env: str) -> str:
        """The folder of an environment; the nameless one is the tree itself."""
        return "/".join((*self.tree, env) if env else self.tree)

    def sources(self, lineage: tuple[str, ...]) -> tuple[str, ...]:
        """All that decides what an environment's jobs look like, as absolute paths in the Git repository."""
        names = ["jobgen.yaml", "jobs", *(f"overlays/{name}" for name in lineage), "policies", "schemas"]
        return tuple("/".join(("", *self.prefix, name)) for name in names)


def titled(env: str) -> str:
    """The name of what an engine keeps about an environment."""
    return f"jobs-{env}" if env else "jobs"
