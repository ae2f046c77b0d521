"""Which calls of a file are collectives of the whole world, which of its branches choose ranks, and what runs in them.

Only what the file's own imports and names say counts: a collective with a group of its own, or a method of an object of
unknown type, is none here.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence
from dataclasses import dataclass, field

from rankscope.lsp.rank_tests import RankTest, RankTests
from rankscope.lsp.syntax import Function, Module, within

# The collectives of torch.distributed, and at which place each takes its group.
_GROUP_AT = {
    "all_reduce": 2,
    "broadcast": 2,
    "broadcast_object_list": 2,
    "all_gather": 2,
    "all_gather_object": 2,
    "all_gather_into_tensor": 2,
    "reduce": 3,
    "reduce_scatter": 3,
    "reduce_scatter_tensor": 3,
    "gather": 3,
    "gather_object": 3,
    "scatter": 3,
    "scatter_object_list": 3,
    "all_to_all": 2,
    "all_to_all_single": 4,
    "barrier": 0,
    "monitored_barrier": 0,
}
_OPS = frozenset(_GROUP_AT) | {"new_group", "wait_for_everyone"}
_MODULES = ("torch.distributed", "torch.distributed.distributed_c10d", "deepspeed.comm")
_ON_ONE_RANK = (
    "rank_zero_only",
    "on_main_process",
    "on_local_main_process",
    "main_process_only",
    "is_main_process_only",
)
_EXITS = ("sys.exit", "exit", "quit", "os._exit")

# What surely runs no collective: calls of these modules, and methods of these names.
_HARMLESS_MODULES = frozenset(
    ["torch", "os", "time", "sys", "json", "numpy", "logging", "math", "random", "pathlib", "shutil", "warnings"]
)
_HARMLESS_METHODS = frozenset(
    [
        "info",
        "debug",
        "warning",
        "warn",
        "error",
        "exception",
        "critical",
        "log",
        "append",
        "extend",
        "add",
        "update",
        "format",
        "join",
        "split",
        "strip",
        "items",
        "keys",
        "values",
        "get",
        "to",
        "cpu",
        "cuda",
        "size",
        "item",
        "tolist",
        "write",
        "flush",
        "close",
        "exists",
        "mkdir",
        "startswith",
        "endswith",
        "detach",
        "clone",
    ]
)
_BUILTINS = frozenset(dir(builtins))


@dataclass(frozen=True)
class Collective:
    """A call that every rank of the world has to make. ``via``: the function of this file that makes it, if any."""

    call: ast.Call
    op: str
    via: str = ""

    def __str__(self) -> str:
        return f"`{self.via}` (which runs `{self.op}`)" if self.via else f"`{self.op}`"


@dataclass
class Runs:
    """What some statements may run: the names of collectives. ``is_sure``: they run no others."""

    ops: set[str] = field(default_factory=set)
    is_sure: bool = True


@dataclass(frozen=True)
class Branch:
    """A side of a rank test: ``chosen`` says which ranks take it, ``others`` is what the rest runs instead."""

    statement: ast.If
    test: RankTest
    chosen: str
    others: Sequence[ast.AST]


class World:
    """The collectives and the rank tests of one file."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.tests = RankTests(module)
        self.collectives = [found for call in module.calls if (found := self._direct(call)) is not None]
        self._functions: dict[str, Function | None] = {}
        for function in module.functions:
            self._functions[function.name] = None if function.name in self._functions else function
        self._runs: dict[ast.AST, Runs] = {}
        self._tested: dict[ast.If, RankTest | None] = {}
        self._counterparts: dict[str, set[str]] | None = None
        if self.collectives:
            self._add_calls_of_functions()

    # --- collectives ------------------------------------------------------------------------------

    def _direct(self, call: ast.Call) -> Collective | None:
        """A call of torch's, DeepSpeed's or accelerate's that concerns the whole world."""
        if isinstance(call.func, ast.Attribute):
            if call.func.attr not in _OPS:
                return None
            if call.func.attr == "wait_for_everyone":
                return Collective(call, call.func.attr)
        elif not isinstance(call.func, ast.Name):
            return None
        module, _, op = self.module.name_of(call.func).rpartition(".")
        if module not in _MODULES or op not in _OPS:
            return None
        names = {keyword.arg: keyword.value for keyword in call.keywords}
        if None in names or any(isinstance(argument, ast.Starred) for argument in call.args):
            return None
        if op == "new_group":
            return None if "use_local_synchronization" in names else Collective(call, op)
        group = names.get("group")
        is_world = group is None or (isinstance(group, ast.Constant) and group.value is None)
        return Collective(call, op) if is_world and len(call.args) <= _GROUP_AT[op] else None

    def _add_calls_of_functions(self) -> None:
        """A function of this file that runs a collective whenever it is called is one itself, where it is called."""
        certain: dict[str, str] = {}
        seen: set[ast.AST] = set()
        for collective in self.collectives:
            scope = self.module.scope_of(collective.call)
            if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)) and scope not in seen:
                seen.add(scope)
                if self._functions.get(scope.name) is scope and self._always_runs(scope, collective.call):
                    certain[scope.name] = collective.op
        for call in self.module.calls if certain else ():
            name = self._own_name(call)
            if name in certain:
                self.collectives.append(Collective(call, certain[name], name))

    def _always_runs(self, function: Function, call: ast.Call) -> bool:
        """Whether a call of the function comes to that call: no branch, no loop and no return before it."""
        if function.decorator_list:
            return False
        before: list[ast.AST] = []
        for outer, part in (*self.module.around(call), (function, None)):
            if isinstance(outer, (ast.If, ast.For, ast.AsyncFor, ast.While, ast.IfExp, ast.BoolOp, ast.ExceptHandler)):
                return False
            if isinstance(part, ast.stmt):
                block, at = self.module.block_of(part)
                before += block[:at]
        is_generator = any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in within(function.body))
        return not is_generator and not any(isinstance(node, ast.Return) for node in within(before))

    def _own_name(self, call: ast.Call) -> str:
        """The name of the function of this file that is called: ``f()`` or ``self.f()``; empty for others."""
        func = call.func
        if isinstance(func, ast.Name) and not self.module.is_imported(func.id):
            name, wants_method = func.id, False
        elif isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id in ("self", "cls"):
            name, wants_method = func.attr, True
        else:
            return ""
        function = self._functions.get(name)
        if function is None:
            return ""
        return name if wants_method == isinstance(self.module.scope_of(function), ast.ClassDef) else ""

    # --- branches ---------------------------------------------------------------------------------

    def test_of(self, statement: ast.If) -> RankTest | None:
        """What an ``if`` says of ranks."""
        if statement not in self._tested:
            self._tested[statement] = self.tests.read(statement.test)
        return self._tested[statement]

    def branch_of(self, node: ast.AST) -> Branch | None:
        """The innermost branch on a rank that a node is in, within its function."""
        for outer, part in self.module.around(node):
            if not isinstance(outer, ast.If) or not isinstance(part, ast.stmt):
                continue
            test = self.test_of(outer)
            is_body = self.module.block_of(part)[0] is outer.body
            if test is None or not (is_body or test.is_whole):
                continue
            side, others = (outer.body, outer.orelse) if is_body else (outer.orelse, outer.body)
            chosen = test.text if is_body else f"not ({test.text})"
            if is_exit(side[-1], self.module):
                block, at = self.module.block_of(outer)
                others = [*others, *block[at + 1 :]]  # type: ignore[list-item]
            return Branch(outer, test, chosen, others)
        return None

    def is_on_one_rank(self, function: ast.AST) -> str:
        """The decorator that lets a function run on one rank only; empty: none."""
        for decorator in getattr(function, "decorator_list", ()):
            name = self.module.name_of(decorator.func if isinstance(decorator, ast.Call) else decorator)
            if name.rpartition(".")[2] in _ON_ONE_RANK:
                return name.rpartition(".")[2]
        return ""

    def has_counterpart(self, op: str, test: RankTest) -> bool:
        """Whether ranks that another test of this file chooses run that collective, too: they may be meant to meet."""
        if self._counterparts is None:
            self._counterparts = {}
            for statement in self.module.ifs:
                if (other := self.test_of(statement)) is not None:
                    for name in self.may_run([*statement.body, *statement.orelse]).ops:
                        self._counterparts.setdefault(name, set()).add(other.text)
        texts = self._counterparts.get(op, set())
        return len(texts) > (test.text in texts)

    # --- what may run -----------------------------------------------------------------------------

    def may_run(self, nodes: Sequence[ast.AST]) -> Runs:
        """The collectives, with whatever group, that statements may come to, by way of this file's functions too."""
        found, seen, todo = Runs(), set[Function](), [nodes]
        while todo:
            for node in within(todo.pop()):
                if not isinstance(node, ast.Call):
                    continue
                last = self.module.name_of(node.func).rpartition(".")[2]
                function = self._functions.get(self._own_name(node))
                if last in _OPS:
                    found.ops.add(last)
                elif function is None:
                    found.is_sure = found.is_sure and self.is_harmless(node)
                elif function not in seen:
                    seen.add(function)
                    todo.append(function.body)
        return found

    def is_harmless(self, call: ast.Call) -> bool:
        """Whether a call surely runs no collective and waits for nobody."""
        name = self.module.name_of(call.func)
        head, _, _ = name.partition(".")
        if isinstance(call.func, ast.Name) and not self.module.is_imported(call.func.id):
            return name in _BUILTINS
        is_of_module = head in _HARMLESS_MODULES and not name.startswith(_MODULES)
        return is_of_module or (isinstance(call.func, ast.Attribute) and call.func.attr in _HARMLESS_METHODS)


def is_exit(statement: ast.AST, module: Module) -> bool:
    """Whether what comes after a statement is not run."""
    if isinstance(statement, (ast.Return, ast.Raise, ast.Break, ast.Continue)):
        return True
    is_call = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    return is_call and module.name_of(statement.value.func) in _EXITS  # type: ignore[attr-defined]
