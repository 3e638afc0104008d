"""Nothing depends on the wording of a message of ours: what code asks for is a word of `model/codes.py`, or a field.

Code that looks for words in a text is in this table, with whose text it is.
"""

import ast
import re

from tests.unit.product_sources import sources

TEXTS = ("parsers", "knowledge")  # rooms whose subject is the text of others
METHODS = {"count", "endswith", "find", "index", "partition", "removeprefix", "removesuffix", "replace", "rpartition"}
METHODS |= {"split", "startswith"}
WORDS = re.compile(r"[A-Za-z]{2,}:? +[A-Za-z{(]{2,}|[a-z]{3,}:? $|^; $|^ \($")
LOOKS = {
    "gdb's, cuda-gdb's": """
        inside_gdb/base/compat.py inside_gdb/base/symbols.py inside_gdb/base/values.py
        inside_gdb/typed_commands/completion.py
        inside_gdb/calls/target_calls.py inside_gdb/failed_checks/check_breakpoints.py
        inside_gdb/failed_checks/switches.py
        inside_gdb/ranks/timed_stop.py inside_gdb/release_builds/frame_parameters.py
        inside_gdb/stacks/lock_waits.py inside_gdb/tensors/target_object.py
    """,
    "argparse's": "commands/argument_parser.py",
    "compilers' and the sanitizer's": "capture/build_facts/compilers.py cli/sanitizer/sanitize.py",
    "a disassembler's": "capture/machine/x86_64/clean_up.py",
    "a server's": "cli/profiler/profile_session.py witnesses/ras.py",
    "names of functions, as a demangler writes them": "model/text/function_names.py",
    "words of a protocol between processes of ours": """
        cli/pdb/command.py collect/gdb_runs/process.py collect/hosts/on_host.py inside_gdb/stacks/other_ranks.py
    """,
    "a name that we gave to an entry of a file": "cli/vscode.py",
    "snapshots of before there were codes": "model/snapshot_files/words_before_codes.py",
    "a word that is its own code: kinds of helpers and of edges": """
        analysis/view/job_view.py analysis/waits/prose.py inside_gdb/calls/driver_calls.py
    """,
    "told once": "capture/nccl/pointer_search.py",
    "laid out anew in a table, which decides nothing": "render/text/locks.py",
    "the comma behind an aside of our own, which decides nothing": "analysis/view/wording.py",
    "an error and its hint, which decides nothing": "inside_gdb/expressions/named_tensors.py",
}


def texts(node, own):
    """The texts that an expression is, constants of the module among them."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return [text for one in node.elts for text in texts(one, own)]
    if isinstance(node, ast.JoinedStr):
        return ["".join(one.value if isinstance(one, ast.Constant) else "{}" for one in node.values)]
    return own.get(node.id, []) if isinstance(node, ast.Name) else []


def looked_for(tree):
    """Words of more than one that a module compares with, or looks for."""
    own = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            own[node.targets[0].id] = texts(node.value, own)
    for node in ast.walk(tree):
        found = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
            found = [text for one in node.args[:1] for text in texts(one, own)]
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Eq, ast.NotEq, ast.In, ast.NotIn)):
            found = texts(node.left, own) + texts(node.comparators[0], own)
        yield from filter(WORDS.search, found)


def test_who_looks_for_words_says_whose_they_are():
    found = {
        name: list(looked_for(source.tree)) for name, source in sources().items() if name.partition("/")[0] not in TEXTS
    }
    known = [name for names in LOOKS.values() for name in names.split()]
    unknown = {name: words for name, words in found.items() if words and name not in known}
    assert unknown == {}, "give what is looked for a code (model/codes.py), or say here whose words they are"
    assert [name for name in known if not found.get(name)] == [], "these look for no words any more"


def test_it_is_noticed():
    for line in (
        'note.startswith("nothing is mapped")',
        '"core file" == state',
        'told.partition("; ")',
        "text in SAID",
    ):
        assert list(looked_for(ast.parse(f'SAID = ("it has ended",)\n{line}'))), line
    assert not list(looked_for(ast.parse('kind == "mutex"; name.startswith("lib"); text.split(", ")')))
