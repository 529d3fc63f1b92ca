"""The AppProject of a team: where its Applications can deploy to, what, and from where."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from command import run_jobgen
from hypothesis import given
from hypothesis import strategies as st

from jobgen.features.gitops.commands.gitops import argocd, flux
from jobgen.features.gitops.documents import build_project, list_projects
from jobgen.features.gitops.engine_kinds import GitSource
from jobgen.k8s.team_kinds import DEFAULT_KINDS, GRANTING_KINDS, is_kind_allowed, is_of_cluster
from jobgen.spec.teams import Teams, TeamScope, parse_team
from jobgen.yamlio.read import read

REPO = "https://git.example.com/ml/jobs.git"
TEAMS = """\
environments: [dev, prod]
teams:
  nlp: {{folders: [jobs/nlp], namespaces: [nlp, nlp-*], environments: {{prod: {{namespaces: [nlp-prod]}}}}}}
  vision: {{folders: [jobs/vision], namespaces: [vision], kinds: [PyTorchJob, JobSet.jobset.x-k8s.io]}}
  audio: {{folders: [jobs/audio], namespaces: [audio, speech-*], kinds: [TrainJob]}}
  speech: {{folders: [jobs/speech], namespaces: [speech-prod], kinds: [RayJob]}}
  platform: {{folders: [jobs/platform], namespaces: [kueue], kinds: [ClusterQueue, Namespace]}}
  weak: {{folders: [jobs/weak], namespaces: [weak], kinds: ["*", ExternalSecret]}}
  budget:
    folders: [jobs/budget]
    namespaces: [budget]
    kinds: [default, Ingress, TaskRun.tekton.dev, CloneSet.apps.kruise.io]
    budget: {{jobs: 1}}
    pods: {{CloneSet.apps.kruise.io: [{{at: spec.template}}]}}
{more}"""
OPEN = "  open: {folders: [jobs/open]}\n"


def print_projects(root: Path, more: str = "") -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The specs of the AppProjects by name, and the generators of the ApplicationSet."""
    for env in ("dev", "prod"):
        (root / f"overlays/{env}").mkdir(parents=True, exist_ok=True)
        (root / f"overlays/{env}/overlay.yaml").write_text("apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {}\n")
    (root / "jobgen.yaml").write_text(TEAMS.format(more=more))
    text = argocd(root, (), "projects", REPO, "main").out + "---\n" + argocd(root, (), "appset", REPO, "main").out
    *projects, applications = (each.data for each in read(text.encode(), "").documents)
    assert applications["spec"]["template"]["spec"]["project"] == "{{ .values.project }}"
    generators = [each["git"] for each in applications["spec"]["generators"]]
    return {each["metadata"]["name"]: each["spec"] for each in projects}, generators


def find_deployed(generators: list[dict[str, Any]], folder: str) -> list[str]:
    """The projects that a folder of the tree is deployed with; with two, the ApplicationSet would deploy nothing."""
    found = []
    for each in generators:
        matching = [entry for entry in each["directories"] if fnmatchcase(folder, entry["path"])]
        if matching and not any(entry.get("exclude") for entry in matching):
            found.append(each["values"]["project"])
    return found


def permits(spec: dict[str, Any], env: str, namespace: str) -> bool:
    """As Argo CD decides: some destination matches, and none that begins with `!`."""
    patterns = [each["namespace"] for each in spec["destinations"] if each["name"] == env]
    denied = [each[1:] for each in patterns if each.startswith("!")]
    return any(fnmatchcase(namespace, each) for each in patterns) and not any(
        fnmatchcase(namespace, each) for each in denied
    )


DEPLOYED = {
    ("dev", "nlp"): ["jobs-nlp"],
    ("dev", "nlp-x"): ["jobs-nlp"],
    ("prod", "nlp-prod"): ["jobs-nlp"],
    ("prod", "nlp-x"): [],
    ("dev", "vision"): ["jobs-vision"],
    ("dev", "audio"): ["jobs-audio"],
    ("dev", "speech-prod"): ["jobs"],
    ("dev", "speech-x"): ["jobs"],
    ("dev", "default"): ["jobs-platform"],
    ("dev", "kube-system"): [],
}


