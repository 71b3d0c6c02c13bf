"""Tables of rows as text: CSV, JSON, and columns for reading."""

from __future__ import annotations

import csv
import io
import json

from .experiment import Row


def as_csv(rows: list[Row]) -> str:
    """Rows as a table in CSV; a cell is empty if its row lacks the column.

    Examples
    --------
    >>> print(as_csv([{"kappa": 0.1, "link_f1": 0.9}, {"kappa": 0.2, "rival": "nearest"}]))
    kappa,link_f1,rival
    0.1,0.9,
    0.2,,nearest
    <BLANKLINE>
    """
    text = io.StringIO()
    columns = list(dict.fromkeys(name for row in rows for name in row))
    table = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    table.writeheader()
    for row in rows:
        table.writerow({name: _short(value, 6) for name, value in row.items()})
    return text.getvalue()


def json_of(tables: dict[str, list[Row]]) -> str:
    """Tables by name; JSON has no NaN, so a score that is 0 / 0 becomes null.

    Examples
    --------
    >>> json_of({"summary": [{"kappa": 0.1, "link_f1": float("nan")}]})
    '{"summary": [{"kappa": 0.1, "link_f1": null}]}'
    """
    return json.dumps(
        {
            name: [{key: None if value != value else value for key, value in row.items()} for row in rows]
            for name, rows in tables.items()
        }
    )


def as_text(rows: list[Row]) -> str:
    """Rows as a table for reading, with intervals next to their means.

    Examples
    --------
    >>> print(as_text([{"kappa": 0.1, "link_f1": 0.9, "link_f1_low": 0.89, "link_f1_high": 0.9123}]))
    kappa  link_f1
    0.1    0.9 [0.89, 0.9123]
    """
    table = []
    for row in rows:
        line = {}
        for name, value in row.items():
            low, high = row.get(f"{name}_low"), row.get(f"{name}_high")
            if low is not None and high is not None:
                line[name] = f"{_short(value)} [{_short(low)}, {_short(high)}]"
            elif not name.endswith(("_low", "_high")):
                line[name] = _short(value)
        table.append(line)
    columns = list(dict.fromkeys(name for line in table for name in line))
    width = {name: max(len(name), *(len(line.get(name, "")) for line in table)) for name in columns}
    lines = [{name: name for name in columns}, *table]
    return "\n".join(
        "  ".join(f"{line.get(name, ''):<{width[name]}}" for name in columns).rstrip() for line in lines
    )


def _short(value: float | int | str, digits: int = 4) -> str:
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)
