"""Running the commands in tests, and what a refusal looks like."""

from pathlib import Path

from click.testing import CliRunner, Result

from outbid.tracker.cli import main


def run(*arguments: object, env: dict[str, str] | None = None) -> Result:
    """Run `outbid` with these arguments."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments], env=env)


def track(path: Path, *options: str, distance: str = "5") -> Result:
    """Run `outbid track` on a file."""
    output = path.parent / "out" / "tracks.csv"
    output.parent.mkdir(exist_ok=True)
    return run("track", path, "-o", output, "--max-distance", distance, *options)


def assert_refused(done: Result, exit_code: int, *said: str) -> None:
    """One line on stderr that holds all of `said`, nothing on stdout."""
    assert done.exit_code == exit_code, done.output
    assert done.stdout == ""
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1
    for part in said:
        assert part in done.stderr
