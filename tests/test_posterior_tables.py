"""Tables of the accuracy of learned linking, from the record."""

import tables


def test_kinds_are_developed_on_or_reported_only() -> None:
    developed, reported = (
        {line.partition(" | ")[0] for line in made().splitlines() if line.startswith("| ")}
        for made in (tables.posterior_developed, tables.posterior_reported)
    )
    assert developed & reported == {"| movies", "| ---"}
    assert "| swimmers" in developed
    assert {"| diffusion", "| `celegans/L1.csv`"} <= reported


def test_curves_count_every_link() -> None:
    lines = tables.posterior_reliability().splitlines()[2:10]
    counted = sum(int(line.split(" | ")[1].replace(",", "")) for line in lines)
    assert counted == sum(sum(row.count) for row in tables.learned().rows)
