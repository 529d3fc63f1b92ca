"""Files that are never applied as they are: templates, test data, assets of operators, configuration of programs."""

from __future__ import annotations

import posixpath
import re
from functools import cache

from jobgen.k8s.kinds import BUILTIN_GROUPS
from jobgen.model.data import value_of
from jobgen.model.finding import Finding
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.suggest import find_closest
from jobgen.recognize import ASSET, CONFIG, FRAGMENT, TEMPLATE, TEST_DATA, Taken
from jobgen.recognize.tree import FileTree
from jobgen.repo.files import MANIFEST_SUFFIXES, TEMPLATE_SUFFIXES
from jobgen.schema.shipped_kinds import is_shipped_kind, list_shipped_kinds
from jobgen.yamlio.read import read_shared

# Keys at the start of a line. A pattern that begins with letters is found much faster than one that begins with `^`.
_API_VERSION, _KIND = (
    lazy_pattern(rb"%b(?:(?<=^%b)|(?<=^[\"']%b))[\"']?:[ \t]*[\"']?([^\s\"'#,]+)" % (key, key, key), re.MULTILINE)
    for key in (b"apiVersion", b"kind")
)
# `v1`, `apps/v1beta2`; also with a typo in the version, which is a fault of an object.
_CLUSTER_VERSION = lazy_pattern(r"\A(?:[\w.-]+/)?v?\d+(?:(?:alpha|beta)\d*)?\Z|\A[A-Za-z][\w.-]*/\S*\Z", re.IGNORECASE)
_OBJECT_IN_LIST = lazy_pattern(rb"^(?:- |  |\[?\s{0,8}\{?\s{0,8}\")apiVersion[\"']?:", re.MULTILINE)
_PATCH_OPERATION = lazy_pattern(rb"[\"']?op[\"']?:[ \t]*[\"']?(?:add|remove|replace|move|copy|test)\b")
_PATCH_PATH = lazy_pattern(rb"[\"']?path[\"']?:[ \t]*[\"']?/")
_ANSIBLE = lazy_pattern(
    rb"^(?:- |  )(?:hosts|tasks|become|register|when|loop|import_playbook|import_role|include_role|ansible\.\w+\.\w+):",
    re.MULTILINE,
)
_ANSIBLE_PATH = lazy_pattern(r"(?:\A|/)(?:tasks|handlers|roles|playbooks|group_vars|host_vars|molecule)/")


def recognize_list(path: str, content: bytes, *, is_found: bool) -> Taken | None:
    """Return what a file is whose document is a list: no object is one.

    Any list is something else if the file was found in a folder; one that was named may be meant to be an object.
    """
    # The first line that is neither empty nor a comment is an item of a list.
    lines = (line.strip() for line in content.removeprefix(b"\xef\xbb\xbf")[:100_000].split(b"\n"))
    first = next((line for line in lines if line and not line.startswith((b"#", b"---"))), b"")
    is_list = first == b"-" or first.startswith((b"- ", b"["))
    if not is_list or b"\n---" in content or _OBJECT_IN_LIST.search(content):
        return None
    if _PATCH_OPERATION.search(content) and _PATCH_PATH.search(content):
        return Taken(FRAGMENT, "it is a list of JSON 6902 operations")
    if _ANSIBLE.search(content) or _ANSIBLE_PATH.search(path):
        return Taken(CONFIG, "it is a list of plays or tasks of Ansible")
    return Taken(CONFIG, "it is a list, not an object") if is_found else None


