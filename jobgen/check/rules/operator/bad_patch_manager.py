"""Managers of runtime patches."""

from collections.abc import Iterator

from jobgen.check.admission.names import is_dns_subdomain
from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.nodes import as_list, as_mapping, as_text
from jobgen.k8s.objects import Manifest
from jobgen.k8s.operators import describe_rejection


@rule("job", ERROR, kinds=("TrainJob",))
def bad_patch_manager(manifest: Manifest) -> Iterator[Violation]:
    """A runtime patch of a TrainJob whose `manager` is not a domain and a path.

    The webhook requires the owner of a patch in the form `example.com/team`, and rejects the job otherwise.

    Write a domain and a path, such as `example.com/team`.
    """
    if "runtimePatches" not in manifest.spec:
        return
    for patch in as_list(manifest.spec["runtimePatches"]):
        node = as_mapping(patch).get("manager")
        domain, slash, path = as_text(node).partition("/")
        if as_text(node) and not (slash and path and is_dns_subdomain(domain)):
            message = f"`{as_text(node)}` must be a domain and a path, such as `example.com/team`"
            yield Violation(node, f"{message}; {describe_rejection(manifest)}")
