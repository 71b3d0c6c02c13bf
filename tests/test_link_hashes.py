"""Links, costs and scores are those of the record: to the byte, but for costs that are learned."""

import copy
import json
from pathlib import Path

import link_hashes
import numpy as np
import pytest

RECORD = json.loads(link_hashes.RECORD.read_text("utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize("name", link_hashes.MOVIES)
def test_links_costs_and_scores_are_those_of_the_record(name: str, request: pytest.FixtureRequest) -> None:
    if name != "walks":
        folder: Path = request.getfixturevalue("real_data")
        assert folder == link_hashes.DATA
    found = {case: link_hashes.hashes(name, settings) for case, settings in link_hashes.cases(name)}
    known = copy.deepcopy(RECORD[name])
    costs = [np.array(of["learned"].pop("costs")) for of in (found, known)]
    np.testing.assert_allclose(*costs, rtol=1e-3, atol=1e-3)
    assert found == known
