"""Scripts in ConfigMaps that nothing can run."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.k8s.objects import Manifest
from jobgen.model.place import At
from jobgen.model.sentence import Sentence


@rule("manifest", WARNING, kinds=("ConfigMap",))
def broken_script(manifest: Manifest) -> Iterator[Violation]:
    """A script of a shell or of Python in a ConfigMap, which the shell or Python refuses.

    Whatever starts it fails at once. Files with the ending `.sh` or `.py` are read, and files whose first line is `#!`
    with the name of a shell or of Python, also files that a kustomization puts into a ConfigMap. Where the command of a
    job of the repository names the script, the finding is an error of the rules `script-syntax` and `launch-refused`.
    Syntax that some release of Python accepts is not reported.

    Correct the line that is named. Before a commit, `bash -n FILE` and `python -m py_compile FILE` also find these
    faults.

    When to turn it off: a file that is not a script in spite of its ending, such as a fragment that is sourced by a
    generator, can be accepted on its line in the ConfigMap.
    """
    data = as_mapping(manifest.object.get("data"))
    for key, node in data.items():
        name = str(key)
        if name.endswith((".sh", ".py")) or as_text(node)[:2] == "#!":
            # Imported late: few ConfigMaps have scripts.
            from jobgen.features.launch.script_files import find_file_mistakes

            for line, message, inside in find_file_mistakes(name, as_text(node)):
                place = At(data, key)
                yield Violation(place, Sentence("in line {} of `{}`, {}", line, name, message), at=place, inside=inside)
