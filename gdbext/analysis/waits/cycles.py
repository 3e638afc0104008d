"""Circles of waits and knots without a way out; walks along and against the edges. Iterative, linear in the edges."""

from __future__ import annotations

from typing import Callable, Dict, FrozenSet, Iterable, List, Sequence, Set, Tuple

from gdbext.model.waits import ALL, Edge, WaitGraph

Circle = Tuple[str, ...]
"""Ids of nodes each of which waits for another one of them."""


def find_circles(graph: WaitGraph) -> Tuple[Circle, ...]:
    """Deadlocks: circles of waits that need all they point to, and knots of others that nothing outside can end (of
    these the ranks first)."""
    strict = _components(graph.nodes, lambda node: [one.target.id for one in graph.after(node) if one.needs == ALL])
    found = [one for one in strict if _is_circle(one, graph, True)]
    taken = {node for one in found for node in one}
    whole = _components(graph.nodes, lambda node: [one.target.id for one in graph.after(node)])
    for one in whole:
        inside = set(one)
        leaves = any(edge.target.id not in inside for node in one for edge in graph.after(node))
        if _is_circle(one, graph, False) and not leaves and not inside & taken:
            found.append(tuple(sorted(one, key=lambda node: graph.nodes[node].kind != "rank")))
    return tuple(found)


def _is_circle(nodes: Circle, graph: WaitGraph, strict: bool) -> bool:
    if len(nodes) > 1:
        return True
    return any(one.target.id == nodes[0] and (one.needs == ALL or not strict) for one in graph.after(nodes[0]))


def _components(nodes: Iterable[str], after: Callable[[str], Sequence[str]]) -> List[Circle]:
    """Strongly connected components (Tarjan 1972), without recursion."""
    number: Dict[str, int] = {}
    low: Dict[str, int] = {}
    stack: List[str] = []
    on_stack: Set[str] = set()
    found: List[Circle] = []
    for root in nodes:
        if root in number:
            continue
        number[root] = low[root] = len(number)
        stack.append(root)
        on_stack.add(root)
        todo = [(root, iter(after(root)))]
        while todo:
            node, rest = todo[-1]
            for target in rest:
                if target not in number:
                    number[target] = low[target] = len(number)
                    stack.append(target)
                    on_stack.add(target)
                    todo.append((target, iter(after(target))))
                    break
                if target in on_stack:
                    low[node] = min(low[node], number[target])
            else:
                todo.pop()
                if todo:
                    low[todo[-1][0]] = min(low[todo[-1][0]], low[node])
                if low[node] == number[node]:
                    first = _position(stack, node)
                    members = stack[first:]
                    del stack[first:]
                    on_stack.difference_update(members)
                    found.append(tuple(members))
    return found


def _position(stack: Sequence[str], node: str) -> int:
    """From the top: a component is popped whole, so that all walks together are linear."""
    position = len(stack) - 1
    while stack[position] != node:
        position -= 1
    return position


def reversed_edges(graph: WaitGraph) -> Dict[str, List[Edge]]:
    """Edges by their target."""
    before: Dict[str, List[Edge]] = {}
    for edges in graph.edges.values():
        for edge in edges:
            before.setdefault(edge.target.id, []).append(edge)
    return before


def paths_to_roots(before: Dict[str, List[Edge]], roots: Iterable[str]) -> Dict[str, Edge]:
    """Every node from which a root can be reached, with its first edge on a shortest way there."""
    roots = list(roots)
    ways: Dict[str, Edge] = {}
    seen = set(roots)
    layer = roots
    while layer:
        following: List[str] = []
        for node in layer:
            for edge in before.get(node, ()):
                if edge.source.id not in seen:
                    seen.add(edge.source.id)
                    ways[edge.source.id] = edge
                    following.append(edge.source.id)
        layer = following
    return ways


def way_around(graph: WaitGraph, circle: Circle, first: str) -> Tuple[Edge, ...]:
    """The shortest way from a node of a circle back to it, inside of the circle."""
    inside = set(circle)
    before: Dict[str, Edge] = {}
    layer, seen = [first], {first}
    while layer:
        following: List[str] = []
        for node in layer:
            for edge in graph.after(node):
                target = edge.target.id
                if target == first:
                    way = [edge]
                    while way[0].source.id != first:
                        way.insert(0, before[way[0].source.id])
                    return tuple(way)
                if target in inside and target not in seen:
                    seen.add(target)
                    before[target] = edge
                    following.append(target)
        layer = following
    return ()


def upstream_kinds(graph: WaitGraph) -> Dict[str, FrozenSet[str]]:
    """For each node the kinds of nodes from which it can be reached. There are few kinds: each node changes seldom."""
    found: Dict[str, FrozenSet[str]] = {node: frozenset() for node in graph.nodes}
    todo = list(graph.nodes)
    while todo:
        node = todo.pop()
        kinds = found[node] | {graph.nodes[node].kind}
        for edge in graph.after(node):
            if not kinds <= found[edge.target.id]:
                found[edge.target.id] |= kinds
                todo.append(edge.target.id)
    return found
