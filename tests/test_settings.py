"""Settings are declared once: options, checks and the reference agree with the fields."""

import re
from pathlib import Path
from typing import Any

import click
import pytest
from commands import assert_refused, run

from outbid import DetectionSettings, SettingsError, TrackingSettings
from outbid.cli.detect import detect
from outbid.cli.track import track
from outbid.settings.costs import COSTS
from outbid.settings.declare import AXES, bound_by, declared_in
from outbid.simulate.cli import simulate
from outbid.simulate.settings import SimulationSettings


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("settings", "command"),
    [(TrackingSettings, track), (DetectionSettings, detect), (SimulationSettings, simulate)],
)
def test_every_setting_is_an_option_with_its_default(settings: type, command: click.Command) -> None:
    for name, one in declared_in(settings).items():
        option = next(option for option in command.params if option.name == name)
        if one.setting.choices:
            assert tuple(option.type.choices) == one.setting.choices  # type: ignore[attr-defined]
        plain = one.default is not None and one.kind in ("int", "float", "bool", AXES)
        if plain and (settings, name) != (DetectionSettings, "spacing"):  # as the movie states
            assert option.get_default(click.Context(command)) == one.default
    assert declared_in(TrackingSettings)["cost"].setting.choices == tuple(COSTS)


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"max_gap": 0.5}, "max_gap is 0.5; it must be 0 or more, a whole number."),
        ({"spacing": (1, 0, 1)}, "spacing is (1, 0, 1); it must be three sizes above 0: z, y, x."),
    ],
)
def test_values_out_of_range_are_refused_in_a_sentence(values: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(said)):
        TrackingSettings(**values)


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"cost": "squared"}, "cost needs a max_distance"),
        ({"unmatched_cost": 2.0}, "unmatched_cost needs a max_distance"),
        ({"gap_distance": 2.0}, "gap_distance needs a max_distance"),
        ({"max_distance": 3.0, "merges": True}, "merges has no effect with max_distance"),
        ({"max_distance": 3.0, "fixed": {"noise": 0.1}}, "fixed has no effect with max_distance"),
        ({"max_distance": 3.0, "features": {"area": ""}}, "features has no effect with max_distance"),
    ],
)
def test_what_has_no_effect_beside_another_setting_is_refused(values: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        TrackingSettings(**values)


def test_the_rules_of_settings_stand_in_the_help_of_the_command() -> None:
    for name, one in bound_by(TrackingSettings, "max_distance").items():
        option = next(option for option in track.params if option.name == name)
        words = "Only without --max-distance." if one.setting.excludes else "Only with --max-distance."
        assert words in str(option.help)  # type: ignore[attr-defined]
    TrackingSettings(max_distance=3.0, divisions=False, features=None)  # which ask for nothing


@pytest.mark.parametrize(
    "option",
    [("--fixed", "noise=0.1"), ("--merges",), ("--divisions",), ("--features", "area")],
    ids=lambda option: option[0],
)
def test_the_command_names_the_option_that_has_no_effect(option: tuple[str, ...], tmp_path: Path) -> None:
    table = tmp_path / "a.csv"
    table.write_text("frame,y,x,area\n0,1,1,5\n1,1,2,5\n")
    done = run("track", table, "--max-distance", "3", *option)
    assert_refused(done, 2, f"{option[0]} has no effect with --max-distance")
