"""Holder and evolver in two places: only ballots and proposals travel, and the charge is the holder's."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.unit.synthesizers.pets.recording import listening
from tests.unit.synthesizers.pets.stand_in import Counter, use_stand_in
from understudy.data import Panel, PrivacyUnit
from understudy.errors import BudgetExceeded, DataError, InputError, MissingData
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.synthesizers import Release
from understudy.synthesizers.contract.checks import BUDGET, expect_valid, new_key
from understudy.synthesizers.contract.panels import make_panel, plain_schema, rich_schema, shared_context
from understudy.synthesizers.pets import PETS, two_places
from understudy.synthesizers.pets.recipe import Recipe
from understudy.synthesizers.pets.two_places import Message
from understudy.synthesizers.release import PUBLIC_CONTEXT

METHOD = PETS(recipe=Recipe(iterations=3, population=24, lookahead=2))
NOISE = NoiseSource.seeded(4)


@pytest.fixture(autouse=True)
def counter(monkeypatch: pytest.MonkeyPatch) -> Counter:
    return use_stand_in(monkeypatch)


def opened(panel: Panel, method: PETS = METHOD, noise: NoiseSource = NOISE) -> tuple[Message, Ledger]:
    ledger = Ledger.in_memory(BUDGET)
    return two_places.open_run(method, panel, ledger, BUDGET, noise), ledger


def proposed(ballot: Message) -> Message:
    """What the evolving side makes of the first ballot."""
    made = two_places.evolved(two_places.begin(ballot, "general"))
    assert isinstance(made, Message)
    return made


def travelled(message: Message, folder: Path) -> Message:
    """The message after a journey through a file."""
    file = folder / f"{len(list(folder.iterdir()))}.safetensors"
    message.save(file)
    return Message.load(file, message.kind)


def test_a_run_in_two_places_ends_in_a_release_that_cost_what_was_charged(tmp_path: Path) -> None:
    panel = make_panel(rich_schema())
    ballot, ledger = opened(panel, noise=NoiseSource.secure())
    state = two_places.begin(travelled(ballot, tmp_path), "general")
    rounds = 0
    while isinstance(made := two_places.evolved(state), Message):
        proposal = travelled(made, tmp_path)
        answered = two_places.answer(proposal, [panel], panel.schema, ledger, NoiseSource.secure())
        state = two_places.advance(travelled(state, tmp_path), travelled(answered, tmp_path))
        rounds += 1
    assert rounds == 3
    assert made.certificate.is_private
    assert made.certificate.executed["votes"] == 3
    assert len(ledger.entries()) == 1
    saved = made.save(tmp_path / "release", key=new_key())
    assert Release.load(tmp_path / "release").certificate == saved.certificate
    expect_valid(made.sample(40))


def test_a_vote_that_was_not_paid_for_is_refused() -> None:
    panel = make_panel(plain_schema())
    ballot, ledger = opened(panel)
    proposal = proposed(ballot)
    for left in (2, 1, 0):
        answered = two_places.answer(proposal, [panel], panel.schema, ledger, NOISE)
        assert answered.facts["left"] == left
    with pytest.raises(BudgetExceeded):
        two_places.answer(proposal, [panel], panel.schema, ledger, NOISE)


def test_a_proposal_can_not_make_a_unit_count_for_more() -> None:
    """Whatever comes from outside: the statistic's bound is the holder's, and one unit moves it by at most that."""
    schema = plain_schema(unit=PrivacyUnit(column="home", max_series=3))
    panel = make_panel(schema, 40)
    ballot, _ = opened(panel)
    honest = proposed(ballot)
    rng = np.random.default_rng(0)
    shape = honest.arrays["embeddings"].shape
    hostile = [
        {"embeddings": np.full(shape, 1e30, dtype=np.float32)},
        {"embeddings": np.full(shape, np.nan, dtype=np.float32)},
        {"lattice.step": np.full(shape[1], 1e-30, dtype=np.float32)},
        {"lattice.centre": 1e20 * rng.standard_normal(shape[1]).astype(np.float32)},
    ]
    for change in ({}, *hostile):
        proposal = replace(honest, arrays={**honest.arrays, **change})
        values = []
        for voters in (panel, panel.take_units(np.arange(1, 40))):
            _, ledger = opened(panel)
            with listening() as tape:
                two_places.answer(proposal, [voters], schema, ledger, NOISE)
            values.append(tape.sums[-1])
        assert values[0].moved(values[1]) <= 1


def test_a_lattice_of_other_dimensions_is_refused_whoever_is_there() -> None:
    """On one of length one, distances would not be exact, and one voter more could turn everybody's vote."""
    panel = make_panel(plain_schema(), 40)
    ballot, ledger = opened(panel)
    honest = proposed(ballot)
    short = {f"lattice.{name}": honest.arrays[f"lattice.{name}"][:1] for name in ("centre", "step")}
    narrow = {**short, "embeddings": honest.arrays["embeddings"][:, :1]}
    for change in (short, narrow):
        proposal = replace(honest, arrays={**honest.arrays, **change})
        for voters in (panel, panel.take_units([])):
            with pytest.raises(InputError, match="dimensions"):
                two_places.answer(proposal, [voters], panel.schema, ledger, NOISE)
    assert ledger.resume(ballot.facts["run"], noise=NOISE).remaining("votes") == 3


