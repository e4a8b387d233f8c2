"""Whole runs of several organisations in one process: what comes out, what is charged, what is signed."""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.unit.federated.banks import FINITE, SMALL, UNITS, Banks, banks, contract, held, sines, usual
from tests.unit.synthesizers.vflgan_ts import test_partition as mixed
from understudy.data import Population, PrivacyUnit
from understudy.errors import BudgetExceeded, InputError
from understudy.privacy.certificate import ADJACENCIES, verify
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.synthesizers.release import Release
from understudy.synthesizers.vflgan_ts.method import VFLGANTS, _Nearest
from understudy.synthesizers.vflgan_ts.protocol import Frame, PartySide, converse
from understudy.training.plan import TRAINING

SIDES = ("aggregator", "bank", "shop")
ALL_DRAWN = replace(SMALL, batch=UNITS)  # an accountant is quick where nothing is sampled
SOUND = VFLGANTS(mode="sound", scale="bounds", recipe=ALL_DRAWN)


class Killed(BaseException):
    """Stands for a signal that nothing in the program can catch."""


def killed_at(exchange: int) -> Callable[[str, Frame], None]:
    """Stops everything at one exchange of a run: frames were sent, answers were not taken."""
    counted = itertools.count()

    def watch(name: str, frame: Frame) -> None:
        if next(counted) == exchange:
            raise Killed

    return watch


def weights(folder: Path, side: str = "aggregator") -> dict[str, np.ndarray]:
    return Release.load(folder / side / "release").arrays


def charged(folder: Path, side: str) -> list[int]:
    """Executed iterations of every run that a side's ledger knows."""
    file = folder / side / "ledger"
    return [entry.executed.get(TRAINING, 0) for entry in Ledger.open(file).entries()] if file.exists() else []


def test_a_run_gives_everybody_the_same_release_signed_by_all(tmp_path: Path) -> None:
    usual(tmp_path, sines()).run()
    first, *others = (Release.load(tmp_path / side / "release") for side in SIDES)
    for other in others:
        assert other.certificate == first.certificate
        assert all(np.array_equal(first.arrays[name], other.arrays[name]) for name in first.arrays)
    checks = verify(first.certificate, tmp_path / "bank" / "release")
    assert [check.name for check in checks if not check.ok] == []
    assert {"party bank", "party shop"} <= {check.name for check in checks}
    assert first.sample(5, rng=np.random.default_rng(0)).num_series == 5


