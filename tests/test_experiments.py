"""Experiments: theory holds, rows depend on nothing but the seeds, absent rivals are named."""

import json
import os
import sys
from math import sqrt
from pathlib import Path

import numpy as np
import pytest
from commands import assert_refused, run, succeed
from experiment_runs import TINY, interrupt, table, without_seconds

from outbid import ResourceError, Tracks
from outbid.simulate.bootstrap import interval
from outbid.simulate.comparison import TUNING_SEEDS, against_the_best, linked_and_scored, tuned, ways_of
from outbid.simulate.conduct import conduct, plan
from outbid.simulate.experiment import Row, Size, Trial, rows_of, summary_of
from outbid.simulate.experiments import EXPERIMENTS
from outbid.simulate.experiments.calibration import confidence, persistence_of
from outbid.simulate.experiments.papers import PAPERS
from outbid.simulate.linkers import LINKERS, linker_named
from outbid.simulate.linkers import linker as linker_module
from outbid.simulate.rows import json_of
from outbid.simulate.scenes import Scene
from outbid.simulate.settings import ExperimentSettings
from outbid.simulate.theory import nearest, nearest_precision

UNTUNED = ("--where", "given=nothing")
OURS = ("--where", "linker=outbid,plain,velocity,nearest")


# ---------------------------------------------------------------- what experiments say is true


def test_the_nearest_neighbour_is_right_as_often_as_theory_says(tmp_path: Path) -> None:
    planned = plan(
        "kappa", tmp_path, ExperimentSettings(
            seeds=3, frames=12, particles=1000, where={"linker": "nearest", "kappa": "0.05,0.1,0.15,0.2"},
        ),
    )  # fmt: skip
    for cell in conduct(planned).summary:
        scene = Scene(float(cell["kappa"]))
        expected, count = nearest_precision(scene), 3 * float(cell["links"])
        # Links of one particle are not independent: twice the error of a share, and that of theory.
        assert (
            abs(float(cell["link_precision"]) - expected)
            < 8 * sqrt(expected * (1 - expected) / count) + 0.002
        )
        assert expected < nearest(scene.kappa) + 0.005  # births and deaths cost more than walls give


@pytest.mark.parametrize("share", [{"miss": 0.2}, {"clutter": 0.3}])
def test_theory_knows_misses_and_clutter(share: dict[str, float]) -> None:
    scene = Scene(0.15, particles=1000, frames=20, **share)
    found = linked_and_scored(linker_named("nearest"), {}, scene, 0)
    assert float(found["link_precision"]) == pytest.approx(nearest_precision(scene), abs=0.012)
    assert nearest_precision(scene) < nearest_precision(Scene(0.15)) - 0.05


@pytest.mark.slow
def test_accuracy_falls_with_kappa_and_the_past_helps(tmp_path: Path) -> None:
    size = {"seeds": 2, "frames": 8, "particles": 200}
    kappa = conduct(plan("kappa", tmp_path, ExperimentSettings(where={"linker": "outbid"}, **size))).summary
    reached = [float(cell["link_f1"]) for cell in kappa]
    assert reached == sorted(reached, reverse=True)
    assert reached[0] > 0.99
    assert reached[-1] < 0.7
    where = {"persistence": "0,30", "linker": "plain,velocity", "given": "the truth"}
    found = conduct(plan("persistence", tmp_path, ExperimentSettings(where=where, **size))).summary
    gain = {}
    for cell in found:
        gain[cell["persistence"], cell["linker"]] = float(cell["link_f1"])
    assert gain[30.0, "velocity"] > gain[30.0, "plain"] + 0.05
    assert abs(gain[0.0, "velocity"] - gain[0.0, "plain"]) < 0.03


@pytest.mark.slow
def test_only_kappa_counts_whatever_the_density() -> None:
    dense, thin = (
        linked_and_scored(linker_named("outbid"), {}, Scene(0.2, density=density, particles=300), 3)
        for density in (8.0, 1.0)
    )
    assert float(dense["link_f1"]) == pytest.approx(float(thin["link_f1"]), abs=0.01)


def test_true_links_show_their_persistence() -> None:
    # Slow ones in a large box, where walls turn few of them.
    film = Scene(0.02, 5.0, particles=8000, frames=20, turnover=0.0, noise=0.0).film(0)
    assert persistence_of(film) == pytest.approx(5.0, rel=0.1)
    assert persistence_of(Scene(0.1, 0.0, particles=1000, frames=20).film(0)) == 0


def test_confidence_is_judged() -> None:
    film = Scene(0.2, particles=300, frames=10).film(1)
    wrong = film.links.copy()
    wrong[:20, 1] = wrong[np.arange(20)[::-1], 1]
    probability = np.full(len(wrong), 0.99)
    probability[:20] = 0.1
    values = confidence(Tracks(film.detections, wrong, link_probability=probability), film)
    assert (values["wrong_caught"], values["wrong_catchable"]) == (1, 1)
    assert float(values["ece"]) < 0.02
    many = 0.05 * len(wrong)  # as it happens more than 20
    predicted = (20 * 0.9 + (np.ceil(many) - 20) * 0.01) / (20 * 0.9 + (len(wrong) - 20) * 0.01)
    assert values["wrong_predicted"] == pytest.approx(predicted)
    values = confidence(Tracks(film.detections, wrong, link_probability=1.09 - probability), film)
    assert values["wrong_caught"] == 0
    assert float(values["ece"]) > 0.8