def recognize_config(path: str, content: bytes) -> Taken | None:
    """Return what a file is that names a kind which no cluster has."""
    versions, kinds = (
        [match[1].decode("utf-8", "replace") for match in pattern.finditer(content)]
        for pattern in (_API_VERSION, _KIND)
    )
    if not versions and content.lstrip()[:1] == b"{":
        # The keys of JSON are rarely at the start of a line.
        objects = [each.data for each in read_shared(content, path).documents]
        versions = [str(value_of(data["apiVersion"])) for data in objects if "apiVersion" in data]
        kinds = [str(value_of(data["kind"])) for data in objects if "kind" in data]
    if not versions:
        return None
    strange = next((version for version in versions if not _CLUSTER_VERSION.match(version)), "")
    if strange.startswith("ENC[") and b"sops" in content:
        return Taken(TEMPLATE, "SOPS has also encrypted its kind, so it can be read only with its key")
    # A number is a fault in an object of a known kind.
    is_number = strange[:1].isdigit() and not (b"metadata" in content and _list_known_kinds().intersection(kinds))
    if strange and (any("/" in kind for kind in kinds) or is_number):
        return Taken(CONFIG, f"`apiVersion: {strange}` belongs to a program, not to a cluster")
    if b"metadata" in content or b"jobgen.dev/" in content:
        return None
    # Documents that have a kind of no known group, and neither metadata nor a spec.
    documents = [each.data for each in read_shared(content, path).documents]
    for data in documents:
        version, kind = (str(value_of(data.get(key, ""))) for key in ("apiVersion", "kind"))
        if not version or not kind:
            return None
        is_known = is_shipped_kind(version, kind) or _is_like_builtin(version, kind)
        if is_known or "spec" in data or find_closest("metadata", list(map(str, data)), 0.8):
            return None
    if not documents:
        return None
    kind = str(value_of(documents[0]["kind"]))
    return Taken(CONFIG, f"`{kind}` has neither `metadata` nor `spec`, so a program reads it, not a cluster")


@cache
def _list_known_kinds() -> frozenset[str]:
    return frozenset(each.name for each in list_shipped_kinds())


def _is_like_builtin(version: str, kind: str) -> bool:
    """Return True if a kind may be meant to be one of Kubernetes' own."""
    is_builtin = version.rpartition("/")[0] in BUILTIN_GROUPS
    return is_builtin and bool(find_closest(kind, ["List", *_list_known_kinds()], 0.8))


_FILLED = lazy_pattern(
    rb"^[^#\n]{0,200}?(filled[ _-](?:in[ _-])?by[ _-](?:(?:the|an?)[ _-])?"
    rb"(?:operator|controller|webhook|installer|validator|manager))",
    re.IGNORECASE | re.MULTILINE,
)
# Folders that a Go program embeds or reads; `manifests` only inside of its code.
_ASSET_FOLDERS = frozenset(("assets", "bindata"))
_CODE_FOLDERS = frozenset(("cmd", "controllers", "internal", "pkg"))
_EMBEDDED_FOLDERS = frozenset(("manifests", "resources", "templates", "yaml", "yamls"))
# The first file that shows that a folder is a program in Go.
_GO_FILES = ("go.mod", "PROJECT", "main.go")
_GO_BUILD = lazy_pattern(rb"\bgo (?:build|test|mod|install)\b|\bcontroller-gen\b|^FROM \S*golang", re.MULTILINE)
# A Pod whose container Spark completes, with the names that its documentation and EMR demand.
_SPARK_CONTAINER = lazy_pattern(rb"\bname:[ \t]*[\"']?spark-kubernetes-(?:driver|executor)s?\b")
_POD = lazy_pattern(rb"kind:(?<=^kind:)[ \t]*[\"']?Pod\b", re.MULTILINE)
BUNDLE_SUFFIX = ".clusterserviceversion.yaml"
_BUNDLE_METADATA = "metadata/annotations.yaml"


def recognize_asset(path: str, content: bytes, tree: FileTree) -> Taken | None:
    """Return why a controller completes a manifest; None if nothing says so."""
    # Most files do not have the word, and need no pattern.
    found = _FILLED.search(content) if b"filled" in content.lower() else None
    if found:
        return Taken(ASSET, f"it says `{found[1].decode()}`")
    if _is_pod_template(path, content, tree):
        return Taken(ASSET, "it is a template of pods that Spark completes")
    folders = path.split("/")[:-1]
    for index, folder in enumerate(folders):
        above = folders[:index]
        is_embedded = folder in _EMBEDDED_FOLDERS and not _CODE_FOLDERS.isdisjoint(above)
        if (folder in _ASSET_FOLDERS or is_embedded) and (program := _find_program(above, tree)):
            shown = "/".join(folders[: index + 1])
            return Taken(ASSET, f"`{shown}` belongs to a Go program (`{program}`), which completes its manifests")
    return None


