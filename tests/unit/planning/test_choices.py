"""`--set`: options of a method by name, refused where name, part or type is wrong."""

import importlib
from dataclasses import dataclass, field, fields
from typing import ClassVar, Literal

import pytest

from understudy.data.simulators import households_schema
from understudy.errors import InputError
from understudy.planning.choices import chosen, configured
from understudy.synthesizers import METHODS, Synthesizer
from understudy.synthesizers.pets import PETS
from understudy.synthesizers.pets.recipe import BY_START


@dataclass(frozen=True)
class Part:
    shown: ClassVar = ("rounds",)
    rounds: int = 3
    size: int = 5


@dataclass(frozen=True, kw_only=True)
class Mine(Synthesizer):
    name: ClassVar[str] = "mine"
    kind: Literal["plain", "fancy"] = "plain"
    rate: float | None = None
    shares: tuple[float, ...] = ()
    pack: str = "general"
    part: Part = field(default_factory=Part)

    plan = learn = sample = None  # type: ignore[assignment]


def test_values_arrive_in_the_types_of_their_options() -> None:
    given = ["kind=fancy", "rate=0.5", "shares=[0.25, 0.75]", "pack=12", "part.rounds=7"]
    method = configured(Mine, given, window_steps=24)
    wanted = Mine(kind="fancy", rate=0.5, shares=(0.25, 0.75), pack="12", part=Part(rounds=7), window_steps=24)
    assert method == wanted


def test_a_part_is_changed_within_what_the_other_options_settled() -> None:
    method = configured(PETS, ["selection=votes", "start=public", "public=table.csv", "recipe.iterations=4"])
    assert isinstance(method, PETS)
    assert (method.settings.iterations, method.settings.neighbours) == (4, BY_START["public"].neighbours)


def test_the_last_of_two_values_counts() -> None:
    assert configured(Mine, ["rate=1", "rate=2"], rate=3.0) == Mine(rate=2.0)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("kind", "NAME=VALUE is expected"),
        ("colour=red", "one of kind, rate, shares, pack, part is expected, got 'colour'"),
        ("window_steps=3", "is expected, got 'window_steps'"),
        ("kind=other", "--set kind: Input should be 'plain' or 'fancy'; got 'other'"),
        ("rate=fast", "--set rate: Input should be a valid number"),
        ("part=3", "'part' has parts"),
        ("part.colour=3", "one of part.rounds is expected, got 'part.colour'"),
        ("part.rounds=2.5", "--set part.rounds: Input should be a valid integer"),
        ("rate.a=3", "'rate' of 'mine' has no parts"),
        ("kind=" + "[" * 10_000, "--set kind"),
    ],
)
def test_a_wrong_option_is_refused_by_name(given: str, told: str) -> None:
    with pytest.raises(InputError) as refusal:
        configured(Mine, [given])
    assert told in str(refusal.value)


def test_an_earlier_release_is_refused_by_a_method_that_can_not_continue_it() -> None:
    schema = households_schema(500)
    own, _ = chosen(schema, method="spectral", prior="march")
    assert own == METHODS["spectral"](prior="march")
    with pytest.raises(InputError, match="'independent' takes no prior"):
        chosen(schema, method="independent", prior="march")


@pytest.mark.parametrize("name", METHODS.own)
def test_no_method_offers_more_than_eight_options(name: str) -> None:
    """Those of its recipe included; the options of every method are on the command line itself."""
    kind = METHODS[name]
    names = {field.name for field in fields(kind) if field.init} - {"window_steps", "window_stride"}
    if "recipe" not in names:
        assert len(names) <= 8
        return
    recipe = importlib.import_module(f"understudy.synthesizers.{name.replace('-', '_')}.recipe").Recipe
    offered = getattr(recipe, "shown", [field.name for field in fields(recipe)])
    assert set(offered) <= {field.name for field in fields(recipe)}
    assert len(names - {"recipe"}) + len(offered) <= 8
