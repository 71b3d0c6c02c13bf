"""Tables of the posterior beside the passes: from the records, and the decision is the rule's."""

from dataclasses import replace

import posterior_tables as tables
import pytest
from accuracy.compare import compared
from accuracy.measured import Record
from accuracy.movies import HERE


@pytest.fixture
def passes() -> Record:
    return Record.load(HERE / "baseline.npz")


def test_the_decision_is_that_of_the_rule(monkeypatch: pytest.MonkeyPatch, passes: Record) -> None:
    """An engine that equals the passes meets it; one that loses a hundredth in one kind does not."""
    equal = passes.rows
    worse = [replace(r, link_f1=r.link_f1 - 0.01 * (r.movie.kind == "few")) for r in passes.rows]
    for rows, expected in ((equal, True), (worse, False)):
        monkeypatch.setattr(tables, "_rows", lambda rows=rows: tuple(rows))
        assert compared(Record({}, rows, {}), passes).passed == expected
        text = tables.posterior_decision()
        assert ("**no**" in text) != expected
        assert ("few 0.07" in text) == (not expected)


def test_kinds_are_developed_on_or_reported_only(monkeypatch: pytest.MonkeyPatch, passes: Record) -> None:
    monkeypatch.setattr(tables, "_rows", lambda: tuple(passes.rows))
    developed, reported = (
        {line.partition(" | ")[0] for line in made().splitlines() if line.startswith("| ")}
        for made in (tables.posterior_developed, tables.posterior_reported)
    )
    shared = {"| movies, κ", "| ---", "| **mean of simulated**", "| **mean of recorded**"}
    assert developed & reported == shared
    assert "| swimmers 0.07" in developed
    assert "| diffusion 0.07" in reported
    assert "| `celegans/L1.csv`" in reported


def test_curves_count_every_link() -> None:
    lines = tables.posterior_reliability().splitlines()[2:10]
    counted = sum(int(line.split(" | ")[1].replace(",", "")) for line in lines)
    assert counted == sum(sum(row.count) for row in tables._rows())
