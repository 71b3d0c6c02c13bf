"""Links, costs and scores are those of the record: to the byte with a gate, rounded where all is learned."""

import json
from pathlib import Path

import link_hashes
import pytest

RECORD = json.loads(link_hashes.RECORD.read_text("utf-8"))


@pytest.mark.parametrize("name", link_hashes.MOVIES)
def test_links_costs_and_scores_are_those_of_the_record(name: str, request: pytest.FixtureRequest) -> None:
    if name != "walks":
        folder: Path = request.getfixturevalue("real_data")
        assert folder == link_hashes.DATA
    assert {case: link_hashes.hashes(name, settings) for case, settings in link_hashes.cases(name)} == RECORD[
        name
    ]