# ---------------------------------------------------------------- statistics


def test_intervals_hold_the_mean_about_as_often_as_they_say() -> None:
    rng = np.random.default_rng(5)
    drawn = rng.normal(3.0, 1.0, (300, 20))
    held = [low <= 3.0 <= high for _, low, high in map(interval, drawn)]
    assert 0.87 < np.mean(held) < 0.98
    assert np.isnan(interval([np.nan])).all()
    assert interval([1.0, np.nan, 3.0])[0] == 2.0


def test_a_lead_is_judged_by_pairs() -> None:
    noise = [0.1, -0.2, 0.05, 0.3, -0.1]
    rows: list[Row] = [
        {"linker": who, "given": "nothing", "seed": seed, "link_f1": base + shared}
        for who, base in (("outbid", 0.61), ("laptrack", 0.6))
        for seed, shared in enumerate(noise)
    ]
    found = against_the_best(
        [row for row in rows if row["linker"] == "outbid" or row["seed"] != 3], (), "link_f1"
    )[0]
    assert (found["verdict"], found["seeds"]) == ("better", 4)
    for row in rows:
        row["link_f1"] = float(row["link_f1"]) * (1 if row["linker"] == "outbid" else 1.1)
    assert against_the_best(rows, (), "link_f1")[0]["verdict"] == "worse"
    assert against_the_best([row for row in rows if row["linker"] != "outbid"], (), "link_f1") == []


@pytest.mark.slow
def test_settings_are_tuned_on_other_movies() -> None:
    for name in EXPERIMENTS:
        seeds = {seed for trial in EXPERIMENTS[name].trials(Size(seeds=9)) for seed in trial.seeds}
        assert seeds.isdisjoint(TUNING_SEEDS)
    straight = tuned(linker_named("velocity"), Scene(0.3, 30.0, particles=300))
    diffusing = tuned(linker_named("velocity"), Scene(0.15, 0.0, particles=300))
    assert float(straight["memory"]) > 0.5 > float(diffusing["memory"])


def test_a_grid_that_is_worse_than_the_defaults_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    linker, scene = linker_named("plain"), Scene(0.1, particles=100, frames=5)
    narrow = {"gate": 0.01, "cost": "euclidean", "max_gap": 0}
    usual = linker.defaults(gaps=False)
    monkeypatch.setattr(type(linker), "grid", lambda *_, **__: [narrow])
    assert tuned(linker, scene) == usual


# ---------------------------------------------------------------- linkers


@pytest.mark.smoke
@pytest.mark.parametrize("name", LINKERS)
def test_every_linker_links_an_easy_movie(name: str) -> None:
    linker = linker_named(name)
    if (sentence := linker.missing()) is not None:
        pytest.skip(sentence)
    scene = Scene(0.03, 3.0, particles=60, frames=6, turnover=0.0, noise=0.01)
    assert ways_of(linker, gaps=False)
    tries = linker.grid(gaps=False)[-3:] or [{}]
    assert max(float(linked_and_scored(linker, one, scene, 0)["link_f1"]) for one in tries) > 0.95


@pytest.mark.parametrize("name", ["velocity", "plain", "outbid"])
def test_ours_reach_over_gaps(name: str) -> None:
    linker, scene = linker_named(name), Scene(0.05, miss=0.1, particles=200, frames=12)
    settings = linker.defaults(gaps=True)
    assert settings is not None
    found = linked_and_scored(linker, settings, scene, 0)
    assert float(found["link_f1"]) > 0.95
    film = scene.film(0)
    links = linker.link(film.detections, settings, scene.length_unit)
    assert (np.diff(film.detections.frame[links], axis=1) > 1).any()


def test_a_linker_that_is_absent_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linker_module, "find_spec", lambda _: None)
    where = ("--where", "linker=plain,laptrack", "--where", "given=nothing", "--where", "kappa=0.1")
    done = succeed("experiment", "rivals", *TINY, *where, "-o", tmp_path)
    assert "laptrack left out: not installed (pip install 'outbid[rivals]')" in done.stderr
    assert {row["linker"] for row in table(tmp_path / "rivals.csv")} == {"plain"}
    assert json.loads((tmp_path / "rivals.csv.json").read_text())["left_out"]
    done = run("experiment", "rivals", *TINY, "--where", "linker=laptrack", "-o", tmp_path / "other")
    assert_refused(done, 4, "laptrack", "outbid[rivals]")


