"""The plan of huge movies: what follows from rates, and that the page's record is of this code's kind."""

import json

import pytest
import scale_plan

RECORD = {
    "linking": [
        {"rows": 10**6, "workers": 0, "seconds": 9.0, "links_seconds": 5.0, "parts_seconds": 3.0,
         "bytes_in": 20 * 10**6, "bytes_out": 30 * 10**6, "peak_bytes": 10**9, "own_peak_bytes": 10**9},
        {"rows": 10**6, "workers": 1, "seconds": 12.0, "links_seconds": 6.0, "parts_seconds": 4.0,
         "bytes_in": 20 * 10**6, "bytes_out": 30 * 10**6, "peak_bytes": 10**9, "own_peak_bytes": 10**9},
    ],
    "detection": {"voxels": 10**7, "seconds": 2.0, "spots": 1},
}  # fmt: skip


def test_time_is_shared_but_for_what_one_process_does() -> None:
    per = scale_plan.rates(RECORD)
    assert per["work"] == pytest.approx(1e-5)
    assert per["serial"] == pytest.approx(2e-6)
    rows = {row[0]: row[1:] for row in scale_plan.plan(RECORD)}
    assert rows["1,000,000,000 detections"] == ("50 GB", "200", "54", "36")
    hours = 5e12 * 2e-7 / 3600
    assert rows["10 TB of images (hours)"] == (
        "10,000 GB", *(f"{hours / workers:.3g}" for workers in scale_plan.WORKERS)
    )  # fmt: skip
    said = scale_plan.measured(RECORD)
    assert said.count("\n| 1,000,000 ") == 2
    assert "| 111,111 | 1.33 |" in said
    again = {**RECORD["linking"][1], "seconds": 6.0, "commit": "c" * 40, "is_beside_other_work": True}
    older = [row | {"commit": "a" * 40} for row in RECORD["linking"]]
    both = RECORD | {"linking": [*older, again], "commit": "c" * 40}
    assert scale_plan.rates(both)["serial"] == 0  # of the run of the record's own commit
    assert "| 166,667 | 1.00 | 1.00 GB | 1.00 GB | cccccccccc ¹ |" in scale_plan.measured(both)
    images = {"voxels": 10**9, "bytes": 2 * 10**9, "threads": 2, "detect_seconds": 499.0,
              "track_seconds": 1.0, "lanes": 1, "peak_bytes": 7 * 10**8,
              "peak_bytes_at_an_eighth": 6 * 10**8}  # fmt: skip
    assert "50 GB take 3.5 hours" in scale_plan.measured(RECORD | {"images": images})
    whole = images | {"voxels": 25 * 10**9, "bytes": 50 * 10**9, "detect_seconds": 9999.0, "lanes": 8}
    assert scale_plan.rates(RECORD | {"images": whole})["voxel"] == pytest.approx(8e-7)
    said = scale_plan.measured(RECORD | {"images": whole})
    assert "in 2.8 hours by 2 threads, 2.5 million voxels a second" in said
    assert "8 ranges of frames were done at the same time" in said
    assert "extrapolated" not in said


def test_the_record_is_whole() -> None:
    record = json.loads(scale_plan.RECORD.read_text("utf-8"))
    assert {row["workers"] for row in record["linking"]} >= {0, 1}
    assert "| 1,000,000,000 detections |" in scale_plan.table(record)
    largest = max(row["rows"] for row in record["linking"])
    assert len({row["tracks"] for row in record["linking"] if row["rows"] == largest}) == 1
