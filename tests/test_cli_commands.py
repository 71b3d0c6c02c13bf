"""The commands: what they print where, where options come from, and that records repeat runs."""

import json
import logging
import os
import re
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from commands import assert_refused, run, succeed, written

from outbid import Detections, TrackingSettings, Tracks, read_record, read_tracks, write_detections
from outbid.cli import info as info_cli
from outbid.cli import main
from outbid.particles.reliability import next_step, sentence_on
from outbid.settings.device import GPU_FROM_DETECTIONS, GPU_FROM_DETECTIONS_LEARNED


@pytest.fixture
def spots(tmp_path: Path) -> Path:
    """Thirty particles that drift and jitter for eight frames; some are missed."""
    rng = np.random.default_rng(5)
    position = rng.random((30, 3)) * 60 + rng.normal(0, 0.5, (8, 30, 3)).cumsum(axis=0)
    seen = rng.random((8, 30)) < 0.9
    frame = np.repeat(np.arange(8), 30).reshape(8, 30)
    path = tmp_path / "spots.csv"
    write_detections(path, Detections.from_table(frame[seen], position[seen]))
    return path


# ---------------------------------------------------------------- help


@pytest.mark.parametrize("arguments", [[], ["-h"], ["--help"]])
def test_help_begins_with_examples(arguments: list[str]) -> None:
    shown = run(*arguments).output
    assert shown.index("Examples:") < shown.index("Options:") < shown.index("Commands:")
    for command in ("track", "simulate", "score", "convert", "info"):
        assert re.search(rf"^  {command}\b", shown, re.MULTILINE)
    assert "_OUTBID_COMPLETE=bash_source" in shown


@pytest.mark.smoke
@pytest.mark.parametrize("command", ["track", "score", "convert", "info"])
def test_help_of_a_command_begins_with_examples(command: str) -> None:
    done = succeed(command, "-h")
    assert done.output.index(f"  outbid {command}") < done.output.index("Options:")
    bare = run(command)
    assert command == "info" or (bare.exit_code, "Examples:" in bare.output) == (2, True)


def test_help_states_from_how_many_detections_on_a_gpu_is_taken() -> None:
    shown = " ".join(run("track", "--help").output.split())
    assert f"for {GPU_FROM_DETECTIONS_LEARNED:,} detections or more" in shown
    assert f"for {GPU_FROM_DETECTIONS // 1_000_000} million" in shown


def test_the_version_is_that_of_the_package() -> None:
    assert run("--version").output.split()[-1] == metadata.version("outbid")


