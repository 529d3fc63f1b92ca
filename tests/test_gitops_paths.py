"""Paths and names in objects of Argo CD and Flux are those of something that exists in the repository.

The rules are `gitops-path-missing` and `gitops-name-missing`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helm_charts import WITHOUT_HELM, init_repository, write_files
from jobgenprocess import run_jobgen

OWN, OTHER = "https://github.com/Example/gitops", "https://github.com/other/gitops-2"
APPLICATION = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: one, namespace: argocd}
spec:
  project: %s
  destination: {namespace: prod, server: https://kubernetes.default.svc}
  source:
    repoURL: %s
    targetRevision: %s
    path: %s
    helm:
      valueFiles: [%s]
"""
PROJECT = """\
apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: team-a, namespace: argocd}
spec: {sourceRepos: ['*'], destinations: [{namespace: '*', server: '*'}]}
"""
KUSTOMIZATION = """\
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: apps, namespace: flux-system}
spec:
  interval: 1h
  prune: true
  sourceRef: {kind: GitRepository, name: %s}
  path: %s
"""
SOURCE = """\
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: %s, namespace: flux-system}
spec: {interval: 1m, url: %s, ref: {branch: main}}
"""
RELEASE = """\
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: apps}
spec:
  interval: 1h
  chart:
    spec:
      chart: %s
      valuesFiles: [%s]
      sourceRef: {kind: GitRepository, name: flux-system}
"""
CHART = {"charts/web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 0.1.0\n", "charts/web/values.yaml": ""}


def lint(folder: Path) -> list[tuple[str, int, str, str]]:
    done = run_jobgen(folder, "lint", "--no-cache", "--format", "json", ".", env={"PATH": WITHOUT_HELM})
    found = json.loads(done.stdout)["findings"]
    return [
        (each["severity"], each["line"], each["rule"], each["message"])
        for each in found
        if each["rule"].startswith("gitops-")
    ]


@pytest.mark.parametrize(
    ("values", "line", "words"),
    [
        (("default", OWN, "HEAD", "charts/wep", ""), 10, "`charts/wep` does not exist in this repository"),
        (("default", f"{OWN}.git", "main", "web", ""), 10, "did you mean `charts/web`?"),
        (("default", OWN, "HEAD", "charts/web", "values.yaml, prod.yaml"), 12, "`prod.yaml` does not exist"),
        (("default", OWN, "HEAD", "charts/web", "/charts/web/no.yaml"), 12, "`/charts/web/no.yaml` does not exist"),
        (("team-b", OWN, "HEAD", "charts/web", ""), 5, "no AppProject of this repository has the name `team-b`"),
    ],
)
def test_what_an_application_names_must_exist(tmp_path: Path, values: tuple[str, ...], line: int, words: str) -> None:
    files = {**CHART, "app.yaml": APPLICATION % values, "project.yaml": PROJECT}
    found = lint(write_files(init_repository(tmp_path), files))

    assert [each[1] for each in found] == [line]
    assert words in found[0][3]
    assert found[0][0] == ("warning" if "AppProject" in words else "error")


@pytest.mark.parametrize(
    "values",
    [
        ("default", OWN, "HEAD", "charts/web", "values.yaml, ../web/values.yaml, 'https://example.com/a.yaml'"),
        ("default", OTHER, "HEAD", "charts/none", "none.yaml"),
        ("default", OWN, "release-1.0", "charts/none", "none.yaml"),
        ("default", OWN, "HEAD", "'{{path}}'", "none.yaml"),
        ("default", OWN, "HEAD", "charts/web", "'{{env}}.yaml', 'envs/*.yaml'"),
        ("team-a", OWN, "HEAD", ".", "charts/web/values.yaml"),
    ],
)
def test_what_may_exist_elsewhere_is_not_reported(tmp_path: Path, values: tuple[str, ...]) -> None:
    files = {**CHART, "app.yaml": APPLICATION % values, "project.yaml": PROJECT}

    assert lint(write_files(init_repository(tmp_path), files)) == []


def test_an_application_in_another_folder_is_in_no_build_of_the_first_one(tmp_path: Path) -> None:
    gone = APPLICATION % ("default", OWN, "HEAD", "charts/none", "")
    root = write_files(init_repository(tmp_path), {**CHART, "a/app.yaml": gone, "b/app.yaml": gone})

    done = run_jobgen(root, "lint", "--no-cache", "--format", "json", ".", env={"PATH": WITHOUT_HELM})
    found = [each for each in json.loads(done.stdout)["findings"] if each["rule"] == "gitops-path-missing"]
    assert [(each["file"], each["related"]) for each in found] == [("a/app.yaml", []), ("b/app.yaml", [])]


