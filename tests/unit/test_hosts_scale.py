"""Many hosts in one look: what one sends is small, and the answer names the rank wherever it is."""

import pytest

from tests.bench import hosts
from tests.chaos import hosts_campaign


def test_eight_ranks_of_a_hundred_threads_are_sent_in_less_than_100_kb():
    assert len(hosts.look_of(0, 8, 8, 100)) < 100_000


@pytest.mark.process
def test_forty_hosts_are_one_job(tmp_path):
    """Sent by the real exec worker (`cat FILE`)."""
    size, _, _, cause = hosts.measure(tmp_path, 40, 2, 12)
    assert size < 20_000 and cause == "implicit-sync-vs-collective"


def test_a_round_of_the_campaign_follows_from_seed_and_number():
    plans = [hosts_campaign.draw(7, number) for number in range(1, 201)]
    assert plans == [hosts_campaign.draw(7, number) for number in range(1, 201)]
    assert plans[:20] != [hosts_campaign.draw(8, number) for number in range(1, 21)]
    kinds = {kind for plan in plans for kind in plan.kinds}
    assert kinds == {*hosts_campaign.AT_HOSTS, *hosts_campaign.AT_CALLER}