def test_shell_completion_knows_commands_and_options() -> None:
    def completed(words: str) -> list[str]:
        env = {"_OUTBID_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        return CliRunner().invoke(main, prog_name="outbid", env=env).output.split()

    assert "plain,track" in completed("outbid tr")
    assert "plain,--max-gap" in completed("outbid track --max-g")


# ---------------------------------------------------------------- track


@pytest.mark.smoke
def test_track_links_what_is_there(spots: Path, tmp_path: Path) -> None:
    output = tmp_path / "tracks.csv"
    done = succeed("track", spots, "-o", output, "--max-distance", 4, "--max-gap", 1, "--json")
    found = read_tracks(output)
    summary = json.loads(done.stdout)
    assert summary["links"] == len(found.links) > 150
    assert summary["tracks"] == found.track_count
    assert summary["worst_gap"] == 0
    assert {"read", "hash", "tracks", "write"} < set(summary["stages"])
    assert 0 < sum(summary["stages"].values()) <= summary["seconds"]
    (line,) = done.stderr.splitlines()
    written = "positions in px, times in frames"
    assert line.startswith(
        f"{output}: {sentence_on(found).removesuffix('.')}; {written}. Next: outbid report "
    )


@pytest.mark.parametrize("share", [0.99, 0.8, 0.3])
def test_a_run_says_what_to_do_next_by_how_far_to_trust_it(share: float) -> None:
    seen = Detections.from_table(range(4), [[0, 0, x] for x in range(4)])
    tracks = Tracks(seen, np.array([[0, 1], [1, 2], [2, 3]]), link_probability=np.array([1, 1, share]))
    said = next_step(tracks, "s.csv", "t.csv")
    assert ("advise s.csv" in said) == (share == 0.3)
    assert ("measure t.csv" in said) == (share > 0.5)


def test_verbose_says_more_and_only_once(spots: Path, tmp_path: Path) -> None:
    for name in "ab":  # the second run must not log twice
        done = run("track", spots, "-o", tmp_path / f"{name}.csv", "--max-distance", 4, "-v")
        assert done.stdout == ""
        assert done.stderr.count("TrackingSettings(max_distance=4.0") == 1
        assert logging.getLogger("outbid").handlers == []


@pytest.mark.smoke
def test_the_record_states_all_and_no_more(spots: Path, tmp_path: Path) -> None:
    run("track", spots, "-o", tmp_path / "a.csv", "--max-distance", 4)
    record = read_record(tmp_path / "a.csv")
    assert set(record) == {"command", "settings", "version", "seed", "device", "input", "fallbacks"}
    assert set(record["settings"]) == set(TrackingSettings(1.0).as_dict())
    assert record["input"]["name"] == "spots.csv"
    assert record["device"] == "cpu"
    assert str(tmp_path) not in (tmp_path / "a.csv.json").read_text()


@pytest.mark.smoke
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize(
    "options",
    [
        ["--max-distance", "4"],
        ["--max-distance", "inf", "--unmatched-cost", "7"],
        ["--max-distance", "4.1", "--cost", "squared", "--unmatched-cost", "full", "--solver", "greedy"],
        ["--max-distance", "9", "--spacing", "2.5", "1", "0.3", "--max-gap", "2", "--gap-distance", "5"],
    ],
)  # fmt: skip
def test_a_record_repeats_the_run_to_the_byte(
    options: list[str], suffix: str, spots: Path, tmp_path: Path
) -> None:
    first = tmp_path / f"first{suffix}"
    succeed("track", spots, "-o", first, *options)
    records = [first] + ([Path(f"{first}.json")] if suffix == ".csv" else [])
    for k, record in enumerate(records):
        again = tmp_path / f"again{k}{suffix}"
        succeed("track", spots, "-o", again, "--config", record)
        assert again.read_bytes() == first.read_bytes()
        if suffix == ".csv":
            assert Path(f"{again}.json").read_bytes() == Path(f"{first}.json").read_bytes()


def test_settings_on_another_input_are_reported(spots: Path, tmp_path: Path) -> None:
    run("track", spots, "-o", tmp_path / "a.csv", "--max-distance", 4)
    same = run("track", spots, "-o", tmp_path / "b.csv", "--config", tmp_path / "a.csv")
    assert "another input" not in same.stderr
    other = written(tmp_path / "other.csv", spots.read_text() + "9,1,1,1\n")
    done = succeed("track", other, "-o", tmp_path / "c.csv", "--config", tmp_path / "a.csv")
    assert "another input (spots.csv)" in done.stderr


@pytest.mark.parametrize(("word", "cost", "number"), [("full", "euclidean", "3"), ("full", "squared", "9")])
def test_the_full_cost_of_the_gate(word: str, cost: str, number: str, spots: Path, tmp_path: Path) -> None:
    common = ["track", spots, "--max-distance", 3, "--cost", cost]
    run(*common, "-o", tmp_path / "word.csv", "--unmatched-cost", word)
    run(*common, "-o", tmp_path / "number.csv", "--unmatched-cost", number)
    run(*common, "-o", tmp_path / "half.csv")
    contents = [(tmp_path / name).read_bytes() for name in ("word.csv", "number.csv", "half.csv")]
    assert contents[0] == contents[1] != contents[2]


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--max-distance", "four"], "not a valid float"),
        (["--max-distance", "4", "--cost", "cubic"], "cubic"),
        (["--max-distance", "4", "--unmatched-cost", "much"], "much"),
        (["--max-distance", "4", "--unmatched-cost", "-1"], "unmatched_cost"),
        (["--max-distance", "inf", "--unmatched-cost", "full"], "unmatched_cost"),
        (["--max-distance", "1e200", "--cost", "squared", "--unmatched-cost", "full"], "unmatched_cost"),
        (["--max-distance", "4", "--spacing", "1", "0", "1"], "spacing"),
        (["--max-distance", "4", "--spacing", "1", "1"], "3 arguments"),
        (["--max-distance", "4", "--max-gap", "-1"], "max_gap"),
        (["--max-distance", "4", "--solver", "magic"], "bid_and_augment"),
        (["--max-distance", "4", "--workers", "0"], "workers"),
        (["--max-distance", "4", "--frobnicate"], "frobnicate"),
    ],
)
def test_wrong_usage(options: list[str], said: str, spots: Path, tmp_path: Path) -> None:
    done = run("track", spots, "-o", tmp_path / "a.csv", *options)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "a.csv").exists()


