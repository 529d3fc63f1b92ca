"""Set the version of jobgen, in the package and in every file that tells users which release to install.

    python tools/set_version.py 0.4.0       # for a release: the package, and what names a release
    python tools/set_version.py 0.5.0.dev0  # after it: the package only, because users install releases

A release also needs a heading in CHANGELOG.md, which people write.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = "jobgen/__init__.py"
NAMED = (
    ".github/ISSUE_TEMPLATE/crash.yml",
    ".github/ISSUE_TEMPLATE/false-positive.yml",
    ".github/ISSUE_TEMPLATE/missed-fault.yml",
    "README.md",
    "README.zh.md",
    "ci/gitlab.yml",
    "deploy/argocd/Dockerfile",
    "deploy/argocd/repo-server-patch.yaml",
    "deploy/cli/Dockerfile",
    "docs/argocd.md",
    "docs/ci.md",
    "docs/install.md",
    "docs/report_data.md",
    "editors/vscode/package-lock.json",
    "editors/vscode/package.json",
)
"""Files that name the last release."""
_PACKAGE_VERSION = re.compile(r'(?<=^__version__ = ")[^"]+', re.MULTILINE)
# What stands before the version in these files. The first two versions of the lock file are those of the extension.
_NAMED_VERSION = re.compile(
    r'(rev: v|ref: v|jobgen@v|jobgen:|jobgen-cmp:|jobgen |对应 jobgen |VERSION: "|"jobgen": "|'
    r'"name": "jobgen",\n *(?:"[^"]*": "[^"]*",\n *)*?"version": ")\d+\.\d+\.\d+(?![\w.]*\d)'
)
_VERSION = re.compile(r"\d+\.\d+\.\d+(\.dev\d+)?")


def read_version() -> str:
    """Return the version of the package."""
    found = _PACKAGE_VERSION.search((ROOT / PACKAGE).read_text("utf-8"))
    assert found is not None
    return found[0]


def find_named() -> dict[str, list[str]]:
    """Return the releases that each file names."""
    texts = {path: (ROOT / path).read_text("utf-8") for path in NAMED}
    return {path: [_last(found[0]) for found in _NAMED_VERSION.finditer(text)] for path, text in texts.items()}


def _last(text: str) -> str:
    return re.findall(r"\d+\.\d+\.\d+", text)[-1]


def main() -> int:
    """Write the version."""
    version = sys.argv[1] if len(sys.argv) == 2 else ""
    found = _VERSION.fullmatch(version)
    if found is None:
        sys.stderr.write("write a version such as 0.4.0, or 0.5.0.dev0 between two releases\n")
        return 2
    package = ROOT / PACKAGE
    package.write_text(_PACKAGE_VERSION.sub(version, package.read_text("utf-8")), "utf-8")
    for path in () if found[1] else NAMED:
        text = (ROOT / path).read_text("utf-8")
        (ROOT / path).write_text(_NAMED_VERSION.sub(rf"\g<1>{version}", text), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
