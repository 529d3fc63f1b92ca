"""Which program reads a file of configuration, by its name and its keys."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from jobgen.model.data import value_of

# Programs by a file name, and by keys at the top of their configuration.
_BY_NAME = (
    (r"jobgen\.yaml\Z", "settings of jobgen"),
    (r"Chart\.(?:yaml|lock)\Z", "metadata of a Helm chart"),
    (r"values[\w.-]*\.ya?ml\Z|[\w.-]*values\.ya?ml\Z", "values of a Helm chart"),
    (r"(?:docker-)?compose[\w.-]*\.ya?ml\Z", "Docker Compose"),
    (r"(?:package(?:-lock)?|tsconfig[\w.-]*|composer|renovate|\.?eslintrc)\.json\Z", "a package manager or its tools"),
    (r"(?:\.gitlab-ci|\.travis|azure-pipelines|cloudbuild|buildkite|bitbucket-pipelines)[\w.-]*\.ya?ml\Z", "CI"),
    (r"\.(?:github|gitlab|circleci|buildkite|tekton|prow)/", "CI"),
    (r"(?:mkdocs|_config|_toc|antora|docusaurus)[\w.-]*\.ya?ml\Z", "a documentation site"),
    (
        r"\.(?:pre-commit[\w.-]*|yamllint|golangci|markdownlint|hadolint|prettierrc|goreleaser)[\w.-]*\Z",
        "a linter or a release tool",
    ),
    (
        r"(?:[Tt]askfile|helmfile|skaffold|tilt|garden|werf|okteto|devspace)[\w.-]*\.ya?ml\Z",
        "a build or deployment tool",
    ),
)
_BY_KEYS = (
    ({"AWSTemplateFormatVersion"}, "CloudFormation"),
    ({"services"}, "Docker Compose"),
    *(({key}, "OpenAPI") for key in ("openapi", "swagger")),
    ({"panels"}, "Grafana"),
    ({"scrape_configs"}, "Prometheus"),
    ({"groups"}, "Prometheus or Grafana alerts"),
    ({"jobs", "on"}, "a GitHub workflow"),
    ({"stages"}, "CI"),
    ({"repos"}, "pre-commit"),
    *(({"resources", key}, "SkyPilot") for key in ("run", "setup")),
    ({"cluster_name", "provider"}, "the Ray cluster launcher"),
    ({"suite", "tests"}, "helm-unittest"),
    ({"nbformat"}, "Jupyter"),
    *(({key}, "kustomize") for key in ("commonLabels", "nameReference", "varReference")),
)


def name_program(path: str, documents: Sequence[Mapping[str, Any]]) -> str:
    """Return why a file without objects is configuration, with the program if it is known."""
    for pattern, program in _BY_NAME:
        if re.search(rf"(?:\A|/)(?:{pattern})", path):
            return f"its name is one that {program} reads"
    for keys, program in _BY_KEYS:
        if any(_has_keys(data, keys) for data in documents):
            shown = " and ".join(f"`{key}`" for key in sorted(keys))
            return f"it has {shown}, as files of {program} do"
    kinds = (str(value_of(data["kind"])) for data in documents if "apiVersion" in data and "kind" in data)
    local = next(kinds, "")
    return f"`{local}` is a kind of a local tool" if local else "it has no `apiVersion` and `kind`"


def _has_keys(data: Mapping[str, Any], keys: set[str]) -> bool:
    """Return True if a document has some keys. Any word can be the key of a number: in a vocabulary, or in counts."""
    return keys <= data.keys() and (
        "nbformat" in keys or not any(isinstance(value_of(data[key]), (int, float)) for key in keys)
    )