def test_the_gpu_where_there_is_none(spots: Path, tmp_path: Path) -> None:
    from outbid.compute.arrays import gpu_names

    try:
        gpu_names()
    except RuntimeError:
        done = run("track", spots, "-o", tmp_path / "a.csv", "--max-distance", 4, "--device", "gpu")
        assert done.exit_code == 4
        assert done.stderr.startswith("Error: ")
    else:
        pytest.skip("there is one")


# ---------------------------------------------------------------- where options come from


def max_distance_used(output: Path) -> float:
    return read_record(output)["settings"]["max_distance"]


@pytest.mark.smoke
@pytest.mark.parametrize(
    "toml", ["max-distance = 5.5", "max_distance = 5.5", "[track]\nmax-distance = 5.5\n[score]\ngate = 3"]
)
def test_command_line_then_environment_then_file(toml: str, spots: Path, tmp_path: Path) -> None:
    config, output = tmp_path / "run.toml", tmp_path / "a.csv"
    config.write_text(toml)
    common = ["track", spots, "-o", output, "--overwrite", "--config", config]
    environment = {"OUTBID_TRACK_MAX_DISTANCE": "6.5"}
    for more, env, expected in [
        ([], None, 5.5),
        ([], environment, 6.5),
        (["--max-distance", 7.5], environment, 7.5),
    ]:
        succeed(*common, *more, env=env)
        assert max_distance_used(output) == expected


def test_a_file_sets_every_kind_of_option(spots: Path, tmp_path: Path) -> None:
    config = tmp_path / "run.toml"
    config.write_text(
        f"max-distance = 4\nspacing = [2.0, 1.0, 0.5]\nmax-gap = 1\nunmatched-cost = 'full'\nquiet = true\n"
        f"output = {str(tmp_path / 'a.csv')!r}\n"
    )
    done = run("track", spots, "--config", config)
    assert (done.exit_code, done.output) == (0, "")
    settings = read_record(tmp_path / "a.csv")["settings"]
    assert settings["spacing"] == [2.0, 1.0, 0.5]
    assert (settings["max_gap"], settings["unmatched_cost"]) == (1, 4.0)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("max-distnace = 5", "Did you mean 'max_distance'?"),
        ("max-distance = 5\nfrobnicate = 1", "no setting 'frobnicate'"),
        ("[track]\ngate = 5", "no setting 'gate'"),
        ("[tracking]\nmax-distance = 5", "no setting 'tracking'"),
        ("config = 'other.toml'", "no setting 'config'"),
        ("max-distance = 'wide'", "not a valid float"),
        ("max-distance = ", "Fix the TOML"),
    ],
)
def test_a_wrong_configuration(content: str, said: str, spots: Path, tmp_path: Path) -> None:
    config = written(tmp_path / "run.toml", content)
    done = run("track", spots, "-o", tmp_path / "a.csv", "--config", config)
    assert done.exit_code == 2
    assert said in done.stderr


