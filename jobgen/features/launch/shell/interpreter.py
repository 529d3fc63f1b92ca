"""Run the command of a container without a container: which programs it starts, with which words and variables.

Shells are interpreted, other programs are not: what depends on them, on the image or on the cluster is *unknown*. A
program that starts only under an unknown condition is not certain. A program is taken to succeed.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from jobgen.features.launch.shell.builtins import (
    ANYTHING,
    BUILTINS,
    OPTION_NAMES,
    WRAPPERS,
    Condition,
    Shell,
    to_status,
)
from jobgen.features.launch.shell.values import (
    MAX_DEPTH,
    MAX_TEXT,
    PERHAPS,
    SENTINELS,
    SPLIT,
    STARTED,
    UNKNOWN,
    Call,
    Environment,
    Exit,
    Field,
    Files,
    Leave,
    Run,
    TooMuch,
    Value,
    Word,
    find_variable,
    is_known,
    list_openings,
    to_text,
    to_word,
)
from jobgen.k8s.shell import SHELLS, tree
from jobgen.k8s.shell.syntax import UnsupportedSyntax, parse_script
from jobgen.k8s.shell.tree import Assignment
from jobgen.model.budget import Work, charge
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.place import Place

_REFERENCE = lazy_pattern(r"\$\$|\$\(([^()\s]*)\)")
_SHEBANG = lazy_pattern(r"#!\s*(?:\S*/env\s+(?:-S\s+)?)?(?:\S*/)?(\w+)")


def run_command(words: Sequence[Word], env: Mapping[str, Word], files: Files, folder: str = "") -> tuple[Call, ...]:
    """Return the programs that a command line starts, in their order; none of those of a script that is too complex.

    The words are those that Kubernetes hands over. `folder` is where it starts; empty if that is not known.
    """
    if words and _is_direct(words[0].text, files):
        return (Call(tuple(words), env, True, files),)
    run = Run(files)
    shell = Interpreter(run, {}, None, folder or UNKNOWN)
    for name, value in env.items():
        if name == "*":
            shell.openings = list_openings(value)
        else:
            shell.variables[name] = Value(to_text(value), value.node, exported=True)
    try:
        shell.start([(to_text(word), word.node) for word in words])
    except (Exit, Leave):
        pass
    except (UnsupportedSyntax, TooMuch, RecursionError):
        return ()
    finally:
        run.charge()
    return run.list_calls()


def _is_direct(program: str | None, files: Files) -> bool:
    """Return True if a program is certainly no shell, no script for one, and starts no other command."""
    if program is None:
        return False
    name = program.rpartition("/")[2]
    is_known = name in SHELLS or name in BUILTINS or name in WRAPPERS or name == "env"
    is_file = "/" in program and (not program.startswith("/") or files(program) is not None)
    return not is_known and not is_file


def expand_references(text: str, env: Mapping[str, Word]) -> str:
    """Replace `$(NAME)` as Kubernetes does; a variable whose value is not known leaves a part that is not known."""

    def replace(match: re.Match[str]) -> str:
        name: str | None = match[1]
        if name is None:
            return "$"
        value = find_variable(env, name)
        return f"$({name})" if value is None else to_text(value)

    text = text if is_known(text) else SENTINELS.sub(UNKNOWN, text)
    if "$" not in text:
        return text
    found = [*_REFERENCE.finditer(text)]
    size = sum(len(replace(match)) for match in found)
    charge(Work.VARIABLES, 2 * len(found), size)
    # A variable that holds others many times would not fit into memory.
    return _REFERENCE.sub(replace, text) if size <= MAX_TEXT else UNKNOWN


class Interpreter(Shell):
    """A shell: its variables, parameters and functions."""

    def __init__(self, run: Run, variables: dict[str, Value], node: Place, folder: str, depth: int = 0) -> None:
        super().__init__(run, variables, folder)
        self.node = node
        self.depth = depth
        self.is_certain = True
        self.in_condition = False
        self.in_while = False
        self.traps: list[str] = []

    def copy(self) -> Interpreter:
        """Return a shell with the same state, as a subshell has."""
        self.run.step()
        self.run.spend(len(self.variables) + len(self.parameters))
        other = Interpreter(self.run, dict(self.variables), self.node, self.folder, self.depth + 1)
        if other.depth > MAX_DEPTH:
            raise TooMuch
        other.parameters, other.name = list(self.parameters), self.name
        other.functions, other.options = dict(self.functions), set(self.options)
        other.openings, other.is_certain = self.openings, self.is_certain
        other.output, other.input, other.status = self.output, self.input, self.status
        other.in_condition, other.in_while = self.in_condition, self.in_while
        other.saved = [dict(each) for each in self.saved]
        return other

    def run_script(self, script: tree.Script) -> int:
        """Run commands, and return the status of the last one."""
        status = 0
        for and_or in script:
            status = self.status = self.run_and_or(and_or)
        return status

    def run_text(self, text: str) -> int:
        """Run a script."""
        return self.run_script(parse_script(text))

    def run_and_or(self, and_or: tree.AndOr) -> int:
        """Run pipelines that `&&` and `||` connect; in the background, a subshell does it at any time."""
        if and_or.is_background:
            written = dict(self.run.written)
            try:
                self.copy().run_and_or(and_or._replace(end=""))
            except (Exit, Leave):
                pass
            changed = {path: UNKNOWN for path, text in self.run.written.items() if written.get(path) != text}
            self.run.written.update(changed)
            return STARTED
        status, was_last = 0, True
        start = len(self.run.calls)
        last = len(and_or.pipelines) - 1
        for place, (operator, pipeline) in enumerate(and_or.pipelines):
            outer = self.in_condition
            self.in_condition = outer or place < last
            try:
                if not operator:
                    status = self.run_pipeline(pipeline)
                elif operator == "&&":
                    was_last = status <= 0
                    if status in (0, STARTED):
                        status = self.run_after(pipeline, status, start)
                    elif status == PERHAPS:
                        status = self.branch(_run_later(pipeline), _skip)
                elif status in (STARTED, PERHAPS):
                    before, end, goes_on = status, len(self.run.calls), list[int]()
                    self.branch(_note(goes_on, _run_later(pipeline)), _skip)
                    self.run.excuse(start, end, end, None if goes_on else len(self.run.calls))
                    status = before
                else:
                    was_last = status > 0
                    status = self.run_pipeline(pipeline) if status > 0 else status
            finally:
                self.in_condition = outer
        if status > 0 and was_last and "e" in self.options and not self.in_condition:
            raise Exit(status)
        return status

    def run_after(self, pipeline: tree.Pipeline, status: int, start: int) -> int:
        """Run what follows `&&`. In `program && exit`, what follows is for a program that failed."""
        end = len(self.run.calls)
        try:
            return self.run_pipeline(pipeline)
        except (Exit, Leave) as error:
            is_retry = self.in_while and isinstance(error, Leave)
            if status == 0 or start == end or is_retry or (isinstance(error, Exit) and error.status > 0):
                raise
            self.run.excuse(start, end, len(self.run.calls))
            self.is_certain = False
            return PERHAPS

    def run_pipeline(self, pipeline: tree.Pipeline) -> int:
        """Run commands that `|` connects."""
        self.run.step()
        if len(pipeline.commands) == 1:
            if pipeline.negated:
                outer, self.in_condition = self.in_condition, True
                try:
                    status = self.run_one(pipeline.commands[0])
                finally:
                    self.in_condition = outer
                return PERHAPS if status < 0 else int(status == 0)
            return self.run_one(pipeline.commands[0])
        status, given = 0, self.input
        for place, command in enumerate(pipeline.commands):
            shell = self.copy()
            shell.input = given
            if place < len(pipeline.commands) - 1:
                shell.output = []
            try:
                status = shell.run_one(command)
            except Exit as error:
                status = error.status
            except Leave:
                status = PERHAPS
            given = "".join(shell.output or ()) if place < len(pipeline.commands) - 1 else None
            if given is None and "lastpipe" in self.options:
                self.merge([self, shell])
        if pipeline.negated:
            return PERHAPS if status < 0 else int(status == 0)
        return STARTED if status == 0 else status

    def run_one(self, command: tree.Command) -> int:
        """Run one command."""
        self.run.step()
        if isinstance(command, tree.Simple):
            return self.run_simple(command)
        if isinstance(command, tree.Group):
            return self.run_group(command)
        if isinstance(command, tree.If):
            return self.run_if(command.branches)
        if isinstance(command, tree.Loop):
            return self.run_loop(command)
        if isinstance(command, tree.For):
            return self.run_for(command)
        if isinstance(command, tree.Case):
            return self.run_case(command)
        if isinstance(command, tree.Function):
            self.functions[command.name] = command.body
            for text in self.traps:
                self.set_trap(text)
            return 0
        if isinstance(command, tree.Test):
            return to_status(Condition(self, command.tokens).decide())
        value = self.calculate(self.join(command.expression))
        return PERHAPS if value is None else int(value == 0)

    def run_group(self, group: tree.Group) -> int:
        """Run a group of commands."""
        shell = self.copy() if group.is_subshell else self
        outer = shell.input, shell.output
        shell.input, shell.output = self.redirect(group.redirections)
        try:
            return shell.run_script(group.body)
        except Exit as error:
            if not group.is_subshell:
                raise
            return error.status
        finally:
            shell.input, shell.output = outer

    def run_if(self, branches: tuple[tuple[tree.Script | None, tree.Script], ...]) -> int:
        """Run the branch whose condition holds, or all that can be it."""
        if not branches:
            return 0
        condition, body = branches[0]
        start, goes_on = len(self.run.calls), list[int]()
        status = 0 if condition is None else self.decide(condition)
        if status == 0:
            return self.run_script(body)
        if status > 0:
            return self.run_if(branches[1:])
        end = len(self.run.calls)
        status = self.branch(
            _note(goes_on, lambda shell: shell.run_script(body), ends_well=True),
            _note(goes_on, lambda shell: shell.run_if(branches[1:])),
        )
        self.run.excuse(start, end, end, None if len(goes_on) > 1 else len(self.run.calls))
        return status

    def decide(self, condition: tree.Script) -> int:
        """Run a condition: that a program succeeds is not known here."""
        outer, self.in_condition = self.in_condition, True
        try:
            status = self.run_script(condition)
        finally:
            self.in_condition = outer
        return PERHAPS if status == STARTED else status

    def run_loop(self, loop: tree.Loop) -> int:
        """Run `while` or `until`; a condition that is not known holds once or never."""
        while True:
            start = len(self.run.calls)
            status = self.decide(loop.condition)
            if status == PERHAPS:
                end, old = len(self.run.calls), dict(self.variables)
                self.branch(lambda shell: shell.run_in_loop(loop.body, in_while=True), _skip)
                if old != self.variables:
                    # The next try is another one.
                    tried = self.run.calls[start:end]
                    self.run.calls[start:end] = [call._replace(is_certain=False) for call in tried]
                return 0
            if (status == 0) == loop.until:
                return 0
            before = dict(self.variables)
            if self.run_in_loop(loop.body, in_while=True):
                return 0
            if before == self.variables:
                # It never ends, or only by what is not known.
                raise Exit(STARTED)

    def run_in_loop(self, body: tree.Script, *, in_while: bool = False) -> int:
        """Run the body of a loop once; return 1 if the loop ends with it."""
        outer, self.in_while = self.in_while, in_while
        try:
            self.run_script(body)
        except Leave as leave:
            if leave.word == "return":
                raise
            if leave.levels > 1:
                raise Leave(leave.word, 0, leave.levels - 1) from None
            return int(leave.word == "break")
        finally:
            self.in_while = outer
        return 0

    def run_for(self, loop: tree.For) -> int:
        """Run `for`."""
        if loop.expressions:
            return self.run_counting(loop)
        fields = (
            list(self.parameters) if loop.words is None else [each for word in loop.words for each in self.expand(word)]
        )
        for text, node in fields:
            self.run.step()
            if SPLIT in text:
                self.branch(_run_with_unknown(loop, node), _skip)
            elif self.run_with(loop, (text, node)):
                break
        return 0

    def run_with(self, loop: tree.For, value: Field) -> int:
        """Run the body of a loop with a value."""
        self.assign(loop.name, value[0], value[1])
        return self.run_in_loop(loop.body)

    def run_counting(self, loop: tree.For) -> int:
        """Run `for ((…))`."""
        first, condition, after = loop.expressions
        self.calculate(self.join(first))
        while True:
            text = self.join(condition)
            value = self.calculate(text) if text.strip() else 1
            if value is None:
                self.branch(lambda shell: shell.run_in_loop(loop.body), _skip)
                return 0
            if value == 0 or self.run_in_loop(loop.body):
                return 0
            self.run.step()
            self.calculate(self.join(after))

    def run_case(self, case: tree.Case) -> int:
        """Run the branch of `case` that matches, or all that can match."""
        subject = self.join(case.subject)
        possible: list[tree.Script] = []
        for patterns, body, _ in case.branches:
            found = [self.match(subject, pattern) for pattern in patterns]
            if any(found):
                possible.append(body)
                break
            if None in found:
                possible.append(body)
        else:
            if not possible:
                return 0
            possible.append(())
        if len(possible) == 1:
            return self.run_script(possible[0])
        return self.branch(*(lambda shell, each=body: shell.run_script(each) for body in possible))

    def branch(self, *runs: Callable[[Interpreter], int]) -> int:
        """Run alternatives of which one happens, and go on with what they have in common."""
        ended: list[Exit | Leave] = []
        left: list[Interpreter] = []
        statuses: set[int] = set()
        for run in runs:
            shell = self.copy()
            shell.is_certain = False
            try:
                statuses.add(run(shell))
                left.append(shell)
            except (Exit, Leave) as error:
                ended.append(error)
        if not left:
            raise ended[0]
        # What ends with an error is taken not to happen.
        goes_on = all(isinstance(each, Exit) and each.status > 0 for each in ended)
        self.is_certain = (
            self.is_certain and goes_on and (len(left) == 1 or all(each.is_certain is False for each in left))
        )
        self.merge(left)
        return statuses.pop() if len(statuses) == 1 else PERHAPS

    def merge(self, shells: Sequence[Interpreter]) -> None:
        """Take over what several shells have in common."""
        first = shells[0]
        names = {name for shell in shells for name in shell.variables}
        merged: dict[str, Value] = {}
        for name in names:
            values = [shell.variables.get(name) for shell in shells]
            known = next(value for value in values if value is not None)
            same = all(value is not None and value.text == known.text for value in values)
            exported = any(value is not None and value.exported for value in values)
            kinds = {value.kind for value in values if value is not None}
            kind = kinds.pop() if len(kinds) == 1 else "?"
            merged[name] = known._replace(text=known.text if same else UNKNOWN, exported=exported, kind=kind)
        self.variables = merged
        self.openings = tuple(dict.fromkeys(start for shell in shells for start in shell.openings))
        functions = {name: body for shell in reversed(shells) for name, body in shell.functions.items()}
        self.functions = {
            name: body if all(shell.functions.get(name) is body for shell in shells) else ANYTHING
            for name, body in functions.items()
        }
        self.folder = first.folder if all(shell.folder == first.folder for shell in shells) else UNKNOWN
        same = all(shell.parameters == first.parameters for shell in shells)
        self.parameters = first.parameters if same else [(SPLIT, None)]
        options = set[str]().union(*(shell.options for shell in shells)) & {"lastpipe", "functions"}
        self.options = set.intersection(*(shell.options for shell in shells)) | options

    def set_trap(self, text: str) -> None:
        """Forget the variables that commands set: they can run at any time."""
        if not text.strip(UNKNOWN):
            raise UnsupportedSyntax
        shell, count = self.copy(), len(self.run.calls)
        shell.forget()
        before = dict(shell.variables)
        try:
            shell.run_text(text)
        except (Exit, Leave):
            pass
        self.run.drop(count)
        changed = [name for name, value in shell.variables.items() if value is not before.get(name)]
        self.doubt(" ".join(changed), always=True)
        self.traps = list(dict.fromkeys((*self.traps, text)))

    def run_simple(self, command: tree.Simple) -> int:
        """Run a command with its words."""
        if not command.words:
            status = 0
            for assignment in command.assignments:
                status = self.apply(assignment)
            self.redirect(command.redirections)
            return status
        outer = self.input, self.output
        fields = [field for word in command.words for field in self.expand_argument(word)]
        before = {each.name: self.variables.get(each.name) for each in command.assignments}
        for assignment in command.assignments:
            self.apply(assignment, exported=True)
        try:
            self.input, self.output = self.redirect(command.redirections)
            return self.start(fields)
        finally:
            self.input, self.output = outer
            for name, value in before.items():
                self.restore(name, value)

    def expand_argument(self, word: tree.Word | Assignment) -> list[Field]:
        """Return the words that an argument becomes."""
        if not isinstance(word, Assignment):
            return self.expand(word)
        if isinstance(word.value, list):
            self.apply(word)
            return [(word.name, None)]
        text, node = self.join_with_node(word.value)
        return [(f"{word.name}{'+' if word.appends else ''}={text}", node)]

    def restore(self, name: str, value: Value | None) -> None:
        """Set a variable to an earlier value."""
        if value is None:
            self.variables.pop(name, None)
        else:
            self.variables[name] = value

    def redirect(self, redirections: Iterable[tree.Redirection]) -> tuple[str | None, list[str] | None]:
        """Return what a command reads, and where its output is kept."""
        given, output = self.input, self.output
        for each in redirections:
            if each.operator in ("<<", "<<-"):
                given = self.join(each.body[0]) if each.body else None
            elif each.operator == "<<<":
                given = self.join(each.target) + "\n"
            elif each.operator == "<":
                given = self.read_file(self.join(each.target))
            elif each.operator in (">", ">>", ">|") and each.descriptor in ("", "1", "&"):
                output = self.open_file(self.join(each.target), appends=each.operator == ">>")
            elif each.operator == ">&" and each.descriptor in ("", "1", "&") and self.output is not None:
                output = []
        return given, output

    def open_file(self, path: str, *, appends: bool) -> list[str]:
        """Return the output that goes to a file."""
        return _File(self.run, posixpath.normpath(self.find_path(path)), appends=appends)

    def start(self, fields: list[Field]) -> int:
        """Run a function, a built-in command or a program."""
        self.run.step()
        if not fields:
            return 0
        name = fields[0][0]
        if not is_known(name):
            self.write(UNKNOWN)
            return STARTED
        function = self.functions.get(name)
        if function is not None:
            return self.call(function, fields[1:])
        builtin = BUILTINS.get(name)
        if builtin is not None:
            return builtin(self, fields[1:])
        base = name.rpartition("/")[2]
        if base in SHELLS:
            return self.start_shell(fields)
        inner = self.unwrap(base, fields[1:])
        if inner is not None:
            return inner
        text = self.read_file(name) if "/" in name else None
        if text is not None and _is_shell_script(text):
            return self.start_script(text, fields[1:], fields[0][1])
        self.record(fields)
        self.write(UNKNOWN)
        return STARTED

    def record(self, fields: list[Field]) -> None:
        """Keep a call of a program."""
        env = Environment(dict(self.variables), self.openings)
        words = tuple(to_word(text, self.node if node is None else node) for text, node in fields)
        self.run.calls.append(Call(words, env, self.is_certain, self.read_file))

    def call(self, function: tree.Command, arguments: list[Field]) -> int:
        """Call a function."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise TooMuch
        outer, self.parameters = self.parameters, arguments
        self.saved.append({})
        try:
            return self.run_one(function)
        except Leave as leave:
            if leave.word != "return":
                raise
            return leave.status
        finally:
            self.parameters = outer
            self.depth -= 1
            for name, value in (self.saved.pop() if self.saved else {}).items():
                self.restore(name, value)

    def start_shell(self, fields: list[Field]) -> int:
        """Run the script of `bash -c`, or the file that a shell is started with."""
        at, options = _read_shell_options(fields)
        if at < 0:
            return self.give_up(fields)
        if "s" in options or at >= len(fields):
            if self.input is None or not is_known(self.input) or "c" in options:
                return self.give_up(fields)
            return self.start_script(self.input, fields[at:], self.node, options)
        first, node = fields[at]
        if "c" in options:
            if not is_known(first):
                return self.give_up(fields)
            name = fields[at + 1][0] if at + 1 < len(fields) else fields[0][0]
            return self.start_script(first, fields[at + 2 :], node, options, name)
        text = self.read_file(first) if is_known(first) else None
        if text is None:
            return self.give_up(fields[at:])
        return self.start_script(text, fields[at + 1 :], node, options, first)

    def give_up(self, fields: list[Field]) -> int:
        """Keep a call of a shell whose script is not known."""
        self.record(fields)
        self.write(UNKNOWN)
        return STARTED

    def start_script(
        self, text: str, arguments: list[Field], node: Place, options: Iterable[str] = (), name: str = UNKNOWN
    ) -> int:
        """Run a script in a new shell, which gets the exported variables."""
        exported = {name: value for name, value in self.variables.items() if value.exported}
        shell = Interpreter(self.run, exported, self.node if node is None else node, self.folder, self.depth + 1)
        if shell.depth > MAX_DEPTH:
            raise TooMuch
        shell.parameters, shell.name = list(arguments), name
        shell.options = set(options) & {"e", "u", "a", "lastpipe"}
        shell.functions = dict(self.functions) if "functions" in self.options else {}
        shell.openings, shell.is_certain = self.openings, self.is_certain
        shell.output, shell.input = self.output, self.input
        try:
            status = shell.run_text(text)
        except Exit as error:
            status = error.status
        except Leave:
            status = 0
        return STARTED if status == 0 else status

    def unwrap(self, name: str, fields: list[Field]) -> int | None:
        """Start the command of a program that starts another one; None if it is no such program."""
        if name == "env":
            return self.start_with_env(fields)
        wrapper = WRAPPERS.get(name)
        if wrapper is None:
            return None
        at = 0
        if wrapper.word and (not fields or fields[0][0] != wrapper.word):
            return None
        at += bool(wrapper.word)
        while at < len(fields) and fields[at][0].startswith("-"):
            text = fields[at][0]
            at += 1
            if text == "--":
                break
            if text in wrapper.values:
                at += 1
        at += wrapper.positions
        if at >= len(fields) or not is_known(fields[at][0]):
            return self.give_up([(name, None), *fields])
        shell = self.copy()
        shell.functions = {}
        return shell.start(fields[at:])

    def start_with_env(self, fields: list[Field]) -> int:
        """Run the command of `env`."""
        shell = self.copy()
        at = 0
        while at < len(fields):
            text, node = fields[at]
            name, equals, value = text.partition("=")
            if text in ("-u", "--unset"):
                at += 1
                if at < len(fields):
                    shell.variables.pop(fields[at][0], None)
            elif text in ("-i", "-", "--ignore-environment"):
                shell.variables, shell.openings = {}, ()
            elif text in ("-C", "--chdir"):
                at += 1
                shell.folder = shell.find_path(fields[at][0]) if at < len(fields) else UNKNOWN
            elif equals and name.isidentifier():
                shell.variables[name] = Value(value, node, exported=True)
            elif not text.startswith("-"):
                break
            at += 1
        shell.functions = {}
        if at >= len(fields):
            self.write(UNKNOWN)
            return 0
        return shell.start(fields[at:])

    def capture(self, body: tree.Script) -> str:
        """Return the output of commands."""
        shell = self.copy()
        shell.output = []
        try:
            shell.run_script(body)
        except (Exit, Leave):
            pass
        return self.limit("".join(shell.output or ()).rstrip("\n"))


