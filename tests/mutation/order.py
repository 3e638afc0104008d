"""The tests of a mutant in an order: those first that look at single verdicts, the labelled texts last."""

from typing import Any, List

from tests.mutation.campaign import OTHERS, TESTS

_ORDER = [*(f"test_analysis_{name}" for name in TESTS[:4]), *OTHERS, *(f"test_analysis_{name}" for name in TESTS[4:])]


def pytest_collection_modifyitems(items: List[Any]) -> None:
    items.sort(key=lambda item: _ORDER.index(item.path.stem))
