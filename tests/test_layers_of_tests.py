"""The layers of the suite: every test and module has one, a change touches those that it can break."""

import subprocess
from pathlib import Path

import layers
import pytest
from checkout import REPOSITORY, git_files
from layers import LAYERS, layer_of_test, slice_of_cases, touched_layers


def test_every_test_file_and_every_stated_name_belongs_to_a_layer() -> None:
    stems = [path.stem for path in git_files("tests/test_*.py")]
    assert {layer_of_test(stem) for stem in stems} == {layer.name for layer in LAYERS}
    names = [stem.removeprefix("test_") for stem in stems]
    words = tuple(word for layer in LAYERS for word in layer.tests.split())
    assert [name for name in names if not name.startswith(words)] == [], "add it to tests/layers.py"
    unused = [w for layer in LAYERS for w in layer.tests.split() if not any(n.startswith(w) for n in names)]
    assert unused == []


def test_every_stated_module_is_there() -> None:
    for layer in LAYERS:
        for word in set(layer.modules.split()) - {"outbid"}:
            folder = {"simulate": "", "viewers": "", "data": ""}.get(word, "tracker/")
            path = folder + word.replace(".", "/")
            found = git_files(f"{path}.py", f"{path}/*.py", f"{path}_*.py")
            assert found, word


@pytest.mark.parametrize(
    ("changed", "touched"),
    [
        ("README.md", {"house"}),
        ("viewers/layers.py", {"commands", "windows"}),
        ("viewers/napari.yaml", {"windows"}),
        ("tests/test_gating.py", {"gated"}),
        ("tests/hostile/a.bin", {"formats"}),
        ("tests/whole_run.json", set()),
        ("tests/conftest.py", {layer.name for layer in LAYERS}),
        ("tracker/scoring/links.py", {"large", "commands", "windows"}),
        ("tracker/removed_long_ago.py", {"gated"}),
    ],
)
def test_a_change_touches_what_imports_it(changed: str, touched: set[str]) -> None:
    pytest.importorskip("grimp", reason="import-linter is not installed: pip install 'outbid[lint]'")
    assert touched_layers([changed]) >= touched
    if touched != {"gated"}:
        assert touched_layers([changed]) == touched


def test_a_kernel_of_assignment_touches_all_that_links() -> None:
    pytest.importorskip("grimp", reason="import-linter is not installed: pip install 'outbid[lint]'")
    changed = touched_layers(["tracker/assignment/bid_and_augment_cpu.py"])
    assert changed >= {"assignment", "learned", "gated", "large", "commands", "windows"}
    assert not changed & {"house", "formats"}


def test_a_support_file_touches_the_tests_that_import_it() -> None:
    assert touched_layers(["tests/partitions.py"]) == {"house", "learned"}
    assert touched_layers(["tests/napari_window.py"]) >= {"windows"}
    assert touched_layers(["tests/bench/fuzz/judge.py"]) == {"house", "formats"}
    assert touched_layers(["tests/bench/accuracy/run.py"]) == {"house"}


def test_without_a_record_or_its_commit_everything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = {layer.name for layer in LAYERS}
    monkeypatch.setattr(layers, "RECORD", tmp_path / "none.json")
    assert layers.push_layers()[0] == every
    lost = REPOSITORY / "tests" / "lost.json"
    monkeypatch.setattr(layers, "RECORD", tmp_path / lost.name)
    (tmp_path / lost.name).write_text('{"commit": "0123456789012345678901234567890123456789"}')
    assert layers.push_layers() == (
        every, "The commit of the last whole run, 0123456789, is not here: all layers run.",
    )  # fmt: skip


def test_changed_files_are_those_of_commits_and_of_the_working_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*words: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        done = subprocess.run(["git", *who, *words], cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    git("init", "--quiet")
    (tmp_path / "kept").write_text("1")
    (tmp_path / "changed").write_text("1")
    git("add", ".")
    git("commit", "--quiet", "-m", "one")
    first = git("rev-parse", "HEAD")
    (tmp_path / "committed").write_text("1")
    git("add", ".")
    git("commit", "--quiet", "-m", "two")
    (tmp_path / "changed").write_text("2")
    (tmp_path / "new").write_text("1")
    monkeypatch.setattr(layers, "REPOSITORY", tmp_path)
    assert layers.changed_since(first) == ["changed", "committed", "new"]


def test_slices_of_successive_seeds_cover_every_case() -> None:
    for count in (1, 5, 1088):
        seen = set().union(*(slice_of_cases(count, seed) for seed in range(count)))
        assert seen == set(range(count))
        assert len(slice_of_cases(count, 3)) == min(count, layers.CASES)
