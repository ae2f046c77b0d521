"""Tests that hold on some ranks only: ``rank == 0``, ``not accelerator.is_main_process``, ``rank == 0 and verbose``."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from rankscope.lsp.syntax import Module

_RANKS = re.compile(r"((global|world|ddp|dist|local|node|my|cur|current|process)_?)?rank", re.IGNORECASE)
_FLAGS = re.compile(
    r"(is_)?(local_|global_|world_)?(main|master|rank_?zero|rank_?0)(_process|_rank|_node)?"
    r"|is_(local_|world_)?process_zero|is_global_zero"
)
_PLAIN_WORDS = ("main", "master")  # too common to mean a rank by themselves
_VARIABLES = ("RANK", "LOCAL_RANK")
_GETTERS = ("os.environ.get", "os.getenv")
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_MAX_TEXT = 80
_MAX_DEPTH = 5


@dataclass(frozen=True)
class RankTest:
    """Holds on some ranks only. ``is_whole``: it says nothing else, so that its opposite chooses ranks, too."""

    text: str
    is_whole: bool = True


class RankTests:
    """Reads the tests of one file. A name that a loop binds, or that is a length, is no rank."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._others: set[tuple[ast.AST, str]] = set()  # names like a rank's that are none, by scope
        self._named: dict[tuple[ast.AST, str], ast.expr | None] = {}  # what a name is, if it is assigned once
        for loop in module.loops:
            if not isinstance(loop, ast.While):
                self._note_others(loop.target)
        for assign in module.assigns:
            self._note_assigned(assign)

    def _note_others(self, target: ast.expr) -> None:
        scope = self._module.scope_of(target)
        self._others |= {(scope, name.id) for name in ast.walk(target) if isinstance(name, ast.Name)}

    def _note_assigned(self, assign: ast.Assign) -> None:
        scope = self._module.scope_of(assign)
        for target in assign.targets:
            if isinstance(target, ast.Name):
                key = scope, target.id
                self._named[key] = None if key in self._named else assign.value
                if isinstance(assign.value, ast.Call) and self._module.name_of(assign.value.func) == "len":
                    self._others.add(key)

    def read(self, test: ast.expr, depth: int = 0) -> RankTest | None:
        """What a test says of ranks; ``None``: nothing that is known."""
        if depth > _MAX_DEPTH:
            return None
        if isinstance(test, ast.BoolOp):
            found = [self.read(value, depth + 1) for value in test.values[:8]]
            known = [one for one in found if one is not None]
            if isinstance(test.op, ast.And) and known:
                is_whole = len(known) == len(test.values) and all(one.is_whole for one in known)
                return RankTest(" and ".join(one.text for one in known), is_whole)
            if len(known) == len(test.values) and all(one.is_whole for one in known):
                return RankTest(" or ".join(one.text for one in known))
            return None
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self.read(test.operand, depth + 1)
            return RankTest(f"not {inner.text}") if inner is not None and inner.is_whole else None
        if isinstance(test, ast.Compare):
            return self._comparison(test)
        return self._flag(test, depth)

    def _flag(self, test: ast.expr, depth: int) -> RankTest | None:
        """``is_main_process``, ``trainer.is_global_zero``, or a name for another test."""
        if isinstance(test, ast.Name):
            value = self._value_of(test)
            if value is not None:
                return self.read(value, depth + 1)
        named = test.func if isinstance(test, ast.Call) and not test.args and not test.keywords else test
        if not isinstance(named, (ast.Name, ast.Attribute)):
            return None
        name = named.attr if isinstance(named, ast.Attribute) else named.id
        is_flag = _FLAGS.fullmatch(name) is not None and name not in _PLAIN_WORDS
        return RankTest(ast.unparse(test)[:_MAX_TEXT]) if is_flag else None

    def _comparison(self, test: ast.Compare) -> RankTest | None:
        if len(test.ops) != 1:
            return None
        (sign,), left, right = test.ops, test.left, test.comparators[0]
        if self._is_rank(right):
            left, right = right, left
        if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mod) and isinstance(sign, (ast.Eq, ast.NotEq)):
            left = left.left
        elif isinstance(sign, _ORDER) and (not _is_number(right) or _holds_always(test)):
            return None
        if not self._is_rank(left) or self._is_rank(right) or not _names_ranks(right):
            return None
        return RankTest(ast.unparse(test)[:_MAX_TEXT])

    def _is_rank(self, node: ast.expr, depth: int = 0) -> bool:
        """Whether an expression is the rank of the process that runs it."""
        if isinstance(node, ast.Attribute):
            return _RANKS.fullmatch(node.attr) is not None
        if isinstance(node, ast.Name):
            value = self._value_of(node)
            is_read = isinstance(value, (ast.Call, ast.Subscript)) and depth < _MAX_DEPTH
            if value is not None and is_read and self._is_rank(value, depth + 1):
                return True
            scopes = [self._module.scope_of(node), *self._module.scopes_of(node)]
            return _RANKS.fullmatch(node.id) is not None and not any((s, node.id) in self._others for s in scopes)
        if isinstance(node, ast.Subscript):
            return self._module.name_of(node.value) == "os.environ" and _is_variable(node.slice)
        if not isinstance(node, ast.Call):
            return False
        name = self._module.name_of(node.func)
        if name == "int" and len(node.args) == 1:
            return self._is_rank(node.args[0], depth + 1) if depth < _MAX_DEPTH else False
        if name in _GETTERS:
            return bool(node.args) and _is_variable(node.args[0])
        return name.rpartition(".")[2] == "get_rank" and not node.args and not node.keywords

    def _value_of(self, name: ast.Name) -> ast.expr | None:
        """What a name was assigned, once, in its function or in the module."""
        for scope in (self._module.scope_of(name), self._module.tree):
            if (scope, name.id) in self._named:
                return self._named[scope, name.id]
        return None


def _is_variable(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in _VARIABLES


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int


def _holds_always(test: ast.Compare) -> bool:
    """``rank >= 0``: asks whether there is a rank at all."""
    value = next((side.value for side in (test.left, test.comparators[0]) if isinstance(side, ast.Constant)), 1)
    return value == 0 and not isinstance(test.ops[0], (ast.Gt, ast.LtE))


def _names_ranks(node: ast.expr) -> bool:
    """Whether an expression can name ranks: a number, a name; not -1, None or a constant, which may say "none"."""
    if isinstance(node, ast.Constant):
        return type(node.value) is int or (isinstance(node.value, str) and node.value.isdecimal())
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return bool(node.elts) and any(_is_number(each) for each in node.elts)
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return name.islower()