@pytest.mark.parametrize("more", ["", OPEN])
def test_each_folder_is_deployed_with_one_project_that_permits_it(tmp_path: Path, more: str) -> None:
    projects, generators = print_projects(tmp_path, more)
    for (env, namespace), expected in DEPLOYED.items():
        # What no team lists is for teams without a list.
        names = expected or (["jobs"] if more else [])
        assert (namespace, find_deployed(generators, f"rendered/{env}/{namespace}")) == (namespace, names)
        assert all(permits(projects[name], env, namespace) for name in names)


@pytest.mark.parametrize("more", ["", OPEN])
def test_no_project_permits_the_namespace_of_another_team(tmp_path: Path, more: str) -> None:
    projects, _ = print_projects(tmp_path, more)

    assert [name for name, spec in projects.items() if permits(spec, "dev", "vision")] == ["jobs-vision"]
    assert [name for name, spec in projects.items() if permits(spec, "prod", "nlp-prod")] == ["jobs-nlp"]
    assert all(spec["sourceRepos"] == [REPO] for spec in projects.values())


def test_kinds_are_those_of_the_team(tmp_path: Path) -> None:
    projects, _ = print_projects(tmp_path)
    kinds = {
        name: {field: [each["kind"] for each in found] for field, found in spec.items() if "Resource" in field}
        for name, spec in projects.items()
    }

    assert kinds["jobs-vision"] == {
        "clusterResourceWhitelist": [],
        "namespaceResourceWhitelist": ["JobSet", "PyTorchJob"],
    }
    assert projects["jobs-vision"]["namespaceResourceWhitelist"][0]["group"] == "jobset.x-k8s.io"
    assert kinds["jobs"]["namespaceResourceWhitelist"] == ["RayJob", "TrainJob"]
    # An empty list of allowed kinds would allow all of them.
    assert kinds["jobs-platform"] == {
        "clusterResourceWhitelist": ["ClusterQueue", "Namespace"],
        "namespaceResourceBlacklist": ["*"],
    }
    # Without a list, those of the default; a budget leaves out what cannot be counted.
    default = [(kind, group) for group, kinds in DEFAULT_KINDS.items() for kind in kinds.split()]
    written = [(each["kind"], each["group"]) for each in projects["jobs-nlp"]["namespaceResourceWhitelist"]]
    assert written == sorted(default)
    assert projects["jobs-nlp"]["clusterResourceWhitelist"] == []
    written = [(each["kind"], each["group"]) for each in projects["jobs-budget"]["namespaceResourceWhitelist"]]
    added = [("CloneSet", "apps.kruise.io"), ("Ingress", "*")]
    assert written == sorted([*default, *added])


def test_weaker_list_keeps_refusals(tmp_path: Path) -> None:
    projects, _ = print_projects(tmp_path)

    spec = projects["jobs-weak"]
    refused = {each["kind"] for each in spec["namespaceResourceBlacklist"]}
    assert refused == GRANTING_KINDS - {"ExternalSecret"}
    assert spec["clusterResourceWhitelist"] == []


SCOPES = [TeamScope("t", {"kinds": each}) for each in (("*",), ("default", "Role"), ("Job", "C*.example.com"))]


@given(
    st.sampled_from([TeamScope("t"), *SCOPES]),
    st.sampled_from(["Job", "Role", "Secret", "Service", "ClusterRole", "CloneSet", "Namespace"]),
    st.sampled_from(["", "batch", "batch.volcano.sh", "example.com", "serving.knative.dev"]),
)
def test_project_allows_what_a_lint_allows(scope: TeamScope, kind: str, group: str) -> None:
    spec = {"folders": ["jobs/t"], "namespaces": ["t"], **{name: list(each) for name, each in scope.allowed.items()}}
    teams = Teams((parse_team("t", spec, ""),))
    (project,) = list_projects(teams, [""])
    document: Any = build_project(project, teams, GitSource("https://git.example.com/a.git", "main", ()))["spec"]
    lists = {name: [(e["kind"], e["group"]) for e in each] for name, each in document.items() if "Resource" in name}

    def names(field: str) -> bool:
        return any(fnmatchcase(kind, a) and fnmatchcase(group, b) for a, b in lists.get(field, ()))

    if is_of_cluster(kind):
        allowed = names("clusterResourceWhitelist")
    else:
        listed = "namespaceResourceWhitelist" not in lists or names("namespaceResourceWhitelist")
        allowed = listed and not names("namespaceResourceBlacklist")
    assert allowed == is_kind_allowed(scope, group, kind)