@pytest.mark.parametrize("num_parties", [2, 4])
def test_parties_apart_train_what_one_process_trains(
    tmp_path: Path, num_parties: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for the checkpoint that one process chooses by real rows in a mode without a guarantee."""
    monkeypatch.setattr(_Nearest, "restore", lambda self: None)
    panel = sines(num_parties=num_parties)
    made = usual(tmp_path, panel, alignment="as-given", noise_seed=None)
    made.run()
    ledger = Ledger.in_memory(made.contract.guarantee)
    whole = made.contract.method.fit(panel, ledger, guarantee=made.contract.guarantee)
    apart = weights(tmp_path)
    assert {*apart, "awd"} == set(whole.arrays)  # the distances by which one process chooses a checkpoint
    assert all(np.array_equal(apart[name], whole.arrays[name]) for name in apart)


@pytest.mark.parametrize("mode", ["plain", "sound"])
def test_windows_are_cut_by_every_party_and_protected_by_customer(tmp_path: Path, mode: str) -> None:
    """As one process does it; in `sound` a customer shows one window in an iteration, however many there are."""
    panel, recipe = sines(), SMALL if mode == "plain" else ALL_DRAWN
    method = VFLGANTS(mode=mode, scale="bounds", recipe=recipe, window_steps=20, window_stride=10)
    made = usual(tmp_path, panel, alignment="as-given", noise_seed=None, method=method)
    drawn: list[int] = []
    made.run(lambda name, frame: drawn.extend([len(frame.tensors["rows"])] if "rows" in frame.tensors else []))
    release = Release.load(tmp_path / "bank" / "release")
    assert release.sample(3).num_steps == 20
    assert release.schema.unit.max_series == 3
    assert release.certificate.unit == panel.schema.unit.sentence()
    if mode == "sound":
        assert set(drawn) == {UNITS}  # one of its three windows each
        whole = method.spending_plan(panel.schema, FINITE)
        assert release.certificate.epsilon == pytest.approx(whole.epsilon())
    else:
        ledger = Ledger.in_memory(made.contract.guarantee)
        alone = method.fit(panel, ledger, guarantee=made.contract.guarantee).schema
        assert release.schema == alone


def test_rows_of_different_orders_and_customers_are_brought_together(tmp_path: Path) -> None:
    panel = sines()
    both = panel.take_units(np.arange(5, 115))
    agreed = contract(panel.schema)
    tables = {
        "bank": held(panel, "bank").take_units(np.random.default_rng(1).permutation(115)),
        "shop": held(panel, "shop").take_units(np.arange(119, 4, -1)),
    }
    banks(tmp_path / "apart", agreed, tables).run()
    banks(tmp_path / "alike", agreed, {name: held(both, name) for name in agreed.parties}).run()
    apart, alike = weights(tmp_path / "apart"), weights(tmp_path / "alike")
    assert all(np.array_equal(apart[name], alike[name]) for name in apart)


def test_every_side_charges_the_whole_run_before_values_are_used(tmp_path: Path) -> None:
    made = usual(tmp_path, sines(), method=SOUND, noise_seed=7)
    first_features: list[list[int]] = []

    def watch(name: str, frame: Frame) -> None:
        if frame.stage == "discriminate" and "real" in frame.tensors and not first_features:
            first_features.extend([charged(tmp_path, side) for side in SIDES])

    made.run(watch)
    assert first_features == [[SMALL.iterations]] * 3  # counted before the first features left
    for side in SIDES:
        (entry,) = Ledger.open(tmp_path / side / "ledger").entries()
        assert entry.plan == made.contract.plan
        assert entry.epsilon <= FINITE.epsilon


def test_the_certificate_of_a_sound_run_is_private_and_says_what_alignment_told(tmp_path: Path) -> None:
    usual(tmp_path, sines(), method=SOUND).run()
    certificate = Release.load(tmp_path / "bank" / "release").certificate
    assert certificate.is_private
    assert 0 < certificate.epsilon <= FINITE.epsilon
    assert certificate.executed[TRAINING] == SMALL.iterations
    assert any("private set intersection" in sentence for sentence in certificate.threat_model)
    assert any("Against a party" in sentence for sentence in certificate.threat_model)
    names = [entry["ledger"]["name"].split(" (")[0] for entry in certificate.parties]
    assert names == ["people of bank", "people of shop"]


def test_seeded_noise_is_called_not_private(tmp_path: Path) -> None:
    usual(tmp_path, sines(), method=SOUND, noise_seed=7).run()
    assert "reproducible noise" in Release.load(tmp_path / "bank" / "release").certificate.status


def test_one_test_seed_gives_one_result_and_another_another(tmp_path: Path) -> None:
    for name, seed in (("one", 7), ("again", 7), ("other", 8)):
        usual(tmp_path / name, sines(), method=SOUND, noise_seed=seed).run()
    one, again, other = (weights(tmp_path / name) for name in ("one", "again", "other"))
    assert all(np.array_equal(one[name], again[name]) for name in one)
    assert not all(np.array_equal(one[name], other[name]) for name in one)


def test_a_run_killed_at_any_exchange_resumes_to_the_same_release(tmp_path: Path) -> None:
    panel = sines()
    usual(tmp_path / "whole", panel, checkpoint_every=2).run()
    expected = weights(tmp_path / "whole")
    for exchange in (5, 33, 58, 83):  # while aligning, early and late in training, while signing
        folder = tmp_path / f"killed-{exchange}"
        with pytest.raises(Killed):
            usual(folder, panel, checkpoint_every=2).run(killed_at(exchange))
        usual(folder, panel, checkpoint_every=2).run()
        found = weights(folder)
        assert all(np.array_equal(found[name], expected[name]) for name in expected), exchange
        assert [len(charged(folder, side)) for side in SIDES] == [1, 1, 1]


def test_iterations_lost_in_a_crash_are_not_given_back(tmp_path: Path) -> None:
    with pytest.raises(Killed):
        usual(tmp_path, sines(), method=SOUND, checkpoint_every=4).run(killed_at(56))
    before = {side: charged(tmp_path, side) for side in SIDES}
    assert all(0 < count[0] <= SMALL.iterations for count in before.values())
    usual(tmp_path, sines(), method=SOUND, checkpoint_every=4).run()
    for side in SIDES:
        assert charged(tmp_path, side) == [SMALL.iterations]
    certificate = Release.load(tmp_path / "bank" / "release").certificate
    assert certificate.executed[TRAINING] == SMALL.iterations
    assert certificate.is_private
    losses = (tmp_path / "aggregator" / "state" / "losses.json").read_text()
    assert len(losses.split(",")) < SMALL.iterations  # the model saw fewer than were paid for


def test_a_run_whose_iterations_are_all_lost_says_so(tmp_path: Path) -> None:
    with pytest.raises(Killed):
        usual(tmp_path, sines(), method=SOUND, checkpoint_every=100).run(killed_at(56))
    with pytest.raises(InputError, match="none is left"):
        usual(tmp_path, sines(), method=SOUND, checkpoint_every=100).run()


def test_noise_differs_after_a_resume_and_its_state_is_nowhere(tmp_path: Path) -> None:
    panel = sines()
    for name in ("one", "two"):
        with pytest.raises(Killed):
            usual(tmp_path / name, panel, method=SOUND, checkpoint_every=2).run(killed_at(56))
    checkpoints = sorted((tmp_path / "one" / "bank" / "state" / "checkpoints").rglob("rest.safetensors"))
    assert checkpoints
    assert all(b"randomness" not in path.read_bytes() for path in checkpoints)
    plain = usual(tmp_path / "plain", panel, checkpoint_every=2)
    plain.run()
    kept = sorted((tmp_path / "plain" / "bank" / "state" / "checkpoints").rglob("rest.safetensors"))
    assert all(b"randomness" in path.read_bytes() for path in kept)  # the control: nothing is protected


def test_local_rows_are_noised_once_and_kept(tmp_path: Path) -> None:
    method = VFLGANTS(mode="local", scale="bounds", recipe=SMALL)
    with pytest.raises(Killed):
        usual(tmp_path, sines(), method=method, checkpoint_every=2).run(killed_at(56))
    kept = (tmp_path / "bank" / "state" / "rows.safetensors").read_bytes()
    usual(tmp_path, sines(), method=method, checkpoint_every=2).run()
    assert (tmp_path / "bank" / "state" / "rows.safetensors").read_bytes() == kept
    certificate = Release.load(tmp_path / "bank" / "release").certificate
    assert certificate.is_private
    assert certificate.adjacency == ADJACENCIES["values"]


def test_what_was_bought_and_lost_is_not_bought_twice(tmp_path: Path) -> None:
    method = VFLGANTS(mode="plain", recipe=SMALL)
    with pytest.raises(Killed):
        usual(tmp_path, sines(), method=method).run(killed_at(30))
    (tmp_path / "bank" / "state" / "facts.safetensors").unlink()
    with pytest.raises(InputError, match="'marginals' was bought and lost in a crash"):
        usual(tmp_path, sines(), method=method).run()


def _refused(made: Banks, folder: Path, match: str) -> str:
    with pytest.raises(InputError, match=match) as caught:
        made.run()
    assert [charged(folder, side) for side in SIDES] == [[], [], []]
    return str(caught.value)


def test_customers_without_overlap_are_refused_uncharged(tmp_path: Path) -> None:
    panel = sines(240)
    agreed = contract(panel.schema)
    tables = {
        "bank": held(panel, "bank").take_units(range(120)),
        "shop": held(panel, "shop").take_units(range(120, 240)),
    }
    told = _refused(banks(tmp_path, agreed, tables), tmp_path, "No entity is known to all parties")
    assert "customer" not in told


def test_too_few_common_customers_are_refused_uncharged(tmp_path: Path) -> None:
    panel = sines(200)
    tables = {
        "bank": held(panel, "bank").take_units(range(120)),
        "shop": held(panel, "shop").take_units(range(80, 200)),
    }
    _refused(banks(tmp_path, contract(panel.schema), tables), tmp_path, "fewer than 100 units")
    allowed = contract(panel.schema, few_units="a trial")
    banks(tmp_path / "allowed", allowed, tables).run()
    assert Release.load(tmp_path / "allowed" / "bank" / "release").certificate.overrides["few_units"] == "a trial"


def test_tables_of_different_sizes_are_refused_if_nobody_aligns_them(tmp_path: Path) -> None:
    panel = sines()
    agreed = contract(panel.schema, alignment="as-given")
    tables = {"bank": held(panel, "bank"), "shop": held(panel, "shop").take_units(range(110))}
    with pytest.raises(InputError, match="different numbers of rows") as caught:
        banks(tmp_path, agreed, tables).run()
    assert "110" not in str(caught.value)


@pytest.mark.parametrize("changed", ["schema", "recipe", "guarantee"])
def test_a_party_that_means_another_run_is_refused_uncharged(tmp_path: Path, changed: str) -> None:
    panel = sines()
    made, agreed = usual(tmp_path, panel), contract(panel.schema)
    other = {
        "schema": replace(agreed, schema=replace(panel.schema, name="sine-6b")),
        "recipe": replace(agreed, method=replace(agreed.method, recipe=replace(SMALL, clipping_norm=2.0))),
        "guarantee": replace(agreed, guarantee=replace(agreed.guarantee, delta=1e-7)),
    }[changed]
    made.members["shop"] = replace(made.members["shop"], contract=other)
    _refused(made, tmp_path, "'shop': the contract of this run is expected")


def test_what_only_one_process_can_do_is_refused(tmp_path: Path) -> None:
    schema, method = sines().schema, VFLGANTS(mode="plain", scale="bounds", recipe=SMALL)
    with pytest.raises(InputError, match=r"window_steps: 1 to time\.steps = 40"):
        contract(schema, method=replace(method, window_steps=41))
    one_party = replace(schema, channels=tuple(replace(channel, party="bank") for channel in schema.channels))
    schemas = {
        "two parties or more": one_party,
        "one series per unit": replace(schema, unit=replace(schema.unit, max_series=2)),
        "series of one length": replace(schema, time=replace(schema.time, min_steps=5)),
        "a declared size": replace(schema, population=Population(count_epsilon=1.0)),
        "entities with a column of ids": replace(schema, unit=PrivacyUnit()),
    }
    for says, other_schema in schemas.items():
        with pytest.raises(InputError, match=says):
            contract(other_schema, method=method)


def test_a_spent_ledger_is_refused_before_anybody_is_asked(tmp_path: Path) -> None:
    panel = sines()
    usual(tmp_path, panel, method=SOUND).run()
    again = usual(tmp_path, panel, method=SOUND, name="second")
    with pytest.raises(BudgetExceeded):
        again.members["bank"].account.check(again.contract)


def test_a_party_that_sends_what_is_not_a_number_stops_the_run(tmp_path: Path) -> None:
    made = usual(tmp_path, sines())
    sides = {name: member.side() for name, member in made.members.items()}

    def damaged(side: PartySide) -> PartySide:
        frame = next(side)
        while True:
            if frame.stage == "discriminate":
                frame = Frame(frame.iteration, frame.stage, {n: t * torch.nan for n, t in frame.tensors.items()})
            frame = side.send((yield frame))

    with pytest.raises(InputError, match=r"'shop'.*not finite"):
        converse(sides | {"shop": damaged(sides["shop"])}, made.aggregator.side())
    assert [len(charged(tmp_path, side)) for side in SIDES] == [1, 1, 1]  # what was charged stays charged


def test_labels_gaps_and_static_columns_of_several_parties_come_out(tmp_path: Path) -> None:
    method = VFLGANTS(mode="plain", recipe=SMALL)
    agreed = contract(mixed.schema(), method=method, alignment="as-given")
    banks(tmp_path, agreed, {name: mixed.held(mixed.panel(), name) for name in agreed.parties}).run()
    release = Release.load(tmp_path / "bank" / "release")
    drawn = release.sample(50, label="y", rng=np.random.default_rng(0))
    assert set(drawn.label.tolist()) == {1}  # type: ignore[union-attr]
    assert np.isnan(drawn.values[:, :, 1:3]).any()
    assert not np.isnan(drawn.values[:, :, [0, 3]]).any()
    assert drawn.static.shape == (50, 3)


def test_a_secure_source_is_used_unless_a_seed_was_agreed(tmp_path: Path) -> None:
    agreed = contract(sines().schema, method=SOUND)
    assert agreed.noise("bank").is_secure
    seeded = replace(agreed, noise_seed=3)
    assert not seeded.noise("bank").is_secure
    one, other = (seeded.noise(side).normal(1.0, 5) for side in ("bank", "shop"))
    assert not np.array_equal(one, other)
    assert isinstance(agreed.noise("bank"), NoiseSource)
    assert math.isinf(contract(sines().schema).guarantee.epsilon)