def test_a_proposal_can_not_choose_windows_that_protect_no_event() -> None:
    """One late row less would take away every window after the row before it."""
    event = PrivacyUnit(column="home", kind="event", event_steps=1)
    load = replace(plain_schema().channels[0], missing=True)
    schema = plain_schema(unit=event, channels=(load,), time=replace(plain_schema().time, min_steps=2))
    panel = make_panel(schema, 40)
    ballot, ledger = opened(panel, replace(METHOD, scale="bounds"))
    honest = proposed(ballot)
    options = {**honest.facts["options"], "window_steps": 1}
    with pytest.raises(InputError, match="min_steps"):
        two_places.answer(replace(honest, facts={**honest.facts, "options": options}), [panel], schema, ledger, NOISE)


def test_files_of_a_population_vote_one_after_another() -> None:
    method = replace(METHOD, scale="bounds")
    panel = replace(make_panel(plain_schema(), 90), unit_ids=np.arange(90))
    parts = [panel.take_units(np.arange(40)), panel.take_units(np.arange(40, 90))]
    quiet = NoiseSource.constant(0)
    ballot, ledger = opened(parts[0], method, quiet)
    proposal = proposed(ballot)
    in_parts, whole = (
        two_places.answer(proposal, panels, panel.schema, ledger, quiet).arrays["histogram"]
        for panels in (parts, [panel])
    )
    np.testing.assert_array_equal(in_parts, whole)
    with pytest.raises(DataError, match="two of them"):
        two_places.answer(proposal, [*parts, parts[0]], panel.schema, ledger, quiet)


@pytest.mark.parametrize("stored", [str, np.int32, np.uint64], ids=["text", "short", "unsigned"])
def test_a_unit_is_known_by_its_name_however_a_file_stores_it(stored: type) -> None:
    """A table stores names as text where the schema says so, a .npz file as whole numbers: the same person in both."""
    method = replace(METHOD, scale="bounds")
    panel = replace(make_panel(plain_schema(), 90), unit_ids=np.arange(90).astype(object))
    again = replace(panel, unit_ids=np.arange(90).astype(stored).astype(object))
    ballot, ledger = opened(panel, method, NoiseSource.constant(0))
    proposal = proposed(ballot)
    with pytest.raises(DataError, match="two of them"):
        two_places.answer(proposal, [panel, again], panel.schema, ledger, NoiseSource.constant(0))


def test_several_files_are_refused_where_the_table_is_needed_in_one_piece() -> None:
    ledger = Ledger.in_memory(BUDGET)
    with pytest.raises(InputError, match="one file"):
        two_places.open_run(METHOD, make_panel(plain_schema()), ledger, BUDGET, NOISE, whole=False)
    assert not ledger.entries()


