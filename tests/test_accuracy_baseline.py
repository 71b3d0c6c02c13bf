"""The frozen baseline, commit a8344a6 over the whole list; and a few movies linked by the code as it is."""

import numpy as np
from accuracy.measured import Record, measured, name_of, unpacked
from accuracy.movies import fingerprint, simulated
from accuracy.run import BASELINE, chosen, over
from accuracy.served import Answer

FEW = ("few@0.14#0", "few_and_still@0.14#1", "dividing_few@0.14#0", "in_wells@0.07#0", "swimmers@0.14#0")


def test_the_baseline_holds_the_whole_list() -> None:
    """Each movie of the list was linked by the old engine; some are made again and are the same."""
    baseline = Record.load(BASELINE)
    assert baseline.about["commit"].startswith("a8344a6")
    held = {row.movie: row for row in baseline.rows}
    assert set(simulated()) <= set(held)
    assert not [row.movie for row in baseline.rows if row.error]
    for movie in simulated()[7::97]:
        assert fingerprint(movie.truth()) == held[movie].fingerprint
    some = next(row for row in baseline.rows if name_of(row.movie) in baseline.links)
    links, _ = unpacked(some.movie.truth(), baseline.links[name_of(some.movie)])
    answer = Answer(links, np.ones(len(links)), 0.0)
    assert measured(some.movie, some.movie.truth(), answer).links == some.links


def test_a_few_movies_are_linked_as_well_as_by_the_baseline() -> None:
    movies = [movie for movie in chosen("all") if name_of(movie) in FEW]
    assert len(movies) == len(FEW)
    found = Record({"commit": "now"}, [row for row, _ in over(movies, "learned")], {})
    assert not [row.error for row in found.rows if row.error]
    means = [
        np.mean([[row.link_f1, row.idf1] for row in rows], axis=0)
        for rows in (found.rows, [row for row in Record.load(BASELINE).rows if name_of(row.movie) in FEW])
    ]
    assert (means[0] > means[1] - [0.005, 0.02]).all()
