"""The frozen baseline, the last record, and a few movies linked by the code as it is."""

import numpy as np
import pytest
from accuracy.measured import Record, name_of
from accuracy.movies import HERE, recorded, simulated
from accuracy.run import BASELINE, chosen, over

FEW = ("diffusion@0.14#0", "few_and_still@0.14#1", "dividing_few@0.14#0", "in_wells@0.07#0", "hopping@0.14#0")


@pytest.mark.slow
def test_a_few_movies_are_linked_as_well_as_by_the_baseline() -> None:
    movies = [movie for movie in chosen("all") if name_of(movie) in FEW]
    assert len(movies) == len(FEW)
    found = Record({"commit": "now"}, list(over(movies, "learned")))
    assert not [row.error for row in found.rows if row.error]
    means = [
        np.mean([[row.link_f1, row.idf1] for row in rows], axis=0)
        for rows in (found.rows, [row for row in Record.load(BASELINE).rows if name_of(row.movie) in FEW])
    ]
    assert (means[0] > means[1] - [0.005, 0.02]).all()


def test_the_record_holds_every_movie_and_recorded_ones_are_linked_well() -> None:
    rows = Record.load(HERE / "learned.npz").rows
    assert {row.movie for row in rows} >= {*simulated(), *recorded()}
    assert min(row.link_f1 for row in rows if row.movie.recorded and row.movie.level <= 3) > 0.9