@pytest.mark.parametrize("name", ["none.toml", "none.csv", "spots.csv", "none.json", "folder"])
def test_a_configuration_that_is_none(name: str, spots: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    assert_refused(run("track", spots, "-o", tmp_path / "a.csv", "--config", tmp_path / name), 2, name)


def test_the_record_of_another_command(spots: Path, tmp_path: Path) -> None:
    run("convert", spots, tmp_path / "a.parquet")
    done = run("track", spots, "-o", tmp_path / "b.csv", "--config", tmp_path / "a.parquet")
    assert_refused(done, 2, "no record of `outbid track`")


# ---------------------------------------------------------------- score, convert, info


@pytest.mark.smoke
def test_score(spots: Path, tmp_path: Path) -> None:
    run("track", spots, "-o", tmp_path / "a.csv", "--max-distance", 4)
    run("track", spots, "-o", tmp_path / "b.csv", "--max-distance", 1)
    shown = succeed("score", tmp_path / "b.csv", tmp_path / "a.csv")
    assert re.search(r"^link_precision +1\.0000$", shown.stdout, re.MULTILINE)
    done = run("score", tmp_path / "b.csv", tmp_path / "a.csv", "--json", "--gate", 2)
    found = json.loads(done.stdout)
    assert found["values"]["link_f1"] < 1
    assert found["provenance"]["gate"] == 2
    assert found["provenance"]["inputs"]["truth"]["name"] == "a.csv"
    assert found["values"]["n_true_divisions"] == 0
    assert "division" not in shown.stdout
    assert "Neither the tracks nor the truth have divisions" in shown.stderr


def test_divisions_are_scored(tmp_path: Path) -> None:
    places = ["0,0,0,0", "0,1,0,0", "1,2,0,1", "1,3,0,1", "2,2,0,-1", "2,3,0,-1"]
    family = ["track_id,frame,y,x,parent", *(f"{row},{'0' if row[0] > '0' else ''}" for row in places)]
    (tmp_path / "family.csv").write_text("\n".join(family))
    (tmp_path / "apart.csv").write_text("\n".join(["track_id,frame,y,x", *places]))
    both = run("score", tmp_path / "family.csv", tmp_path / "family.csv", "--gate", 5)
    assert re.search(r"^division_f1 +1\.0000$", both.stdout, re.MULTILINE), both.output
    assert both.stderr == ""
    sides = tmp_path / "apart.csv", tmp_path / "family.csv"
    missed = run("score", *sides, "--fail-under", "division_recall=1")
    assert missed.exit_code == 1
    assert re.search(r"^n_true_divisions +1$", missed.stdout, re.MULTILINE)


def test_scores_that_are_not_defined_are_null(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("track_id,frame,y,x\n")
    done = succeed("score", tmp_path / "a.csv", tmp_path / "a.csv", "--json")
    assert None in json.loads(done.stdout)["values"].values()
    assert "NaN" not in done.stdout
    # What is not defined is not above a threshold.
    name = next(name for name, value in json.loads(done.stdout)["values"].items() if value is None)
    assert run("score", tmp_path / "a.csv", tmp_path / "a.csv", "--fail-under", f"{name}=0").exit_code == 1


@pytest.mark.smoke
def test_thresholds(spots: Path, tmp_path: Path) -> None:
    run("track", spots, "-o", tmp_path / "a.csv", "--max-distance", 4)
    run("track", spots, "-o", tmp_path / "b.csv", "--max-distance", 1)
    score = ["score", tmp_path / "b.csv", tmp_path / "a.csv"]
    met = succeed(*score, "--fail-under", "link_precision=1", "--fail-under", "link_f1=0.01")
    missed = run(*score, "--fail-under", "link_precision=1", "--fail-under", "link_f1=0.999")
    assert missed.exit_code == 1
    assert missed.stdout == met.stdout
    assert re.search(r"\nlink_f1 is 0\.\d+, under 0\.999\.\n", missed.stderr)
    assert run(*score, "--fail-under", "link_f1").exit_code == 2
    unknown = run(*score, "--fail-under", "beauty=1")
    assert (unknown.exit_code, "beauty" in unknown.stderr, unknown.stdout) == (2, True, "")


@pytest.mark.smoke
def test_convert_keeps_tracks_and_record(spots: Path, tmp_path: Path) -> None:
    run("track", spots, "-o", tmp_path / "a.csv", "--max-distance", 4, "--max-gap", 1)
    succeed("convert", tmp_path / "a.csv", tmp_path / "b.parquet")
    succeed("convert", tmp_path / "b.parquet", tmp_path / "c.csv")
    assert (tmp_path / "c.csv").read_bytes() == (tmp_path / "a.csv").read_bytes()
    assert (tmp_path / "c.csv.json").read_bytes() == (tmp_path / "a.csv.json").read_bytes()


def test_convert_detections(spots: Path, tmp_path: Path) -> None:
    succeed("convert", spots, tmp_path / "b.parquet")
    succeed("convert", tmp_path / "b.parquet", tmp_path / "c.csv")
    assert (tmp_path / "c.csv").read_bytes() == spots.read_bytes()
    assert read_record(tmp_path / "c.csv")["input"]["name"] == "spots.csv"
    assert run("convert", spots, tmp_path / "c.csv").exit_code == 2
    succeed("convert", spots, tmp_path / "c.csv", "--overwrite")


@pytest.mark.smoke
def test_info(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = succeed("info")
    assert re.search(rf"^numpy +{re.escape(np.__version__)}$", shown.stdout, re.MULTILINE)
    found = json.loads(run("info", "--json").stdout)
    assert found["versions"]["numpy"] == np.__version__
    assert found["cpu_cores"] == len(os.sched_getaffinity(0))
    monkeypatch.setattr(info_cli, "_version", lambda name: None if name == "pyarrow" else "1")
    assert "pip install pyarrow" in run("info").stdout
    monkeypatch.setattr(
        metadata,
        "requires",
        lambda _: ["numpy>=2.0", 'geff>=1.1; extra == "geff"', "pytest; extra == 'test'"],
    )
    monkeypatch.setattr(info_cli, "_version", lambda _: None)
    assert json.loads(run("info", "--json").stdout)["missing"][1:3] == [
        "numpy is not installed: pip install numpy",
        "geff is not installed: pip install 'outbid[geff]'",
    ]
