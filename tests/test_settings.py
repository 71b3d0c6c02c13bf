"""Settings are declared once: options, checks and the reference agree with the fields."""

import re
from typing import Any

import click
import pytest

from outbid import DetectionSettings, SettingsError, TrackingSettings
from outbid.cli.detect import detect
from outbid.cli.track import track
from outbid.settings.costs import COSTS
from outbid.settings.declare import AXES, declared_in
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
