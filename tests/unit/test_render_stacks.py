"""The merged tree, and the frames of one thread."""

import pytest
from render_samples import joined, tree_of

from gdbext.model.stack import Frame, ThreadStack
from gdbext.model.stack_tree import StackTree, TreeNode
from gdbext.render import Style, render
from gdbext.render.text.verdict.stacks import compact_tree

STYLE = Style(80)
MAIN, LOOP = Frame("main", "/bin/engine", file="/src/main.cc", line=4), Frame("loop", "/bin/engine")
DRIVER = Frame(None, "/usr/lib/libcuda.so.1")
PYTHON = Frame("forward", file="/srv/model.py", line=41, language="python")


def test_ranks_stand_where_they_change_and_a_fork_indents():
    fork = (
        joined(tree_of((Frame("reduce"),), (0, 1, 2, 5))),
        joined(tree_of((DRIVER, DRIVER, Frame("alloc")), (3,))),
    )
    tree = StackTree((joined(tree_of((LOOP, MAIN), (0, 1, 2, 3, 5)), fork),), {"pool": 8, "nccl-proxy": 12})
    assert render(tree, STYLE) == [
        "ranks  outermost call first",
        "0-3,5  main  main.cc:4",
        "       loop  (engine)",
        "3      ├─ alloc",
        "       │  2 × ??  (libcuda.so.1)",
        "0-2,5  └─ reduce",
        "Background threads omitted: 12 nccl-proxy threads, 8 pool threads",
    ]
    assert render(tree, Style(80, unicode=False))[3:6] == [
        "3      |- alloc",
        "       |  2 x ??  (libcuda.so.1)",
        "0-2,5  `- reduce",
    ]


def test_ranks_that_end_early_need_no_fork():
    inner = joined(tree_of((Frame("deeper"),), (1,)))
    tree = StackTree((joined(tree_of((MAIN,), (0, 1)), (inner,)),))
    assert render(tree, STYLE)[1:] == ["0-1    main  main.cc:4", "1      deeper"]


def test_the_number_of_threads_is_told_when_it_is_not_that_of_the_ranks():
    tree = StackTree((joined(tree_of((LOOP, MAIN), (0, 1), threads=24)),), counts="process")
    assert render(tree, STYLE) == [
        "processes  outermost call first",
        "1-2        main  main.cc:4  24 threads",
        "           loop  (engine)",
    ]


def test_tasks_of_event_loops_stand_below_the_threads():
    waits = joined(tree_of((Frame("Event.wait", language="python"), PYTHON), (0, 1), threads=7))
    tree = StackTree((joined(tree_of((MAIN,), (0, 1))),), {"pool": 8}, tasks=(waits,))
    assert render(tree, STYLE) == [
        "ranks  outermost call first",
        "0-1    main  main.cc:4",
        "Background threads omitted: 8 pool threads",
        "",
        "ranks  tasks of event loops, outermost coroutine first",
        "0-1    forward  model.py:41  7 tasks",
        "       Event.wait",
    ]
    assert compact_tree(tree, STYLE, 10)[-1] == "       Event.wait"
    many = StackTree((), tasks=tuple(TreeNode(f"task{number}", (number,)) for number in range(60)))
    assert [len(compact_tree(many, STYLE, 10)), compact_tree(many, STYLE, 10)[-1]] == [28, "… 36 more lines"]


def test_python_frames_differ_from_native_ones():
    tree = StackTree((joined(tree_of((LOOP, PYTHON), (0,))),))
    python, native = render(tree, Style(80, color=True))[1:]
    assert "\x1b[36mforward\x1b[0m  \x1b[2mmodel.py:41\x1b[0m" in python
    assert "\x1b[36m" not in native


def test_recursion_is_counted():
    tree = StackTree((joined(tree_of((*[LOOP] * 5000, MAIN), (0,))),))
    assert render(tree, STYLE)[1:] == ["0      main  main.cc:4", "       5,000 × loop  (engine)"]


def deep_chain(depth):
    node = TreeNode("leaf", (0,))
    for level in range(depth):
        node = TreeNode(f"call_{level}", (0,), children=(node,))
    return StackTree((node,))


def test_a_very_deep_stack_loses_its_middle():
    lines = render(deep_chain(5000), STYLE)
    assert len(lines) <= 102
    assert lines[1] == "0      call_4999"
    assert [line for line in lines if "…" in line] == ["       … 4,902 calls"]
    assert lines[-1] == "       leaf"


def test_forks_below_forks_below_forks_end_somewhere():
    node = TreeNode("leaf", (0,))
    for _ in range(5000):
        node = TreeNode("call", (0,), children=(node, TreeNode("other", (0,))))
    lines = render(StackTree((node,)), Style(60))
    assert len(lines) < 60
    assert max(map(len, lines)) <= 60
    assert any("deeper branches" in line for line in lines)


