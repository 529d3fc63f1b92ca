"""Configurations of operators, which ConfigMaps have as text."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.k8s.objects import Manifest
from jobgen.model.origins import Origins
from jobgen.model.place import At


@rule("manifest", ERROR, kinds=("ConfigMap",))
def invalid_kueue_configuration(manifest: Manifest) -> Iterator[Violation]:
    """The Configuration of Kueue with a field or a value that Kueue refuses, or with which jobs do not run.

    Kueue reads its Configuration strictly: with an unknown field, a negative number or time, a framework that is listed
    twice, or an unknown strategy, the manager stops at its start, and no job is admitted. An unknown name among
    `frameworks`, a `timeout` of `waitForPodsReady` that no pod with GPUs can keep, and `backoffLimitCount: 0`, which
    gives up a job after its first delay, are each a warning.

    Correct the field or the value. The manager logs the same text at its start, before it gives up.

    When to turn it off: if you run a fork of Kueue with more fields, accept the file with an exception; for a
    release that is newer than jobgen, declare it in `cluster.kueue.version` after an update of jobgen.
    """
    data = as_mapping(manifest.object.get("data"))
    for name in data:
        text = as_text(data[name])
        if "config.kueue." not in text:
            continue
        # Imported late: few ConfigMaps have it.
        from jobgen.check.operators.kueue_configuration import find_faults, is_configuration
        from jobgen.yamlio.read import read

        source = read(text.encode(errors="replace"), "", traced=True)
        origins = Origins(document.data for document in (source.documents if not source.findings else ()))
        for found in origins.objects:
            for fault, message, is_certain in find_faults(found) if is_configuration(found) else ():
                severity = None if is_certain else WARNING
                yield Violation(At(data, name), message, severity=severity, inside=origins.find_location(fault))
