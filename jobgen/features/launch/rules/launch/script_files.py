"""Scripts in ConfigMaps that nothing can run."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.k8s.objects import Manifest
from jobgen.model.data import TracedScalar


@rule("manifest", WARNING, kinds=("ConfigMap",))
def broken_script(manifest: Manifest) -> Iterator[Violation]:
    """A script of a shell or of Python in a ConfigMap, which the shell or Python refuses.

    Whatever starts it fails at once. Files with the ending `.sh` or `.py` are read, and files whose first line is `#!`
    with the name of a shell or of Python, also files that a kustomization puts into a ConfigMap. Where the command of a
    job of the repository names the script, the finding is an error of the rules `script-syntax` and `launch-refused`.
    Syntax that some release of Python accepts is not reported.

    Follow the message. `bash -n FILE` and `python -m py_compile FILE` also find these faults.
    """
    for key, node in as_mapping(manifest.object.get("data")).items():
        name = str(key)
        if name.endswith((".sh", ".py")) or as_text(node)[:2] == "#!":
            # Imported late: few ConfigMaps have scripts.
            from jobgen.features.launch.script_files import find_file_mistakes

            for line, message, inside in find_file_mistakes(name, as_text(node)):
                at, place = (node, inside) if type(node) is TracedScalar else (None, None)
                yield Violation(node, f"in line {line} of `{name}`, {message}", at=at, inside=place)
