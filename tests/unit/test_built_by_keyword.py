"""Objects with many fields are built by keyword: a call says which value is which, and a field may find its place."""

import ast

from tests.unit.product_sources import sources

MOST = 5  # fields that a reader keeps apart by their places
ROWS = {
    **dict.fromkeys(("Column", "Argument", "Command"), "rows of a table or of a declaration, alike from line to line"),
    "Frame": "hot: of a look at a thousand ranks a million are made, and by keyword each takes 1.4 times as long",
}
"""Classes that may be built by place, and why; besides them all rows of knowledge/, whose tables have columns."""


def _is_dataclass(node):
    return isinstance(node, ast.ClassDef) and any("dataclass" in ast.dump(one) for one in node.decorator_list)


def _fields(node):
    return [
        one.target.id
        for one in node.body
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and "ClassVar" not in ast.dump(one)
    ]


def large(trees):
    """(module, name) of each dataclass with many fields: their names, those of its bases first."""
    by_name = {one.name: one for tree in trees.values() for one in tree.body if _is_dataclass(one)}
    found = {}
    for module, tree in trees.items():
        for node in filter(_is_dataclass, ast.walk(tree)):
            bases = [by_name[one.id] for one in node.bases if isinstance(one, ast.Name) and one.id in by_name]
            names = [name for base in bases for name in _fields(base)] + _fields(node)
            if len(names) > MOST and node.name not in ROWS and not module.startswith("gdbext.knowledge"):
                found[module, node.name] = names
    return found


def calls(trees):
    """(file, call, fields) of each call by place of what builds such an object."""
    classes = large(trees)
    for module, tree in trees.items():
        known = {name: names for (home, name), names in classes.items() if home == module}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                for one in node.names:
                    if (node.module, one.name) in classes:
                        known[one.asname or one.name] = classes[node.module, one.name]
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in known and node.args:
                yield module, node, known[node.func.id]


def parsed():
    return {f"gdbext.{name[:-3].replace('/', '.')}": source.tree for name, source in sources().items()}


def test_objects_with_many_fields_are_built_by_keyword():
    found = [
        f"{module}:{node.lineno} {node.func.id}"
        for module, node, _ in calls(parsed())
        if not any(isinstance(one, ast.Starred) for one in node.args)  # a tuple that has its order from elsewhere
    ]
    assert found == []


def test_the_law_sees_a_call_by_place():
    wide = "@dataclass\nclass Wide:\n" + "".join(f"    {name}: int\n" for name in "abcdef")
    trees = {"m": ast.parse(wide), "n": ast.parse("from m import Wide as W\nW(1, b=2)\n")}
    assert [(module, node.lineno, names) for module, node, names in calls(trees)] == [("n", 2, list("abcdef"))]