def test_printed_settings_pass_a_lint(tmp_path: Path) -> None:
    print_projects(tmp_path, OPEN)
    (tmp_path / "elsewhere").mkdir()
    printed = run_jobgen(tmp_path, "gitops", "argocd")
    done = run_jobgen(tmp_path / "elsewhere", "lint", "-", given=printed.stdout)

    assert (printed.returncode, done.returncode) == (0, 0)
    assert b": error: " not in done.stdout + done.stderr
    assert b": warning: " not in done.stdout + done.stderr


def test_without_teams_there_is_no_project(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobgen.yaml").write_text("{}\n")
    (applications,) = read(argocd(tmp_path, (), "appset", REPO, "main").out.encode(), "").documents

    assert applications.data["spec"]["template"]["spec"]["project"] == "default"
    assert argocd(tmp_path, (), "projects", REPO, "main").err.startswith("jobgen: there are no teams")


CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {0}, namespace: {0}}}\ndata: {{a: b}}\n"


def test_flux_applies_the_objects_of_a_team_with_its_own_account(tmp_path: Path) -> None:
    print_projects(tmp_path)
    for team in ("nlp", "vision", "weak", "budget", "platform"):
        (tmp_path / f"jobs/{team}").mkdir(parents=True)
        namespace = {"platform": "kueue"}.get(team, team)
        (tmp_path / f"jobs/{team}/a.yaml").write_text(CONFIG.format(namespace))
    printed = flux(tmp_path, ("dev",), "jobs", "").out
    objects: list[Any] = [each.data for each in read(printed.encode(), "").documents]

    by_kind: dict[str, dict[str, Any]] = {}
    for each in objects:
        by_kind.setdefault(each["kind"], {})[f"{each['metadata'].get('namespace', '')}/{each['metadata']['name']}"] = (
            each
        )
    accounts = {
        name.partition("/")[2]: (each["spec"]["path"], each["spec"]["serviceAccountName"])
        for name, each in by_kind["Kustomization"].items()
    }
    assert accounts == {
        f"jobs-dev-{namespace}": (f"./rendered/dev/{namespace}", f"jobs-{team}")
        for team, namespace in (*((each, each) for each in ("nlp", "vision", "weak", "budget")), ("platform", "kueue"))
    }
    assert {name for _, name in accounts.values()} == {each.partition("/")[2] for each in by_kind["ServiceAccount"]}
    bound = {name: each["subjects"][0]["name"] for name, each in by_kind["RoleBinding"].items()}
    assert bound == {f"{each}/jobs-{each}": f"jobs-{each}" for each in ("nlp", "vision", "weak", "budget")}
    rules = {
        name: {(group, kind) for rule in each["rules"] for group in rule["apiGroups"] for kind in rule["resources"]}
        for name, each in by_kind["ClusterRole"].items()
    }
    assert rules["/jobs-vision"] == {("jobset.x-k8s.io", "jobsets"), ("kubeflow.org", "pytorchjobs")}
    assert rules["/jobs-weak"] == {("*", "externalsecrets")}
    assert ("", "secrets") not in rules["/jobs-nlp"]
    assert ("tekton.dev", "taskruns") not in rules["/jobs-budget"]
    assert rules["/jobs-platform-cluster"] == {("*", "clusterqueues"), ("*", "namespaces")}
    assert not any("*" in rule for each in rules.values() for _, rule in each)
    (tmp_path / "elsewhere").mkdir()
    done = run_jobgen(tmp_path / "elsewhere", "lint", "-", given=printed.encode())
    # The newest schema that jobgen has of Flux does not have `ignore` yet.
    errors = [line for line in done.stdout.splitlines() if b": error: " in line and b"`ignore`" not in line]
    assert (errors, b": warning: " in done.stdout) == ([], False)