def is_pod(content: bytes) -> bool:
    """Return True if a text has a Pod."""
    return _POD.search(content) is not None


def _is_pod_template(path: str, content: bytes, tree: FileTree) -> bool:
    if not is_pod(content):
        return False
    name = posixpath.basename(path).encode("utf-8", "surrogateescape")
    return bool(_SPARK_CONTAINER.search(content) or tree.find_script(path, b"podTemplateFile", name))


def _find_program(folders: list[str], tree: FileTree) -> str:
    """Return the file that shows that a folder, or one above it, is a program in Go; empty if there is none."""
    for count in range(len(folders), -1, -1):
        for name in (*_GO_FILES, "Makefile", "Dockerfile"):
            path = "/".join((*folders[:count], name))
            if tree.exists(path) and (name in _GO_FILES or _GO_BUILD.search(tree.read(path).content)):
                return path
    return ""


def recognize_bundle(path: str, tree: FileTree) -> Taken | None:
    """Return why OLM installs a manifest: it is part of a bundle."""
    folder, _, _ = path.rpartition("/")
    above, _, name = folder.rpartition("/")
    metadata = f"{above}/{_BUNDLE_METADATA}" if above else _BUNDLE_METADATA
    if name == "manifests" and tree.exists(metadata):
        return Taken(ASSET, f"it is part of a bundle that OLM installs (`{metadata}`)")
    if path.endswith(BUNDLE_SUFFIX):
        return Taken(ASSET, "it is a ClusterServiceVersion, which OLM installs with its bundle")
    return None


# What templates have, and shell scripts inside of objects too: it decides nothing alone.
_VARIABLE = lazy_pattern(rb"\$\{[A-Za-z_]")
_LINE = lazy_pattern(rb"\n[ \t]*+(?:\$[A-Za-z_]|<?%(?!YAML |TAG ))")
# Statements of Go, Helm and Jinja templates on a line of their own.
_STATEMENT = lazy_pattern(
    rb"^[ \t]*(?:\{\{-?[ \t]*(?:/\*|if|else|end|range|with|define|include|template|block|toYaml|tpl)\b|\{%-?[ \t]*\w)",
    re.MULTILINE,
)
_PATHS = (
    (lazy_pattern(r"(?:\A|/)roles/[^/]+/templates/"), "it is a Jinja template of an Ansible role"),
    (lazy_pattern(r"[^{]*\{\{[^/{}]*\}\}"), "its path looks like a project template"),
    (lazy_pattern(r"\.(?:j2|gotmpl)\.(?:ya?ml|json)\Z"), "it is named like a template"),
)
# Endings of texts that are templates of Go, or objects with variables such as `${name}`.
_TEMPLATE_ENDINGS = (
    *(f".{name}{suffix}" for name in ("tmpl", "tpl", "template") for suffix in MANIFEST_SUFFIXES),
    *TEMPLATE_SUFFIXES,
)
_OPENSHIFT = lazy_pattern(rb"^[\"' ]*kind[\"']?:[ \t]*[\"']?Template[\"']?[ \t,]*\r?$", re.MULTILINE)
_OBJECTS = lazy_pattern(rb"^[\"' ]*objects[\"']?:", re.MULTILINE)


def recognize_template(path: str, content: bytes) -> Taken | None:
    """Return why a file is a template; None if it can be read as it is."""
    for pattern, why in _PATHS:
        if pattern.search(path):
            return Taken(TEMPLATE, why)
    if path.endswith(_TEMPLATE_ENDINGS) and not _is_whole(path, content):
        return Taken(TEMPLATE, "it is named like a template, and has more than variables in values")
    if b"Template" in content and _OPENSHIFT.search(content) and _OBJECTS.search(content):
        return Taken(TEMPLATE, "it is a Template of OpenShift, which `oc process` fills in")
    # Job specs have expressions of their own.
    if not has_marker(content) or b"jobgen.dev/" in content:
        return None
    for finding in read_shared(content, path).findings:
        cause = _find_cause(finding, content)
        if cause:
            return Taken(TEMPLATE, f"line {finding.location.line} is template text (`{cause}`)")
    return None


