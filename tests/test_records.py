"""Every record states its origin; one that is older than the behaviour it stands for is named."""

import json
from pathlib import Path

import pytest
import records
import renew
from records import RECORDS, Record, changed_sources, git, origins

CODE = '"""A module."""\n\nLIMIT = 3  # frames\n'
RECORD = Record("a", Path("record.json"), ("code/*.py", "code/*.cu"), "make a")


@pytest.fixture
def scene(tmp_path: Path) -> Path:
    """A repository with one source of each kind, and a record measured at its only commit."""
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "a.py").write_text(CODE)
    (tmp_path / "code" / "a.cu").write_text("int x; // one\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "first")
    commit = git(tmp_path, "rev-parse", "HEAD").stdout.strip()
    (tmp_path / "record.json").write_text(f'{{"commit": "{commit}", "date": "2026-01-02"}}')
    return tmp_path


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_every_record_states_its_origin_and_stands_for_sources_that_exist(record: Record) -> None:
    assert origins(record)
    for pattern in record.sources:
        assert list(records.REPOSITORY.glob(pattern)), pattern


def test_the_table_of_what_measures_names_every_program_and_record() -> None:
    folder = records.REPOSITORY / records.BENCH
    table = (folder / "README.md").read_text("utf-8")
    programs = [path.name for pattern in ("*.py", "benchmarks/bench_*.py") for path in folder.glob(pattern)]
    assert [name for name in (*programs, "fuzz", "torture") if name not in table] == []
    for record in RECORDS:
        assert f"`{record.path.relative_to(records.BENCH).as_posix()}`" in table
        assert record.command.replace("tests/bench/", "") in table


def test_no_record_holds_a_fault() -> None:
    """Those of the GPU and of the night are looked at with their records."""
    folder = records.REPOSITORY / records.BENCH
    paths = [folder / f"{name}_record.json" for name in ("fuzz", "torture", "certify")]
    fuzz, torture, certify = (json.loads(path.read_text("utf-8")) for path in paths)
    assert [*fuzz["finds"], *torture["finds"]] == []
    assert [name for name in certify["outcomes"] if "wrong" in name] == []


@pytest.mark.parametrize(
    ("name", "text", "changed"),
    [
        ("a.py", CODE, []),
        ("a.py", '"""Reworded."""\n\nLIMIT = (\n    3\n)  # a limit\n', []),
        ("a.py", CODE.replace("3", "4"), ["code/a.py"]),
        ("a.cu", "int  x; /* two */\n", []),
        ("a.cu", "int y;\n", ["code/a.cu"]),
        ("b.py", CODE, []),  # git does not know it yet
    ],
)
def test_only_behaviour_makes_a_record_older(scene: Path, name: str, text: str, changed: list[str]) -> None:
    (scene / "code" / name).write_text(text)
    assert changed_sources(RECORD, scene) == changed


def test_a_removed_source_makes_it_older(scene: Path) -> None:
    (scene / "code" / "a.py").unlink()
    assert changed_sources(RECORD, scene) == ["code/a.py"]


@pytest.mark.parametrize(("text", "changed"), [(CODE, []), (CODE.replace("3", "4"), ["code/moved.py"])])
def test_a_source_that_moved_is_compared_with_itself(scene: Path, text: str, changed: list[str]) -> None:
    (scene / "old").mkdir()
    (scene / "old" / "a.py").write_text(CODE)
    git(scene, "add", "old")
    git(scene, "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "second")
    commit = git(scene, "rev-parse", "HEAD").stdout.strip()
    (scene / "record.json").write_text(f'{{"commit": "{commit}", "date": "2026-01-02"}}')
    git(scene, "mv", "old/a.py", "code/moved.py")
    (scene / "code" / "moved.py").write_text(text)
    assert changed_sources(RECORD, scene) == changed


def test_a_commit_that_was_rebased_away_is_replaced_by_the_last_one_of_its_day(scene: Path) -> None:
    (scene / "record.json").write_text(f'{{"commit": "{"0" * 40}", "date": "2026-01-02"}}')
    assert changed_sources(RECORD, scene) == []
    (scene / "code" / "a.py").write_text(CODE.replace("3", "4"))
    assert changed_sources(RECORD, scene) == ["code/a.py"]


def test_an_older_record_is_named_with_the_command_that_renews_it(
    scene: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(records, "changed_sources", lambda record: changed_sources(record, scene))
    monkeypatch.setattr(records, "RECORDS", (RECORD,))
    with pytest.raises(SystemExit, match="False"):
        records.main()
    (scene / "code" / "a.cu").write_text("int y;\n")
    with pytest.raises(SystemExit):
        records.main()
    assert "record.json: older than the code (code/a.cu). Run `make a`." in capsys.readouterr().err


def test_a_page_states_the_commit_of_its_record_and_whether_it_is_older(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = "<!-- table: certified -->\nrows\n<!-- /table -->"
    records.sentence_of.cache_clear()
    monkeypatch.setattr(records, "changed_sources", lambda _: ["tracker/assignment/a.py"])
    assert "older than the code: 1 sources have changed since (`make certify`" in renew.dated(page)
    records.sentence_of.cache_clear()
    monkeypatch.setattr(records, "changed_sources", lambda _: [])
    assert "older" not in renew.dated(page)
    assert origins(records.record_named("assignments"))[0][0][:10] in renew.dated(page)
    records.sentence_of.cache_clear()
