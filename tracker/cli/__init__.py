"""The command `outbid`: the group that all commands join; one command a file, found by its entry point."""

from __future__ import annotations

import click

from .terminal import Commands


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "OUTBID"},
    no_args_is_help=True,
    help="""Track particles in 3D and 2D microscopy by optimal assignment.

    \b
    Examples:
      outbid detect movie.tif -o spots.csv
      outbid track spots.csv -o tracks.csv
      outbid score tracks.csv truth.csv
      outbid convert tracks.csv tracks.parquet
      outbid track -h
    """,
    epilog="""\b
    Every option can also be set in the environment (OUTBID_TRACK_MAX_DISTANCE=5).
    Completion of commands and options with the tab key, for bash (or zsh, fish):
      eval "$(_OUTBID_COMPLETE=bash_source outbid)"
    """,
)
@click.version_option(package_name="outbid")
def main() -> None:
    """Run the command `outbid` with the arguments of the process."""
