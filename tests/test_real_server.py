"""Objects with random faults get the verdict of a real API server, where KUBECONFIG names one; otherwise it is skipped.

The server needs the CRDs of no operator. Each object is one of tests/validation that is accepted, with a change.
"""

from __future__ import annotations

import json
import os
import random
import ssl
from collections.abc import Iterator
from contextlib import closing
from copy import deepcopy
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from validationcases import list_cases, read_objects

from jobgen.check.checker import Checker
from jobgen.model.data import untraced
from jobgen.model.finding import Severity
from jobgen.rendering import config
from jobgen.rendering.build import manifest_errors
from jobgen.spec.overlay import Cluster

PROJECT = config.load_own(Path(__file__).parent)
CHECK = Checker(PROJECT.layers, PROJECT.kinds, Cluster())
VALUES: list[Any] = [None, "", "a b", "-x", "UPPER", "a/b", "1", "x" * 64, "..", -1, 0, 65536, 2**31, 1.5, True, [], {}]
# What depends on other objects of the cluster.
ELSEWHERE = ("not found", "already exists", "already allocated", "PriorityClass", "RuntimeClass", "admin access")


class Server:
    """A server that is asked whether it would create an object."""

    def __init__(self, kubeconfig: str) -> None:
        content = yaml.safe_load(Path(kubeconfig).read_text("utf-8"))
        self.token = content["users"][0]["user"]["token"]
        address = urlsplit(content["clusters"][0]["cluster"]["server"])
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self.connection = HTTPSConnection(address.hostname or "", address.port, context=context)
        self.plurals: dict[str, dict[str, tuple[str, bool]]] = {}

    def request(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        self.connection.request(method, path, json.dumps(body), headers)
        response = self.connection.getresponse()
        return response.status, json.loads(response.read())

    def refuses(self, obj: dict[str, Any]) -> bool | None:
        """Whether the server refuses an object; None if that depends on other objects, or if it lacks the kind."""
        version = obj["apiVersion"]
        base = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if version not in self.plurals:
            found = self.request("GET", base)[1].get("resources", ())
            self.plurals[version] = {
                each["kind"]: (each["name"], each["namespaced"])
                for each in found
                if "/" not in each["name"] and "create" in each["verbs"]
            }
        if obj["kind"] not in self.plurals[version]:
            return None
        plural, is_namespaced = self.plurals[version][obj["kind"]]
        folder = f"{base}/namespaces/default" if is_namespaced else base
        status, said = self.request("POST", f"{folder}/{plural}?dryRun=All&fieldValidation=Strict", obj)
        return None if any(word in said.get("message", "") for word in ELSEWHERE) else status >= 400


def find_places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every mapping or list in some data, with each of its keys or indexes."""
    pairs = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in list(pairs):
        yield node, key
        yield from find_places(value)


def change(obj: dict[str, Any], choose: random.Random) -> dict[str, Any]:
    """A copy of an object with one place set to another value, or deleted."""
    made = deepcopy(obj)
    owner, key = choose.choice([place for place in find_places(made) if place[1] not in ("apiVersion", "namespace")])
    if choose.random() < 0.2:
        del owner[key]
    else:
        owner[key] = deepcopy(choose.choice(VALUES))
    return made


def has_errors(obj: dict[str, Any]) -> bool:
    return any(each.severity is Severity.ERROR for each in manifest_errors(obj) or CHECK(obj))


@pytest.mark.skipif(not os.environ.get("KUBECONFIG"), reason="KUBECONFIG names no API server")
def test_jobgen_agrees_with_the_server() -> None:
    server, choose = Server(os.environ["KUBECONFIG"]), random.Random()
    objects: list[Any] = [untraced(obj) for case in list_cases("*") if case.parent.name != "extensions"
                          for obj in read_objects(case)]  # fmt: skip
    for obj in objects:
        obj.get("metadata", {}).pop("namespace", None)
    with closing(server.connection):
        valid = [obj for obj in objects if server.refuses(obj) is False]
        asked = [(obj, server.refuses(obj)) for obj in (change(choose.choice(valid), choose) for _ in range(500))
                 if isinstance(obj.get("kind"), str)]  # fmt: skip
    wrong = [json.dumps(obj) for obj, refused in asked if refused is not None and has_errors(obj) is not refused]

    assert len(valid) > 50
    assert len(wrong) <= len(asked) // 100, "\n".join(wrong)
