"""The records of the last runs on a GPU, which CI has not: every answer was optimal."""

import json

import pytest
from checkout import REPOSITORY

TABLES = ("frame_pairs", "movies", "dense")
ORIGIN = ("commit", "date", "card", "driver", "provenance")
RECORD = json.loads((REPOSITORY / "tests" / "bench" / "gpu_record.json").read_text("utf-8"))
LONG_RECORD = json.loads((REPOSITORY / "tests" / "bench" / "gpu_long_record.json").read_text("utf-8"))


def test_the_record_is_whole_and_no_test_failed():
    assert {*ORIGIN, "tests", *TABLES} == set(RECORD)
    assert all(RECORD[name] for name in TABLES)
    assert RECORD["tests"]["failed"] == 0
    assert RECORD["tests"]["passed"] > 1000


@pytest.mark.parametrize("record", [RECORD, *LONG_RECORD.values()])
def test_records_say_where_they_come_from(record):
    assert [name for name in ORIGIN if not record[name] or record[name] == "unknown"] == []
    assert len(record["commit"].rstrip("+")) == 40


@pytest.mark.parametrize("table", TABLES)
def test_every_recorded_answer_was_optimal(table):
    for row in RECORD[table]:
        assert row["gap"] == 0 or row["status"] == "OPTIMAL", row


def test_time_grows_as_the_number_of_particles_and_candidates_beyond_32_bits_are_solved():
    scaling = LONG_RECORD["scaling"]
    assert scaling["exponent"] <= 1.1
    assert [row["gap"] for row in scaling["rows"] + scaling["many"]] == [0] * (len(scaling["rows"]) + 1)
    assert scaling["many"][0]["candidates"] > 2**31


def test_learned_links_were_those_of_the_cpu_and_the_large_movie_stayed_on_the_gpu():
    *rows, streamed = LONG_RECORD["learned"]["rows"]
    assert [row["fallbacks"] for row in (*rows, streamed)] == [0, 0, 0, 0]
    assert all(row["links_alike"] > 0.9999 and row["probability_apart"] < 1e-3 for row in rows)
    assert streamed["links"] + streamed["tracks"] == streamed["detections"]


def test_the_huge_movie_was_linked_optimally_and_alike_in_memory_and_streamed():
    record = LONG_RECORD["huge_movie"]
    rows, size = record["rows"], record["frames"] * record["particles"]
    runs = [row for row in rows if "worst_gap" in row]
    assert [(run["worst_gap"], run["fallbacks"]) for run in runs] == [(0, 0)] * len(runs)
    assert [run["links"] + run["tracks"] for run in runs] == [size] * len(runs)
    assert all(row.get("same_tracks", True) for row in rows)
    assert len({row["tracks"] for row in runs}) == 1
