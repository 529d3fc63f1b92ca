"""Words of a command line that are no file, module or option as they stand: several in one item, or a wrong form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobgen.features.launch.options import Options
from jobgen.features.launch.values import Fault, Program, Word
from jobgen.k8s.joined_words import SCRIPT_AND_MORE
from jobgen.k8s.nodes import as_list, as_text, get_path, list_mappings
from jobgen.k8s.objects import Manifest
from jobgen.k8s.shell.commands import MAX_SHOWN, shorten, split_words
from jobgen.k8s.shell.syntax import SyntaxFault, parse_all
from jobgen.model.data import Plain
from jobgen.model.finding import FixStep
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.place import At, node_at
from jobgen.yamlio.write import to_inline_yaml

# An option, its value and what follows it; and a program of which a launcher starts processes.
_OPTION_AND_MORE = lazy_pattern(r"--?[A-Za-z][\w-]*=\S*\s+\S")
_PROGRAM_AND_MORE = lazy_pattern(r"(?:\S*/)?(?:python[\d.]*|bash|sh)\s+\S")
_COMMAND_AND_MORE = lazy_pattern(r"launch\s+\S")
PROGRAMS_AS_MODULES = {"torchrun": "torch.distributed.run", "accelerate": "accelerate.commands.accelerate_cli"}
"""Programs whose names `python -m` does not take."""
_LIST = lazy_pattern(r"\[\s*['\"\w]")


def check_words(program: Program, options: Options | None, manifest: Manifest) -> Iterator[Fault]:
    """Yield the word of a launcher that is several, as `train.py --lr 1`: it looks for a file of that name.

    The words behind its script are those of the script.
    """
    if options is None:
        own = program.words[:1]
        found = next((word for word in own if _COMMAND_AND_MORE.match(word.text or "")), None)
    else:
        script = next(iter(options.rest), None)
        end = next((at for at, word in enumerate(program.words) if word is script), len(program.words))
        found = next((word for word in program.words[:end] if _is_option_and_more(word)), None)
        if found is None and script is not None and _is_script_and_more(script.text or ""):
            found = script
    if found is not None:
        yield _report(found, program, manifest)


def _is_option_and_more(word: Word) -> bool:
    """Return True for an option with a script or another option behind it."""
    text = word.text or ""
    parts = text.split() if _OPTION_AND_MORE.match(text) else []
    return any(part.endswith((".py", ".sh")) or part.startswith("--") for part in parts[1:])


def _is_script_and_more(text: str) -> bool:
    return any(pattern.match(text) for pattern in (SCRIPT_AND_MORE, _PROGRAM_AND_MORE))


def _report(word: Word, program: Program, manifest: Manifest) -> Fault:
    text = word.text or ""
    message = f"`{shorten(text)}` is one argument, with its spaces, so that `{program.path}` does not start"
    parts, items = list(split_words(text)), _find_list(word, manifest)
    if not items or len(parts) < 2:
        return Fault(word.node, f"{message}; remove the quotation marks around it")
    at = word.node.key if type(word.node) is At else 0
    texts = [as_text(each) for each in items]
    shown = to_inline_yaml([*texts[:at], *parts, *texts[at + 1 :]])
    is_short = len(shown) <= 2 * MAX_SHOWN and "\n" not in shown and "`" not in shown
    advice = f"write `{shown}`" if is_short else f"write {len(parts)} items: `{shorten(', '.join(parts))}`"
    return Fault(word.node, f"{message}; {advice}", fix=(FixStep("split", word.node, parts),))


def _find_list(word: Word, manifest: Manifest) -> Sequence[Plain]:
    """Return the list of a command that has a word as an item of its own; empty if it is a part of a script."""
    containers = (each for pod in manifest.pods for each in pod.containers)
    lists = (as_list(each.data.get(field)) for each in containers for field in ("command", "args"))
    place = word.node
    found: Sequence[Plain] = next((items for items in lists if type(place) is At and items is place.holder), ())
    return found if node_at(place) == word.text else ()


def check_name(program: Program) -> Iterator[Fault]:
    """Yield a file where `-m` takes a module: `python -m train.py`, `torchrun -m src/train.py`."""
    name = program.path
    if program.is_module and (module := PROGRAMS_AS_MODULES.get(name)):
        message = f"`{name}` is a program, and not a module that `-m` starts; write `{module}`, or start `{name}`"
        fix = (FixStep("set", program.node, module),) if node_at(program.node) == name else ()
        yield Fault(program.node, message, fix=fix)
        return
    if not program.is_module or (not name.endswith(".py") and "/" not in name):
        return
    message = f"`-m` takes the name of a module, and `{name}` is a file (`No module named {name}`)"
    if name.startswith(("/", "..")):
        yield Fault(program.node, f"{message}; remove `-m`")
        return
    meant = name.removesuffix(".py").strip("./").replace("/", ".")
    fix = (FixStep("set", program.node, meant),) if node_at(program.node) == name else ()
    yield Fault(program.node, f"{message}; write `{meant}`, or remove `-m`", fix=fix)


def check_quotes(manifest: Manifest) -> Iterator[Fault]:
    """Yield a quotation mark of an entrypoint that is not closed, so that KubeRay cannot split it."""
    node = manifest.spec.get("entrypoint")
    text = as_text(node)
    if ('"' in text or "'" in text) and "${" not in text:
        fault = parse_all(text).failure
        if isinstance(fault, SyntaxFault) and fault.kind == "open" and fault.sign in ("'", '"'):
            message = f"a quotation mark `{fault.sign}` of the entrypoint is not closed (`No closing quotation`)"
            yield Fault(At(manifest.spec, "entrypoint"), f"{message}; write the other one")


def check_entrypoint(manifest: Manifest) -> Iterator[Fault]:
    """Yield a job of Ray without an entrypoint, which the submitter of KubeRay starts no program with."""
    spec = manifest.spec
    submitter = next(iter(list_mappings(get_path(spec, "submitterPodTemplate", "spec", "containers"))), {})
    is_submitted = as_text(spec.get("submissionMode")) in ("", "K8sJobMode", "SidecarMode")
    if (
        "entrypoint" in spec
        and not as_text(spec["entrypoint"]).strip()
        and is_submitted
        and not submitter.get("command")
    ):
        message = "`entrypoint` is empty (`Error: Missing argument 'ENTRYPOINT...'`)"
        yield Fault(At(spec, "entrypoint"), f"{message}; write the command that trains, such as `python train.py`")


def check_entrypoint_words(program: Program) -> Iterator[Fault]:
    """Yield an entrypoint of Ray that is a list in a text, or that has several words in quotation marks."""
    text = as_text(node_at(program.node)).strip()
    if program.path[:1] == "[" and _LIST.match(text):
        words = split_words(text.strip("[]").replace(",", " "))
        message = f"`{program.path}` is not a program (`command not found`): an entrypoint is a text, and not a list"
        yield Fault(program.node, f"{message}; write `{' '.join(words)}`")
    elif " " in program.path.strip() and (SCRIPT_AND_MORE.match(program.path) or _PROGRAM_AND_MORE.match(program.path)):
        message = f"`{shorten(program.path)}` is one word, with its spaces, which is not a file"
        yield Fault(program.node, f"{message}; remove the quotation marks around it")