@pytest.mark.parametrize("budget", [8, 12, 20, 40])
@pytest.mark.parametrize("branches", [1, 3, 40, 1000])
def test_compact_tree_keeps_to_its_budget_and_shows_the_culprit(budget, branches):
    culprit = branches // 2
    calls = [joined(tree_of([Frame(f"f{rank}_{level}") for level in range(40)], (rank,))) for rank in range(branches)]
    tree = StackTree((joined(tree_of((LOOP, MAIN), tuple(range(branches))), calls),), {"pool": 3})
    lines = compact_tree(tree, STYLE, budget, frozenset({culprit}))
    assert len(lines) <= budget
    assert any(f"f{culprit}_" in line for line in lines)
    if branches > 100:
        assert any("more branches" in line for line in lines)


def test_what_is_cut_off_in_the_middle_of_a_branch_is_told_in_lines():
    calls = [joined(tree_of([Frame(f"f{one}_{level}") for level in range(40)], (0, 1))) for one in range(2)]
    lines = [compact_tree(StackTree(tuple(calls)), STYLE, budget)[-1] for budget in range(5, 12)]
    assert "… 1 more branch" in lines
    assert "… 2 more lines" in lines
    assert not any(" 0 more" in line for line in lines)


def test_what_the_driver_and_the_c_library_do_inside_goes_before_the_call_that_led_there():
    engine = [Frame(f"f{level}") for level in range(6)]
    inner = [Frame("clock_gettime"), Frame("__GI_x", "/lib/libc.so.6"), DRIVER, DRIVER]
    calls = [*inner, Frame("cudaMallocHost", "/opt/libcudart.so.12"), *engine]
    lines = compact_tree(StackTree((joined(tree_of(calls, (0,))),)), STYLE, 6)
    assert [line[7:] for line in lines[1:]] == [
        "f5",
        "… 4 calls",
        "f0",
        "cudaMallocHost  (libcudart.so.12)",
        "… 4 calls",
    ]


def test_a_culprits_branch_is_painted():
    fork = (joined(tree_of((Frame("reduce"),), (0,))), joined(tree_of((Frame("alloc"),), (3,))))
    tree = StackTree((joined(tree_of((MAIN,), (0, 3)), fork),))
    lines = compact_tree(tree, Style(80, color=True), 20, frozenset({3}))
    assert [line.split("m")[0] for line in lines[1:]] == ["\x1b[1", "\x1b[1;31", "\x1b[1"]


def test_a_thousand_ranks_with_a_stack_each_are_capped():
    roots = tuple(joined(tree_of([Frame(f"f{rank}_{level}") for level in range(30)], (rank,))) for rank in range(1024))
    lines = render(StackTree(roots), STYLE)
    assert len(lines) <= 1_002
    assert "more line" in lines[-1]


def test_no_stack_at_all():
    assert render(StackTree(()), STYLE) == ["No stack of a working thread was read."]


def test_one_thread():
    thread = ThreadStack("7", (DRIVER, DRIVER, LOOP, PYTHON), name="python3", gil=True, truncated="corrupt stack")
    assert render(thread, STYLE) == [
        "Thread 7  python3  holds the GIL",
        "#0   2 × ??  (libcuda.so.1)",
        "#2   loop  (engine)",
        "#3   forward  model.py:41",
        "     corrupt stack",
    ]
    assert render(ThreadStack("1", ()), STYLE) == ["Thread 1"]


def test_what_a_culprit_does_in_the_users_code_is_never_left_out():
    """Installed libraries, the C library and what all ranks share may be; the user's own lines of the culprit not."""
    torch = [Frame(f"torch_{n}", file="/x/site-packages/torch/nn.py", line=n + 1, language="python") for n in range(9)]
    own = [Frame(f"user_{n}", file="/srv/train.py", line=n + 1, language="python") for n in range(3)]
    waits = [Frame(f"wait_{n}", "/bin/engine") for n in range(9)]
    branches = (
        joined(tree_of((*waits, *torch, *own, *torch), (1,))),
        joined(tree_of((*waits, *torch, *own, *torch), (0, 2))),
    )
    tree = StackTree((joined(tree_of((MAIN,), (0, 1, 2)), branches),))
    lines = compact_tree(tree, STYLE, 30, frozenset({1}))
    split = next(number for number, line in enumerate(lines) if line.startswith("0,2"))
    culprit, others = "\n".join(lines[:split]), "\n".join(lines[split:])
    assert all(f"user_{n}  train.py:{n + 1}" in culprit for n in range(3))
    assert culprit.count("calls") == 2 and "calls" in others
    assert not all(f"user_{n}" in others for n in range(3))
