"""The VS Code extension: its own tests with the server of this checkout, and its package."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import struct
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXTENSION = ROOT / "editors/vscode"


def find_npm() -> str:
    """Return npm, with the packages of the lock file installed. Tests do not install them: that takes a network."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("node and npm are not installed")
    installed = EXTENSION / "node_modules/.package-lock.json"
    if not installed.exists():
        pytest.skip("the packages of the extension are not installed; run `npm ci` in editors/vscode")
    wanted = json.loads((EXTENSION / "package-lock.json").read_text())["packages"]
    found = json.loads(installed.read_text())["packages"]
    if any(each["integrity"] != wanted.get(name, {}).get("integrity") for name, each in found.items()):
        pytest.skip("other packages of the extension are installed; run `npm ci` in editors/vscode")
    return npm


def run_npm(*arguments: str, **variables: str) -> str:
    done = subprocess.run(
        [find_npm(), *arguments],
        cwd=EXTENSION,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_extension_passes_its_tests_with_the_real_server():
    printed = run_npm("test", JOBGEN_COMMAND=f"{sys.executable} -m jobgen")

    assert re.search(r"^\W+skipped 0$", printed, re.MULTILINE), printed


def test_package_has_one_script_and_no_dependencies():
    run_npm("run", "package")
    with zipfile.ZipFile(EXTENSION / "dist/jobgen.vsix") as archive:
        names = archive.namelist()
        manifest = json.loads(archive.read("extension/package.json"))
        notices = archive.read("extension/dist/NOTICES.txt").decode()

    assert sorted(name for name in names if name.startswith("extension/")) == [
        "extension/LICENSE.txt",
        "extension/changelog.md",
        "extension/dist/NOTICES.txt",
        "extension/dist/extension.js",
        "extension/media/icon.png",
        "extension/package.json",
        "extension/readme.md",
    ]
    assert manifest["main"] == "./dist/extension.js"
    assert "# vscode-languageclient" in notices


def test_no_path_of_the_lock_file_names_a_host():
    lock = json.loads((EXTENSION / "package-lock.json").read_text())

    assert len(lock["packages"]) > 1
    assert [name for name, package in lock["packages"].items() if "resolved" in package] == []


def test_icon_is_the_mark_of_the_page():
    tool = runpy.run_path(str(ROOT / "tools/build_icon.py"))
    picture = (EXTENSION / "media/icon.png").read_bytes()
    length = struct.unpack(">I", picture[33:37])[0]

    # Compressed bytes differ between versions of zlib.
    assert zlib.decompress(picture[41 : 41 + length]) == b"".join(b"\0" + row for row in tool["draw"]())
    assert len(tool["read_mark"]()) == 4
