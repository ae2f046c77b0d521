"""A source file's syntax tree, with what rules ask of it, made in one walk."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

Function = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.AsyncFor | ast.While

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


class Module:
    """One file. Nothing here recurses: a tree may be as deep as a file is long."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.calls: list[ast.Call] = []
        self.ifs: list[ast.If] = []
        self.functions: list[Function] = []
        self.classes: list[ast.ClassDef] = []
        self.assigns: list[ast.Assign] = []
        self.loops: list[Loop | ast.comprehension] = []
        self.subscripts: list[ast.Subscript] = []
        self._parents: dict[ast.AST, ast.AST] = {}
        self._blocks: dict[ast.AST, tuple[list[ast.AST], int]] = {}
        self._imports: dict[str, str] = {}
        self._collect()

    def _collect(self) -> None:
        """Everything in the order of the source."""
        parents, blocks = self._parents, self._blocks
        todo: list[ast.AST] = [self.tree]
        lists: dict[type, list[ast.AST]] = {
            ast.Call: self.calls,  # type: ignore[dict-item]
            ast.If: self.ifs,  # type: ignore[dict-item]
            ast.FunctionDef: self.functions,  # type: ignore[dict-item]
            ast.AsyncFunctionDef: self.functions,  # type: ignore[dict-item]
            ast.ClassDef: self.classes,  # type: ignore[dict-item]
            ast.Assign: self.assigns,  # type: ignore[dict-item]
            ast.For: self.loops,  # type: ignore[dict-item]
            ast.AsyncFor: self.loops,  # type: ignore[dict-item]
            ast.While: self.loops,  # type: ignore[dict-item]
            ast.comprehension: self.loops,  # type: ignore[dict-item]
            ast.Subscript: self.subscripts,  # type: ignore[dict-item]
        }
        while todo:
            node = todo.pop()
            kind = node.__class__
            if kind in lists:
                lists[kind].append(node)
            elif kind is ast.Name or kind is ast.Constant:
                continue
            elif kind is ast.Import or kind is ast.ImportFrom:
                self._import(node)
                continue
            children: list[ast.AST] = []
            for value in node.__dict__.values():
                if value.__class__ is list:
                    if value and isinstance(value[0], ast.stmt):
                        for at, child in enumerate(value):
                            blocks[child] = (value, at)
                    children += [child for child in value if isinstance(child, ast.AST)]
                elif isinstance(value, ast.AST):
                    children.append(value)
            for child in children:
                parents[child] = node
            children.reverse()
            todo += children

    def _import(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.name if alias.asname else alias.name.partition(".")[0]
                self._imports[alias.asname or name] = name
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                self._imports[alias.asname or alias.name] = f"{node.module}.{alias.name}"

    # --- names ------------------------------------------------------------------------------------

    def name_of(self, node: ast.AST) -> str:
        """``torch.distributed.barrier`` for ``dist.barrier``, by the file's imports; ``.f`` of what is no name."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        parts.append(self._imports.get(node.id, node.id) if isinstance(node, ast.Name) else "")
        return ".".join(reversed(parts))

    def imports(self, *packages: str) -> bool:
        """Whether something of one of these packages is imported."""
        return any(name.partition(".")[0] in packages for name in self._imports.values())

    def is_imported(self, name: str) -> bool:
        """Whether a plain name is an import of this file."""
        return name in self._imports

    # --- places -----------------------------------------------------------------------------------

    def parent(self, node: ast.AST) -> ast.AST | None:
        """What a node is a part of."""
        return self._parents.get(node)

    def block_of(self, statement: ast.AST) -> tuple[list[ast.AST], int]:
        """The list of statements that a statement is in, and its place there."""
        return self._blocks[statement]

    def around(self, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
        """What a node is in, within its own function, from inside out: pairs of an outer one and its part."""
        while (outer := self._parents.get(node)) is not None:
            if isinstance(outer, _SCOPES):
                return
            yield outer, node
            node = outer

    def scope_of(self, node: ast.AST) -> ast.AST:
        """The function, lambda or class that a node is in, or the module."""
        outer = self._parents.get(node)
        while outer is not None and not isinstance(outer, _SCOPES):
            outer = self._parents.get(outer)
        return outer or self.tree

    def scopes_of(self, node: ast.AST) -> Iterator[ast.AST]:
        """The functions, lambdas and classes that a node is in, the innermost first."""
        scope = self.scope_of(node)
        while scope is not self.tree:
            yield scope
            scope = self.scope_of(scope)


def within(nodes: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """These nodes and all that runs as a part of them, in order: not what functions hold that they define."""
    todo = list(reversed(nodes))
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, _SCOPES):
            todo += reversed(list(ast.iter_child_nodes(node)))