def _is_whole(path: str, content: bytes) -> bool:
    """Return True if a text can be read as it is, and no statement or expression of a template language is in it."""
    return b"{{" not in content and b"{%" not in content and not read_shared(content, path).findings


def has_marker(text: bytes) -> bool:
    """Return True if a text may be part of a template. Most texts are searched for four words, and for no pattern."""
    if b"{{" in text or b"{%" in text:
        return True
    has_line = (b"$" in text or b"%" in text) and _LINE.search(b"\n" + text) is not None
    return has_line or (b"${" in text and _VARIABLE.search(text) is not None)


def _find_cause(finding: Finding, content: bytes) -> str:
    """Return the template text that makes a file invalid; empty if something else does."""
    if finding.rule not in ("template-text", "yaml-syntax", "not-a-mapping"):
        return ""
    lines = content.split(b"\n")
    line = finding.location.line - 1
    # The text that causes a YAML error is on its line, or on one beside it.
    for each in (*lines[line : line + 1], *lines[max(line - 1, 0) : line + 2]):
        if has_marker(each):
            return each.strip().decode("utf-8", "replace")[:60]
    if finding.rule == "template-text":
        return finding.message
    statement = _STATEMENT.search(content)
    return statement[0].strip().decode("utf-8", "replace") if statement else ""


# Folders that test runners read and build tools leave out.
_FOLDERS = frozenset(("__fixtures__", "__snapshots__", "golden", "goldens", "test-data", "test_data", "testdata"))
_GOLDEN_NAME = lazy_pattern(
    r"\.(?:golden|snap|snapshot)\.(?:ya?ml|json)\Z|\A(?:golden|expected)[-_.]|[-_.](?:golden|expected)\."
)
# The steps of kuttl, and the files of Chainsaw that are compared with the cluster.
_ASSERTION_NAME = lazy_pattern(
    r"\A\d+-(?:assert|errors)\b|\A(?:chainsaw-)?assert(?:[-_.]|\Z)|\Aerrors?\.ya?ml\Z|[-_](?:assert|errors)\.ya?ml\Z"
)
# Part of every matcher: most files have none of them, and need no pattern.
MATCHER_SIGNS = (b"$glob:", b"$pattern:", b"$regex:", b"$var:", b"$ignore", b"$strict")
# Values that stand for any text, as comparers of golden files write them.
_MATCHER = lazy_pattern(
    rb"[:-][ \t]{1,8}[\"']?(?:\$(?:glob|pattern|regex|var):|\$(?:ignore|strict)[\"']?[ \t]{0,8}\r?$)"
    rb"|^[ \t]{0,80}[\"']?\$(?:ignore|strict)[\"']?:",
    re.MULTILINE,
)


def recognize_by_path(path: str) -> Taken | None:
    """Return what a path says about a file of a test."""
    *folders, name = path.split("/")
    found = _FOLDERS.intersection(folders)
    if found:
        return Taken(TEST_DATA, f"it is in a folder `{min(found)}`")
    if _GOLDEN_NAME.search(name):
        return Taken(TEST_DATA, "it is named like an expected output")
    is_assertion = _ASSERTION_NAME.search(name)
    return Taken(TEST_DATA, "it is named like an assertion of kuttl or Chainsaw") if is_assertion else None


def recognize_by_content(content: bytes) -> Taken | None:
    """Return what matchers in a file say about it."""
    match = _MATCHER.search(content) if any(sign in content for sign in MATCHER_SIGNS) else None
    if match is None:
        return None
    matcher = match[0].strip(b" \t:\"'-").decode("ascii")
    return Taken(TEST_DATA, f"its values have matchers of a test (`{matcher}`)")
