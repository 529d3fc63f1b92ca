"""The files of a new repository: the shipped starter, changed to suit a platform and a GitOps engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from jobgen import __version__
from jobgen.model.data import Plain
from jobgen.model.named_tuple import NamedTuple
from jobgen.rendering.build import identity_of
from jobgen.repo.lock import TREE
from jobgen.repo.shipped import find_shipped
from jobgen.reports.entries import pluralize
from jobgen.reports.escape import visible
from jobgen.spec.kinds import Kind
from jobgen.yamlio.commented import edit_text, format_document

# The files to write, and the files of the starter that they copy.
_ALWAYS = {"README.md": "README.md", "jobgen.yaml": "jobgen.yaml", ".pre-commit-config.yaml": "pre-commit-config.yaml"}
_ENVIRONMENTS = {
    "overlays/base/overlay.yaml": "overlays/base.yaml",
    "overlays/dev/overlay.yaml": "overlays/dev.yaml",
    "overlays/prod/overlay.yaml": "overlays/prod.yaml",
    "policies/team-label.yaml": "policies/team-label.yaml",
    "policies/tests/team-label/cases.yaml": "policies/team-label-cases.yaml",
}
# Claude Code reads the second one; Codex, Copilot, Cursor and others read the first one.
_SKILL = dict.fromkeys((".agents/skills/jobgen/SKILL.md", ".claude/skills/jobgen/SKILL.md"), "SKILL.md")
CI: Mapping[str, Mapping[str, str]] = {
    "github": {".github/workflows/jobgen.yaml": "github.yaml"},
    "gitlab": {".gitlab-ci.yml": "gitlab.yaml"},
    "none": {},
}
_NEWEST, _LAST_WITH_MXNET = "1.9.4", "1.8.1"


TREE_DECLARATION = f"""\
# The folder that `jobgen render -o {TREE}` writes and the cluster gets: `jobgen lint` compares it with the sources.
rendered: {TREE}
"""


class Converted(NamedTuple):
    """What a folder of manifests becomes in a new repository."""

    files: dict[str, str]
    imported: int
    kept: int
    """How many objects of other kinds are kept as they are."""
    left_out: int
    notes: str
    """What is not imported or differs, one line each."""
    failure: str = ""
    """Why nothing may be written; empty if nothing speaks against it."""
    manifests: tuple[Mapping[str, Plain], ...] = ()
    """The objects that the files render to."""
    origins: tuple[str, ...] = ()
    """The files, and the kustomizations, that the objects come from."""

    def name_secrets(self) -> str:
        """Return a line for each Secret whose values are in the files; those of SOPS are encrypted."""
        secrets = [each for each in self.manifests if each.get("kind") == "Secret" and "sops" not in each]
        names = [identity_of(each).name for each in secrets if each.get("data") or each.get("stringData")]
        advice = "has its values in a file; commit an ExternalSecret or a SealedSecret instead"
        return "".join(f"{visible(f'Secret `{name}` {advice}')}\n" for name in dict.fromkeys(names))

    def count_objects(self) -> str:
        """Return a line that says how many objects are imported, kept and left out."""
        counts = [pluralize(self.imported, "object") + " imported"]
        counts += [f"{self.kept} of other kinds kept as manifests in jobs/"] if self.kept else []
        counts += [f"{self.left_out} not imported"] if self.left_out else []
        return f"{', '.join(counts)}\n"


class Platform(NamedTuple):
    """A platform that `jobgen init` sets up."""

    name: str
    """Its name in `cluster.platform`."""
    operators: tuple[tuple[str, str], ...] = ()
    """The operators in the cluster, with their versions."""
    has_restarts: bool = True
    """True if jobs have a restart policy and a limit of restarts."""
    keeps_logs: bool = True
    """True if failed pods are kept although containers restart, so that their logs can be read."""
    has_cleanup: bool = True
    """True if jobs say which pods are deleted at the end."""
    framework: str = "pytorch"
    """The framework of the example, if none is named."""
    kinds: tuple[str, str, tuple[str, ...]] = ("kubeflow.org", "v1", ())
    """The group, the version and the plurals of the kinds that its jobs become, for the policy; none are those of
    Kubeflow."""


PLATFORMS = {
    "kubeflow": Platform("kubeflow", (("training-operator", _NEWEST),)),
    # AI Lab of DaoCloud comes with the training-operator.
    "daocloud": Platform("kubeflow", (("training-operator", _LAST_WITH_MXNET),)),
    "trainer": Platform(
        "trainer",
        (("trainer", "2.2.1"),),
        has_restarts=False,
        has_cleanup=False,
        kinds=("trainer.kubeflow.org", "v1alpha1", ("trainjobs",)),
    ),
    "tensorstack": Platform(
        "tensorstack",
        kinds=(
            "batch.tensorstack.dev",
            "v1beta1",
            tuple(
                """pytorchtrainingjobs tensorflowtrainingjobs xgboosttrainingjobs deepspeedjobs colossalaijobs mpijobs
                genericjobs""".split()
            ),
        ),
    ),
    "kubernetes": Platform("kubernetes", keeps_logs=False, has_cleanup=False, kinds=("batch", "v1", ("jobs",))),
    "jobset": Platform(
        "jobset",
        (("jobset", "0.12.0"),),
        keeps_logs=False,
        has_cleanup=False,
        kinds=("jobset.x-k8s.io", "v1alpha2", ("jobsets",)),
    ),
    "ray": Platform("ray", (("kuberay", "1.7.0"),), has_cleanup=False, kinds=("ray.io", "v1", ("rayjobs",))),
    "volcano": Platform(
        "volcano",
        (("volcano", "1.15.0"),),
        keeps_logs=False,
        has_cleanup=False,
        kinds=("batch.volcano.sh", "v1alpha1", ("jobs",)),
    ),
    "mpi-operator": Platform(
        "mpi-operator",
        (("mpi-operator", "0.8.0"),),
        framework="mpi",
        kinds=("kubeflow.org", "v2beta1", ("mpijobs",)),
    ),
}
PLATFORM_NAMES = sorted({platform.name for platform in PLATFORMS.values()})


def list_supported(platform: str, kinds: Iterable[Kind]) -> list[str]:
    """Return the frameworks of a platform that have an example."""
    known = PLATFORMS[platform]
    found = {str(name) for kind in kinds if kind.platform == known.name for name in kind.frameworks}
    # training-operator 1.9 added JAXJob and removed MXJob.
    versions = dict(known.operators).get("training-operator")
    return sorted(found - {"jax" if versions == _LAST_WITH_MXNET else "mxnet"} if versions else found)


def make_starter(frameworks: Sequence[str], platform: str, gitops: str, ci: str) -> dict[str, str]:
    """Return the files of a repository with examples; without a platform, examples are for where they run best."""
    texts = _read({**_ALWAYS, **_ENVIRONMENTS, **CI[ci]})
    chosen = PLATFORMS[platform or "kubeflow"]
    if "mxnet" in frameworks:
        chosen = chosen._replace(operators=(("training-operator", _LAST_WITH_MXNET),))
    for path in ("overlays/base/overlay.yaml", "overlays/dev/overlay.yaml"):
        texts[path] = _suit_overlay(texts[path], chosen, gitops)
    if chosen.kinds[2]:
        policy, mark, binding = texts["policies/team-label.yaml"].partition("---\n")
        texts["policies/team-label.yaml"] = edit_text(policy, partial(_suit_policy, chosen)) + mark + binding
        cases = "policies/tests/team-label/cases.yaml"
        texts[cases] = _suit_cases(texts[cases], chosen)
    for name in frameworks:
        texts[f"jobs/{name}.yaml"] = suit_job(name, chosen.name) if platform else _read_file(f"jobs/{name}.yaml")
    return texts


def make_frame(settings: Mapping[str, Any], ci: str) -> dict[str, str]:
    """Return the files around jobs that exist already, without environments and policies."""
    texts = _read({**_ALWAYS, **CI[ci]})
    texts["README.md"] = _read_file("README-imported.md").replace("VERSION", __version__)
    own = format_document(settings) if settings else ""
    texts["jobgen.yaml"] = texts["jobgen.yaml"].replace("environments: [dev, prod]\n", own)
    removers = {".pre-commit-config.yaml": _remove_policy_hook, **dict.fromkeys(CI[ci], _remove_policy_step)}
    return {path: edit_text(text, removers[path]) if path in removers else text for path, text in texts.items()}


def make_skill() -> dict[str, str]:
    """Return the files from which assistants learn how to use jobgen."""
    return _read(_SKILL)


def _remove_policy_step(pipeline: Any) -> None:
    steps = pipeline["jobs"]["lint"]["steps"] if "jobs" in pipeline else pipeline["jobgen"]["script"]
    runs = [step.get("run", "") if isinstance(step, dict) else step for step in steps]
    del steps[next(at for at, run in enumerate(runs) if run.startswith("jobgen policy test"))]


def _remove_policy_hook(config: Any) -> None:
    hooks = config["repos"][0]["hooks"]
    removed = hooks.pop()
    # Comments that follow the hooks belong to the last line of the last one.
    hooks[-1].ca.items[next(reversed(hooks[-1]))] = removed.ca.items[next(reversed(removed))]


def _read(copies: Mapping[str, str]) -> dict[str, str]:
    return {path: _read_file(copy).replace("VERSION", __version__) for path, copy in sorted(copies.items())}


def _read_file(path: str) -> str:
    return (find_shipped("starter") / path).read_text("utf-8")


def _suit_overlay(text: str, platform: Platform, gitops: str) -> str:
    """Return an overlay for a platform: its operators, and the defaults that its jobs have."""

    def suit(overlay: Any) -> None:
        spec = overlay["spec"]
        if "cluster" in spec:
            cluster = spec["cluster"]
            cluster.update({"platform": platform.name, "gitops": gitops})
            cluster["operators"].clear()
            cluster["operators"].update(platform.operators)
            if not platform.operators:
                del cluster["operators"]
        # The last block is that of the jobs of the platform; other platforms have other fields.
        *_, block = spec["defaults"]
        block["match"]["platforms"][0] = platform.name
        _suit_defaults(block["merge"], platform)
        if not block["merge"]:
            spec["defaults"].remove(block)
        if not spec["defaults"]:
            del spec["defaults"]
        elif "match" not in spec["defaults"][-1]:
            spec["defaults"] = spec["defaults"][0]["merge"]

    text = edit_text(text, suit)
    return text if platform.has_cleanup else text.replace(" Failed pods are kept for debugging.", "")


def _suit_policy(platform: Platform, policy: Any) -> None:
    """Make a policy about the kinds of a platform, but not about what controllers create."""
    [rule] = policy["spec"]["matchConstraints"]["resourceRules"]
    rule["apiGroups"][0], rule["apiVersions"][0], names = platform.kinds
    rule["resources"][:] = names
    if platform.name == "kubernetes":
        own = {"name": "no-owner", "expression": "!has(object.metadata.ownerReferences)"}
        policy["spec"]["matchConditions"] = [own]


def _suit_cases(text: str, platform: Platform) -> str:
    """Return the test cases of the policy with jobs of a platform."""
    return text.replace("{framework: pytorch,", f"{{framework: {platform.framework}, platform: {platform.name},")


def _suit_defaults(defaults: Any, platform: Platform) -> None:
    """Keep the defaults that the jobs of a platform have."""
    # training-operator 1.8 deletes all pods when the limit is reached.
    is_old = ("training-operator", _LAST_WITH_MXNET) in platform.operators
    if not platform.has_cleanup:
        del defaults["runPolicy"]["cleanPodPolicy"]
    if not platform.keeps_logs and "restartPolicy" in defaults:
        defaults["restartPolicy"] = "Never"
    if not platform.has_restarts:
        defaults.pop("restartPolicy", None)
    if is_old or not platform.has_restarts:
        defaults["runPolicy"].pop("backoffLimit", None)
    if not defaults["runPolicy"]:
        del defaults["runPolicy"]


def suit_job(framework: str, platform: str) -> str:
    """Return the example of a framework that suits a platform."""
    own = find_shipped("starter") / f"platforms/{platform}/{framework}.yaml"
    return own.read_text("utf-8") if own.exists() else edit_text(_read_file(f"jobs/{framework}.yaml"), _remove_platform)


def _remove_platform(job: Any) -> None:
    """Remove what only counts where the platform is not the one of the repository."""
    job["spec"].pop("platform", None)
    if job["spec"].get("runPolicy") == {"cleanPodPolicy": None}:
        del job["spec"]["runPolicy"]
