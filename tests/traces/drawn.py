"""Jobs drawn at random, of known truth: python -m tests.traces.drawn SEED COUNT prints those judged otherwise."""

import random
import sys

from tests.traces.making import Plan
from tests.traces.truth import Truth, answer

CAUSES = {
    "": "not-late",
    **dict.fromkeys(("kernel", "host", "data", "copy", "compile"), "late-rank"),
    "rotating": "rotating-late-rank",
    "imbalance": "imbalance",
    "transfer": "slow-transfer",
}


def drawn(rng, seed):
    """A plan and its truth; None for unequal work of two ranks, which is a late rank."""
    late, ranks = rng.choice(list(CAUSES)), rng.choice([2, 3, 4, 6, 8, 16])
    who = rng.randrange(ranks)
    plan = Plan(
        ranks=ranks,
        late=late,
        who=who,
        by=rng.choice([0.25, 0.5, 1, 3]),
        jitter=rng.choice([0, 0.02, 0.05, 0.1]),
        kernels=rng.choice([1, 3, 8]),
        layers=rng.choice([1, 2, 8]),
        steps=rng.choice([8, 20, 40]),
        named=rng.random() < 0.6,
        old=rng.random() < 0.2,
        overlap=rng.choice([0, 0, 3]),
        graphs=rng.random() < 0.2,
        seed=seed,
        every=1 if late in ("rotating", "imbalance") else rng.choice([1, 1, 2]),
        work=rng.choice([200, 400, 3000]),
    )
    if rng.random() < 0.4:
        plan.offsets = {rank: rng.uniform(-1e5, 1e5) for rank in range(ranks)}
    if rng.random() < 0.3:
        plan.drifts = {rank: rng.uniform(-100, 100) for rank in range(ranks)}
    if late == "imbalance" and ranks < 3:
        return None
    return Truth(str(seed), CAUSES[late], (who,) if CAUSES[late] == "late-rank" else (), plan)


def main(seed, count):
    rng = random.Random(seed)
    judged = otherwise = sure = 0
    for number in range(count):
        truth = drawn(rng, number)
        if truth is None:
            continue
        judged += 1
        _, _, diagnosis = answer(truth)
        verdict = diagnosis.verdict
        ranks = tuple(diagnosis.files[at].rank for at in verdict.culprits)
        if verdict.cause == truth.cause and (not truth.culprits or ranks == truth.culprits):
            continue
        otherwise += 1
        sure += verdict.cause != "unknown" and verdict.confidence == "high"
        print(
            f"{truth.cause} {truth.culprits}: {verdict.cause} ({verdict.confidence}) {ranks}; {verdict.summary[:110]}"
        )
    print(f"{judged} jobs, {otherwise} judged otherwise, {sure} of them with high confidence")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
