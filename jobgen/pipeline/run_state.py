"""The options of a run over a repository or over some files, and what it has found so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jobgen.model.finding import Finding, Identity, Severity
from jobgen.pipeline.config import ProjectConfig
from jobgen.pipeline.environment import Rendered
from jobgen.pipeline.file_result import FileParts
from jobgen.pipeline.memory import RunMemory
from jobgen.pipeline.severities import Accepted
from jobgen.repo.files import FileEntry
from jobgen.report.suppress import Suppression

if TYPE_CHECKING:
    from jobgen.model.shard import Shard
    from jobgen.pipeline.load_policies import PolicyFiles
    from jobgen.pipeline.selectors import Membership


def _keep_object(made: Any) -> Any:
    return made


class RunState:
    """The options of a run, and what it has found so far."""

    rendered = False
    """Whether nothing prevents a render: only checks of objects and of environments reported errors."""
    is_outline = False
    """Whether objects are rendered to compare them with others, and not checked by themselves."""

    def __init__(
        self,
        project: ProjectConfig,
        environments: Sequence[str],
        wanted: Callable[[str], bool] = lambda _: True,
        finish: Callable[[Any], Any] = _keep_object,
        progress: Callable[[int, int], None] = lambda _, __: None,
        *,
        checked: bool = False,
        deployable: bool = False,
        digested: bool = False,
        layers: bytes = b"",
        jobs: Sequence[FileEntry] | None = None,
        entries: Sequence[FileEntry] | None = None,
        memory: RunMemory | None = None,
        shard: Shard | None = None,
        known: Mapping[str, FileParts] | None = None,
        summarized: frozenset[str] = frozenset(),
        context: bytes = b"",
    ) -> None:
        self.project = project
        self.environments = environments
        self.wanted = wanted
        self.finish = finish
        self.progress = progress
        self.checked = checked
        self.deployable, self.digested = deployable, digested
        """Whether an object that no operator accepts, because a container has no image, is an error; and whether each
        object needs the digest of its job."""
        self.layers, self.context = layers, context
        """The digest of all inputs besides jobs, taken before they were read; empty if results are not cached. The
        digest of what else the results of files by themselves depend on: what each file was taken for."""
        self.jobs, self.entries = jobs, entries
        self.memory = memory
        """The results of the last run in this process, if they are kept."""
        self.shard = shard
        """The share of the files whose results are returned; None for all. The first shard also compares all files."""
        self.known = known
        """The results of files that shards have processed, by path."""
        self.results: list[tuple[FileEntry, FileParts]] = []
        """The results of the files of the shard."""
        self.others: list[Rendered] = []
        """Objects of the other shards, without their data, if this is the first shard."""
        # Files whose objects are not needed if their summaries are in the cache.
        self.summarized = summarized
        self.findings: list[Finding] = []
        self.names, self.wanted_files = set[str](), set[str]()
        """The names of jobs, and files with a job that is wanted."""
        self.comments: list[Suppression] = []
        self.policies: tuple[str, ...] = ()
        self.policy_files: PolicyFiles | None = None
        """The policies, unless the cache says that nothing is wrong with them."""
        self.files = 0
        """How many files were read."""
        self.left_out: dict[str, tuple[str, str]] = {}
        """The files that were found in a folder and are no input: what they are, and why."""
        self.membership: Membership | None = None
        """Decides which jobs belong to no environment; None if an overlay has errors."""
        self.complete = False
        """Whether settings, overlays, kinds and policies are valid, so that every environment was checked."""
        self.unchecked: set[str] = set()
        """Files in which an object was not checked, or not by every check."""
        self.without_schema: set[tuple[str, Identity | None]] = set()
        """Files with objects that were not compared with a schema; all other checks ran."""
        self.unchecked_rules: frozenset[str] = frozenset()
        """Rules and policies that could not be evaluated."""
        self.accepted: Sequence[Accepted] = ()
        """Findings that exceptions of the settings accept."""
        self.lasting = False
        """Whether the findings depend on files alone, and not on the date."""
        self.dated = False
        """Whether the objects depend on the date."""

    @property
    def failed(self) -> bool:
        """Whether there are errors."""
        return any(finding.severity is Severity.ERROR for finding in self.findings)