def test_without_a_remote_no_address_is_known(tmp_path: Path) -> None:
    files = {**CHART, "app.yaml": APPLICATION % ("default", OWN, "HEAD", "charts/none", "")}

    assert lint(write_files(tmp_path, files)) == []


def test_an_address_most_of_whose_paths_exist_is_probably_the_own_one(tmp_path: Path) -> None:
    names = ("a", "b", "c", "d", "gone")
    apps = {f"argo/{each}.yaml": APPLICATION % ("default", OWN, "HEAD", f"apps/{each}", "") for each in names}
    other = {f"argo/o-{each}.yaml": APPLICATION % ("default", OTHER, "HEAD", f"x/{each}", "") for each in names}
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"
    write_files(tmp_path, {**apps, **other, **{f"apps/{each}/c.yaml": config for each in names[:-1]}})

    [found] = lint(tmp_path)
    assert found[:3] == ("warning", 10, "gitops-path-missing")
    assert found[3].startswith("`apps/gone` does not exist")
    assert found[3].endswith("; correct the path")


def test_an_application_that_nothing_deploys_is_an_info(tmp_path: Path) -> None:
    """Environments beside it are deployed by Applications: this one was forgotten, and its paths fail nowhere."""
    names = ("a", "b", "c", "d", "gone")
    envs = {
        f"envs/{env}/{name}.yaml": (APPLICATION % ("default", OWN, "HEAD", f"apps/{name}", "")).replace(
            "name: one", f"name: {env}-{name}"
        )
        for env in ("dev", "prod")
        for name in names
    }
    listed = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [%s]\n"
    listed %= ", ".join(f"{name}.yaml" for name in names)
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"
    root = APPLICATION.replace("name: one", "name: root") % ("default", OWN, "HEAD", "envs/prod", "")
    files = {**envs, **{f"envs/{env}/kustomization.yaml": listed for env in ("dev", "prod")}, "root.yaml": root}
    write_files(tmp_path, {**files, **{f"apps/{each}/c.yaml": config for each in names[:-1]}})
    assert [(each[0], each[2]) for each in lint(tmp_path)] == [
        ("info", "gitops-path-missing"),
        ("warning", "gitops-path-missing"),
    ]


def test_a_path_of_an_element_is_reported_where_the_element_has_it(tmp_path: Path) -> None:
    names = ("a", "b", "c", "d", "a-rather-long-name-for-a-folder-that-does-not-exist")
    elements = "".join(f"      - {{name: {each}, path: apps/{each}}}\n" for each in names)
    text = "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: one, namespace: argocd}\nspec:\n"
    text += (
        f"  generators:\n  - list:\n      elements:\n{elements}  template:\n    metadata: {{name: '{{{{name}}}}'}}\n"
    )
    text += "    spec:\n      project: default\n      destination: {name: in-cluster}\n"
    text += f"      source: {{repoURL: {OWN}, targetRevision: HEAD, path: '{{{{path}}}}'}}\n"
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"
    write_files(tmp_path, {"sets.yaml": text, **{f"apps/{each}/c.yaml": config for each in names[:-1]}})
    [found] = lint(tmp_path)
    assert found[1] == 12
    assert found[3].startswith(f"`apps/{names[-1]}` does not exist")


def test_what_flux_names_must_exist(tmp_path: Path) -> None:
    files = {
        **CHART,
        "a.yaml": KUSTOMIZATION % ("flux-system", "./clusters/prod"),
        "b.yaml": KUSTOMIZATION % ("flux-system", "./charts"),
        "c.yaml": KUSTOMIZATION % ("other", "./clusters/prod"),
        "d.yaml": KUSTOMIZATION % ("othr", "./clusters/prod"),
        "e.yaml": RELEASE % ("./charts/none", "charts/web/values.yaml"),
        "f.yaml": RELEASE % ("./charts", "values.yaml"),
        "source.yaml": SOURCE % ("other", OTHER),
        "own.yaml": SOURCE % ("flux-system", "ssh://git@github.com/example/gitops"),
    }
    found = lint(write_files(tmp_path, files))

    assert [(severity, line, message.partition(",")[0].partition(";")[0]) for severity, line, _, message in found] == [
        ("error", 8, "`./clusters/prod` does not exist in this repository"),
        ("warning", 7, "no GitRepository of this repository has the name `othr`"),
        ("error", 8, "`./charts/none` does not exist in this repository"),
        ("error", 8, "`./charts` has no `Chart.yaml`"),
        ("error", 9, "`values.yaml` does not exist in this repository"),
    ]