# ---------------------------------------------------------------- the command


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_runs_small(name: str, tmp_path: Path) -> None:
    ours = (*OURS, *UNTUNED) if hasattr(EXPERIMENTS[name], "linkers") else ()
    done = succeed("experiment", name, *TINY, *ours, "-o", tmp_path / "found")
    rows, cells = (table(tmp_path / "found" / f"{name}{ending}.csv") for ending in ("", "_summary"))
    cell = EXPERIMENTS[name].cell
    assert set(cell) <= set(rows[0])
    assert len(cells) == len({tuple(row[key] for key in cell) for row in rows})
    assert all(0 <= float(row["link_f1"]) <= 1 for row in rows)
    record = json.loads((tmp_path / "found" / f"{name}.csv.json").read_text())
    assert (record["experiment"], record["complete"], record["left_out"]) == (name, True, [])
    assert (tmp_path / "found" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert done.stdout.splitlines()[0].split()[0] == cell[0]


@pytest.mark.slow
def test_neither_jobs_nor_repetition_change_the_rows() -> None:
    experiment = EXPERIMENTS["persistence"]
    every = experiment.trials(Size(2, 6, 60))
    trials = [one for one in every if one.linker == "outbid" or one.given == "nothing"][:5]
    one, two, again = (
        without_seconds([row for those in rows_of(experiment.measure, trials, jobs=n) for row in those])
        for n in (1, 2, 1)
    )
    assert one == two == again
    assert len({json.dumps(row) for row in one}) == len(one)


def test_a_worker_that_is_killed_is_reported() -> None:
    with pytest.raises(ResourceError, match="fewer jobs"):
        list(rows_of(os._exit, [9, 9, 9], jobs=2))  # type: ignore[arg-type, list-item]


@pytest.mark.slow
def test_a_record_repeats_its_run(tmp_path: Path) -> None:
    first = ("experiment", "kappa", *TINY, "--where", "linker=nearest,plain", "--where", "kappa=0.1")
    succeed(*first, "-o", tmp_path / "a")
    succeed("experiment", "kappa", "--config", tmp_path / "a" / "kappa.csv.json", "-o", tmp_path / "b")
    a, b = (table(tmp_path / folder / "kappa.csv") for folder in "ab")
    assert without_seconds([*a]) == without_seconds([*b])
    assert len(a) == 3


def test_an_interrupted_run_keeps_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt(EXPERIMENTS["kappa"], 2, monkeypatch)
    (tmp_path / "kappa_summary.csv").write_text("of an earlier run")
    ended = run("experiment", "kappa", *TINY, "--where", "linker=nearest", "-o", tmp_path, "--overwrite")
    assert ended.exit_code == 130
    assert len(table(tmp_path / "kappa.csv")) == 2
    assert json.loads((tmp_path / "kappa.csv.json").read_text())["complete"] is False
    assert not (tmp_path / "kappa_summary.csv").exists()


def test_without_matplotlib_the_table_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*sys.modules]:
        if name.startswith("matplotlib") or name in ("outbid.viewers.panels", "outbid.viewers.plots"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    where = ("--where", "linker=nearest")
    done = succeed("experiment", "clutter", *TINY, *where, "-o", tmp_path)
    assert "pip install 'outbid[report]'" in done.stderr
    assert len(table(tmp_path / "clutter.csv")) == 5
    assert not (tmp_path / "clutter.png").exists()


@pytest.mark.slow
def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    where = ("--where", "linker=nearest", "--where", "kappa=0.1", "-o", tmp_path)
    assert_refused(run("experiment", "gold", "-o", tmp_path), 2, "no experiment 'gold'", "kappa")
    assert_refused(run("experiment", "kappa", "--where", "size=3", "-o", tmp_path), 2, "'size'", "kappa")
    assert_refused(run("experiment", "kappa", "--where", "kappa=7", "-o", tmp_path), 2, "0.05")
    assert run("experiment", "kappa", "--where", "kappa", "-o", tmp_path).exit_code == 2
    succeed("experiment", "kappa", *TINY, *where)
    before = (tmp_path / "kappa.csv").read_bytes()
    assert_refused(run("experiment", "kappa", *TINY, *where), 2, "kappa.csv exists", "--overwrite")
    assert (tmp_path / "kappa.csv").read_bytes() == before
    succeed("experiment", "kappa", *TINY, *where, "--overwrite")


@pytest.mark.smoke
def test_the_list_and_the_help_show_every_experiment() -> None:
    for shown in (run("experiment", "--list").stdout, run("experiment", "--help").stdout):
        assert [name for name in EXPERIMENTS if f"\n{name} " not in f"\n{shown}"] == []
        assert [name for name in PAPERS if f"\n{name} " not in f"\n{shown}"] == []
        assert shown.count("Takes ") == len(EXPERIMENTS) + len(PAPERS)


def test_json_has_no_nan() -> None:
    found = summary_of([{"kappa": 0.1, "seed": 0, "link_f1": np.nan}], ("kappa",))
    assert np.isnan(float(found[0]["link_f1"]))
    assert json.loads(json_of({"summary": found}))["summary"][0]["link_f1"] is None


def test_progress_is_reported() -> None:
    reported: list[tuple[int, int]] = []
    trials = [Trial(Scene(0.1), (0,))] * 3
    found = list(rows_of(lambda _: [], trials, progress=lambda done, total: reported.append((done, total))))
    assert (found, reported) == ([[]] * 3, [(0, 3), (1, 3), (2, 3), (3, 3)])