def _read_shell_options(fields: list[Field]) -> tuple[int, set[str]]:
    """Return the position behind the options of a shell, and the options; -1 if they are not known."""
    at, options = 1, set[str]()
    if fields[0][0].rpartition("/")[2] in ("ksh", "zsh"):
        options.add("lastpipe")
    while at < len(fields) and fields[at][0][:1] in ("-", "+") and fields[at][0] not in ("-", "--"):
        text = fields[at][0]
        at += 1
        if not is_known(text):
            return -1, options
        if text.startswith("--"):
            at += text in ("--rcfile", "--init-file")
            continue
        options |= set(text[1:])
        if text.endswith(("o", "O")) and at < len(fields):
            options.add(OPTION_NAMES.get(fields[at][0], fields[at][0]))
            at += 1
    return at + (at < len(fields) and fields[at][0] in ("-", "--")), options


def _run_later(pipeline: tree.Pipeline) -> Callable[[Interpreter], int]:
    return lambda shell: shell.run_pipeline(pipeline)


def _note(
    goes_on: list[int], run: Callable[[Interpreter], int], *, ends_well: bool = False
) -> Callable[[Interpreter], int]:
    """Run commands, and note their status if the shell goes on after them, or also if it ends without an error."""

    def run_and_note(shell: Interpreter) -> int:
        try:
            goes_on.append(run(shell))
        except (Exit, Leave) as error:
            if ends_well and error.status <= 0:
                goes_on.append(error.status)
            raise
        return goes_on[-1]

    return run_and_note


def _run_with_unknown(loop: tree.For, node: Place) -> Callable[[Interpreter], int]:
    return lambda shell: shell.run_with(loop, (UNKNOWN, node))


def _skip(_shell: Interpreter) -> int:
    return 0


def _is_shell_script(text: str) -> bool:
    if not text.startswith("#!"):
        return True
    found = _SHEBANG.match(text)
    return found is not None and found[1] in SHELLS


class _File(list[str]):
    """The output of a command that goes to a file."""

    def __init__(self, run: Run, path: str, *, appends: bool) -> None:
        super().__init__()
        self.run, self.path = run, path
        old = run.written.get(path) if appends else ""
        if is_known(path):
            run.written[path] = UNKNOWN if old is None else old

    def append(self, text: str) -> None:
        """Add to the file."""
        if is_known(self.path):
            old = self.run.written.get(self.path, "")
            self.run.written[self.path] = old + text if len(old) + len(text) <= MAX_TEXT else UNKNOWN
