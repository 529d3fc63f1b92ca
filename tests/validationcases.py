"""Cases of validation: files of objects in tests/validation/<part>/.

`# expect: rule, rule` is on the line of the fault; an object without it is accepted by the API server.
"""

from collections import Counter
from pathlib import Path

from jobgen.check.schema.decoded import decode_nulls
from jobgen.check.schema.shipped import find_shipped_schema
from jobgen.check.validation import validate_object
from jobgen.check.validation.pods import is_workload, validate_workload_pod
from jobgen.k8s.kinds import NEWEST_RELEASE
from jobgen.k8s.objects import Manifest
from jobgen.model.data import value_of
from jobgen.spec.overlay import Cluster
from jobgen.yamlio.read import read

FOLDER = Path(__file__).parent / "validation"


def list_cases(part):
    """The files of a part, or of all."""
    return sorted(FOLDER.glob(f"{part}/*"))


def read_objects(path):
    """The objects of a file, with locations."""
    return [document.data for document in read(path.read_bytes(), path.name, traced=True).documents]


def read_expected(path):
    """The rules that a file expects, by line."""
    return Counter(
        (number, rule)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for rule in line.partition("# expect: ")[2].split(", ")
        if rule
    )


def find_problems(obj, release=NEWEST_RELEASE):
    """What the API server refuses of an object beyond its schema: of its kind, and of the pods of a workload."""
    shipped = find_shipped_schema(str(value_of(obj["apiVersion"])), str(value_of(obj["kind"])), Cluster())
    obj = decode_nulls(obj, shipped.schema) if shipped else obj
    manifest = Manifest(obj, None, Cluster())
    pods = manifest.pods if is_workload(manifest.group, manifest.kind_name) else []
    return [*validate_object(obj, release), *(each for pod in pods for each in validate_workload_pod(pod, release))]
