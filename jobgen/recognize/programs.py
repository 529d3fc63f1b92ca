"""Configuration of other programs: it has `kind`, or the fields of an object, and no API server has it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jobgen.k8s.builtin_groups import BUILTIN_GROUPS
from jobgen.model.data import value_of
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.suggest import find_closest
from jobgen.recognize import CONFIG, FRAGMENT, Taken
from jobgen.schema.shipped_kinds import is_shipped_kind
from jobgen.yamlio.read import read_shared

# Keys at the start of a line. A pattern that begins with letters is found much faster than one that begins with `^`.
_API_VERSION, _KIND = (
    lazy_pattern(rb"%b(?:(?<=^%b)|(?<=^[\"']%b))[\"']?:[ \t]*[\"']?([^\s\"'#,]+)" % (key, key, key), re.MULTILINE)
    for key in (b"apiVersion", b"kind")
)
# `v1`, `apps/v1beta2`; also with a typo in the version, which is a fault of an object.
_CLUSTER_VERSION = lazy_pattern(r"\A(?:[\w.-]+/)?v?\d+(?:(?:alpha|beta)\d*)?\Z|\A[A-Za-z][\w.-]*/\S*\Z", re.IGNORECASE)
_MAX_HEAD = 100_000
_OBJECT_IN_LIST = lazy_pattern(rb"^(?:- |  |\[?\s{0,8}\{?\s{0,8}\")apiVersion[\"']?:", re.MULTILINE)
_PATCH_OPERATION = lazy_pattern(rb"[\"']?op[\"']?:[ \t]*[\"']?(?:add|remove|replace|move|copy|test)\b")
_PATCH_PATH = lazy_pattern(rb"[\"']?path[\"']?:[ \t]*[\"']?/")
_ANSIBLE = lazy_pattern(
    rb"^(?:- |  )(?:hosts|tasks|become|register|when|loop|import_playbook|import_role|include_role|ansible\.\w+\.\w+):",
    re.MULTILINE,
)
_ANSIBLE_PATH = lazy_pattern(r"(?:\A|/)(?:tasks|handlers|roles|playbooks|group_vars|host_vars|molecule)/")
# Programs by a file name, and by keys at the top of their configuration.
_BY_NAME = (
    (r"(?:\A|/)jobgen\.yaml\Z", "settings of jobgen"),
    (r"(?:\A|/)Chart\.(?:yaml|lock)\Z", "metadata of a Helm chart"),
    (r"(?:\A|/)values[\w.-]*\.ya?ml\Z|(?:\A|/)[\w.-]*values\.ya?ml\Z", "values of a Helm chart"),
    (r"(?:\A|/)(?:docker-)?compose[\w.-]*\.ya?ml\Z", "Docker Compose"),
    (
        r"(?:\A|/)(?:package(?:-lock)?|tsconfig[\w.-]*|composer|renovate|\.?eslintrc)\.json\Z",
        "a package manager or its tools",
    ),
    (
        r"(?:\A|/)(?:\.gitlab-ci|\.travis|azure-pipelines|cloudbuild|buildkite|bitbucket-pipelines)[\w.-]*\.ya?ml\Z",
        "CI",
    ),
    (r"(?:\A|/)\.(?:github|gitlab|circleci|buildkite|tekton|prow)/", "CI"),
    (r"(?:\A|/)(?:mkdocs|_config|_toc|antora|docusaurus)[\w.-]*\.ya?ml\Z", "a documentation site"),
    (
        r"(?:\A|/)\.(?:pre-commit[\w.-]*|yamllint|golangci|markdownlint|hadolint|prettierrc|goreleaser)[\w.-]*\Z",
        "a linter or a release tool",
    ),
    (
        r"(?:\A|/)(?:[Tt]askfile|helmfile|skaffold|tilt|garden|werf|okteto|devspace)[\w.-]*\.ya?ml\Z",
        "a build or deployment tool",
    ),
)
_BY_KEYS = (
    ({"AWSTemplateFormatVersion"}, "CloudFormation"),
    ({"services"}, "Docker Compose"),
    ({"openapi"}, "OpenAPI"),
    ({"swagger"}, "OpenAPI"),
    ({"panels"}, "Grafana"),
    ({"scrape_configs"}, "Prometheus"),
    ({"groups"}, "Prometheus or Grafana alerts"),
    ({"jobs", "on"}, "a GitHub workflow"),
    ({"stages"}, "CI"),
    ({"repos"}, "pre-commit"),
    ({"resources", "run"}, "SkyPilot"),
    ({"resources", "setup"}, "SkyPilot"),
    ({"cluster_name", "provider"}, "the Ray cluster launcher"),
    ({"suite", "tests"}, "helm-unittest"),
    ({"nbformat"}, "Jupyter"),
    ({"commonLabels"}, "kustomize"),
    ({"nameReference"}, "kustomize"),
    ({"varReference"}, "kustomize"),
)


def recognize_list(path: str, content: bytes, *, is_found: bool) -> Taken | None:
    """Return what a file is whose document is a list: no object is one.

    Any list is something else if the file was found in a folder; one that was named may be meant to be an object.
    """
    if not _begins_list(content) or b"\n---" in content or _OBJECT_IN_LIST.search(content):
        return None
    if _PATCH_OPERATION.search(content) and _PATCH_PATH.search(content):
        return Taken(FRAGMENT, "it is a list of JSON 6902 operations")
    if _ANSIBLE.search(content) or _ANSIBLE_PATH.search(path):
        return Taken(CONFIG, "it is a list of plays or tasks of Ansible")
    return Taken(CONFIG, "it is a list, and no object is one") if is_found else None


def _begins_list(content: bytes) -> bool:
    """Return True if the first line that is neither empty nor a comment is an item of a list."""
    lines = (line.strip() for line in content.removeprefix(b"\xef\xbb\xbf")[:_MAX_HEAD].split(b"\n"))
    first = next((line for line in lines if line and not line.startswith((b"#", b"---"))), b"")
    return first == b"-" or first.startswith((b"- ", b"["))


def recognize_config(path: str, content: bytes) -> Taken | None:
    """Return what a file is that names a kind which no cluster has."""
    versions = [match[1].decode("utf-8", "replace") for match in _API_VERSION.finditer(content)]
    if not versions:
        return None
    strange = next((version for version in versions if not _CLUSTER_VERSION.match(version)), "")
    kinds = [match[1].decode("utf-8", "replace") for match in _KIND.finditer(content)]
    if strange and (any("/" in kind for kind in kinds) or strange[0].isdigit()):
        return Taken(CONFIG, f"`apiVersion: {strange}` is that of a program, not of a cluster")
    if b"metadata" in content or b"jobgen.dev/" in content:
        return None
    return _recognize_without_metadata(path, content)


def _recognize_without_metadata(path: str, content: bytes) -> Taken | None:
    """Return what a file is whose documents have a kind of no known group, and neither metadata nor a spec."""
    documents = read_shared(content, path).documents
    for document in documents:
        data = document.data
        version, kind = (str(value_of(data.get(key, ""))) for key in ("apiVersion", "kind"))
        is_known = version.rpartition("/")[0] in BUILTIN_GROUPS or is_shipped_kind(version, kind)
        is_object = is_known or "spec" in data or find_closest("metadata", list(map(str, data)), 0.8)
        if not version or not kind or is_object:
            return None
    if not documents:
        return None
    kind = str(value_of(documents[0].data["kind"]))
    return Taken(CONFIG, f"`{kind}` has neither `metadata` nor `spec`, so a program reads it, and no cluster")


def name_program(path: str, documents: Sequence[Mapping[str, Any]]) -> str:
    """Return why a file without objects is configuration, with the program if it is known."""
    for pattern, program in _BY_NAME:
        if re.search(pattern, path):
            return f"its name is that of {program}"
    for keys, program in _BY_KEYS:
        if any(keys <= data.keys() for data in documents):
            return f"it has {_list_keys(keys)}, as files of {program} do"
    local = next(_list_local_kinds(documents), "")
    return f"`{local}` is a kind of a local tool" if local else "it has no `apiVersion` and `kind`"


def _list_keys(keys: set[str]) -> str:
    return " and ".join(f"`{key}`" for key in sorted(keys))


def _list_local_kinds(documents: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    return (str(value_of(data["kind"])) for data in documents if "apiVersion" in data and "kind" in data)