def test_an_object_is_judged_as_its_kustomization_makes_it(tmp_path: Path) -> None:
    patch = "[{op: replace, path: /spec/source/path, value: charts/none}]"
    files = {
        **CHART,
        "base/app.yaml": APPLICATION % ("default", OWN, "HEAD", "overwritten", ""),
        "base/kustomization.yaml": (
            f"resources: [app.yaml]\npatches:\n  - target: {{kind: Application}}\n    patch: '{patch}'\n"
        ),
    }
    found = lint(write_files(init_repository(tmp_path), files))

    assert ["`charts/none`" in each[3] for each in found] == [True]


LIMITED = """\
apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: team-a, namespace: argocd}
spec:
  sourceRepos: [%s]
  destinations: [%s]
"""
ANYWHERE = "{namespace: '*', server: '*'}"


@pytest.mark.parametrize(
    ("repositories", "destinations", "lines"),
    [
        ("'*'", ANYWHERE, []),
        (OWN, ANYWHERE, []),
        ("'https://github.com/example/*'", ANYWHERE, []),
        ("git@github.com:example/gitops.git", ANYWHERE, []),
        (OTHER, ANYWHERE, [8]),
        (f"'*', '!{OWN}'", ANYWHERE, [8]),
        ("'*'", "{namespace: pr*, server: https://kubernetes.default.svc}", []),
        ("'*'", "{namespace: prod, name: in-cluster}", []),
        ("'*'", "{namespace: prod, name: other}", []),
        ("'*'", "{namespace: dev, server: '*'}", [6]),
        ("'*'", "{namespace: prod, server: https://example.com}", [6]),
        ("'*'", f"{ANYWHERE}, {{namespace: '!prod', server: '*'}}", [6]),
        ("'${REPOSITORY}'", ANYWHERE, []),
    ],
)
def test_a_project_allows_what_its_applications_name(
    tmp_path: Path, repositories: str, destinations: str, lines: list[int]
) -> None:
    files = {
        **CHART,
        "project.yaml": LIMITED % (repositories, destinations),
        "app.yaml": APPLICATION % ("team-a", OWN, "HEAD", "charts/web", ""),
    }
    found = lint(write_files(init_repository(tmp_path), files))

    assert [(each[0], each[1], each[2]) for each in found] == [
        ("error", line, "gitops-project-forbids") for line in lines
    ]


REFERENCE = RELEASE % ("./charts/web", "charts/web/values.yaml") + "  valuesFrom:\n    - {kind: %s, name: %s%s}\n"
VALUES_MAP = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web-values, namespace: apps}\ndata: {values.yaml: 'a: 1'}\n"
)


@pytest.mark.parametrize(
    ("kind", "name", "more", "expected"),
    [
        ("ConfigMap", "web-values", "", []),
        ("ConfigMap", "web-valuse", "", [("warning", "did you mean `web-values`?")]),
        ("ConfigMap", "other", "", [("info", "unless it is created elsewhere")]),
        ("ConfigMap", "other", ", optional: true", []),
        ("ConfigMap", "generated", "", []),
        ("ConfigMap", "web-values", ", valuesKey: value.yaml", [("error", "did you mean `values.yaml`?")]),
        ("ConfigMap", "web-values", ", valuesKey: value.yaml, optional: true", [("error", "has no key")]),
        ("Secret", "other", "", []),
    ],
)
def test_objects_with_values_of_a_release(
    tmp_path: Path, kind: str, name: str, more: str, expected: list[tuple[str, str]]
) -> None:
    files = {
        **CHART,
        "release.yaml": REFERENCE % (kind, name, more),
        "values.yaml": VALUES_MAP,
        "other/kustomization.yaml": "configMapGenerator: [{name: generated, literals: [a=b]}]\n",
        "source.yaml": SOURCE % ("flux-system", "ssh://git@github.com/example/gitops"),
    }
    found = lint(write_files(init_repository(tmp_path), files))

    assert [each[0] for each in found if each[2] == "gitops-name-missing"] == [severity for severity, _ in expected]
    assert all(words in each[3] for each, (_, words) in zip(found, expected, strict=False))