def test_what_travels_does_not_depend_on_the_number_of_units() -> None:
    sizes = []
    for number in (3, 200):
        panel = make_panel(rich_schema(), number)
        ballot, ledger = opened(panel)
        answered = two_places.answer(proposed(ballot), [panel], panel.schema, ledger, NOISE)
        sizes.append([{name: array.shape for name, array in message.arrays.items()} for message in (ballot, answered)])
    assert sizes[0] == sizes[1]


def test_papers_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    panel = make_panel(plain_schema())
    ballot, ledger = opened(panel)
    state = two_places.begin(ballot, "general")
    proposal = two_places.evolved(state)
    assert isinstance(proposal, Message)
    answered = two_places.answer(proposal, [panel], panel.schema, ledger, NOISE)
    following = two_places.advance(state, answered)
    with pytest.raises(InputError, match="counted already"):
        two_places.advance(following, answered)
    with pytest.raises(InputError, match="another run"):
        two_places.advance(state, ballot)
    with pytest.raises(InputError, match="other candidates"):
        two_places.advance(state, replace(answered, arrays={"histogram": np.zeros(5)}))
    with pytest.raises(InputError, match="another module pack"):
        two_places.begin(replace(ballot, facts={**ballot.facts, "pack": "1" * 64}), "general")
    altered = replace(proposal, facts={**proposal.facts, "pack": "1" * 64})
    with pytest.raises(InputError, match="another module pack"):
        two_places.answer(altered, [panel], panel.schema, ledger, NOISE)
    proposal.save(tmp_path / "proposal")
    replace(proposal, facts={**proposal.facts, "run": True}).save(tmp_path / "altered")
    with pytest.raises(InputError, match="not a proposal"):
        Message.load(tmp_path / "altered", "proposal")
    with pytest.raises(InputError, match="not a ballot"):
        Message.load(tmp_path / "proposal", "ballot")
    with pytest.raises(InputError, match="exists already"):
        proposal.save(tmp_path / "proposal")
    with pytest.raises(MissingData):
        Message.load(tmp_path / "nothing", "ballot")


def test_a_ballot_shows_the_context_of_all_and_never_that_of_somebody() -> None:
    """Where each series has its own, the first one's would say which stretch somebody met; nobody's shape says so."""
    for number in (0, 1):
        shared, _ = opened(make_panel(rich_schema(), number))
        assert np.array_equal(shared.arrays[PUBLIC_CONTEXT], shared_context(rich_schema()))
    own, _ = opened(make_panel(rich_schema(), own_context=True))
    assert own.arrays[PUBLIC_CONTEXT].shape == (0, 0)


def test_public_series_are_the_first_candidates_where_both_sides_have_them(tmp_path: Path) -> None:
    public, other = tmp_path / "public.npy", tmp_path / "other.npy"
    np.save(public, 5 + np.random.default_rng(6).random((120, 8, 1)))
    np.save(other, np.zeros((120, 8, 1)))
    method = PETS(selection="votes", start="public", scale="bounds", public=str(public))
    panel = make_panel(plain_schema())
    ballot, ledger = opened(panel, method)
    for wrong in (None, other):
        with pytest.raises(InputError, match="other public series"):
            two_places.begin(ballot, "general", wrong)
    state = two_places.begin(ballot, "general", public)
    proposal = two_places.evolved(state)
    assert isinstance(proposal, Message)
    with pytest.raises(InputError, match="other public series"):
        two_places.answer(proposal, [panel], panel.schema, ledger, NOISE)
    answered = two_places.answer(proposal, [panel], panel.schema, ledger, NOISE, public=public)
    release = two_places.evolved(two_places.advance(state, answered))
    assert isinstance(release, Release)
    assert "pets public table" in release.certificate.public_inputs
    assert release.sample(10).values.mean() == pytest.approx(5.5, abs=1.0)
