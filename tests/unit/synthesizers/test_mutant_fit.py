"""The order *check, plan, charge, look*, and what of the data a release may not follow."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from understudy.data import Panel, Population
from understudy.errors import BudgetExceeded, ReleaseError
from understudy.privacy.budget import Guarantee
from understudy.privacy.grant import Grant
from understudy.privacy.ledger import Ledger
from understudy.privacy.private_series import PrivateSeries
from understudy.synthesizers import METHODS, Release
from understudy.synthesizers.base import Progress
from understudy.synthesizers.contract.checks import BUDGET, fit, new_ledger
from understudy.synthesizers.contract.panels import make_panel, plain_schema, rich_schema
from understudy.synthesizers.spectral import Spectral


def test_a_ledger_that_refuses_is_asked_before_any_series_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    panel, ledger = make_panel(plain_schema()), new_ledger()
    Spectral().fit(panel, ledger)
    looks: list[str] = []
    genuine = Panel.__getattribute__

    def listening(self: Panel, name: str) -> object:
        if name in ("values", "static", "lengths", "unit"):
            looks.append(name)
        return genuine(self, name)

    monkeypatch.setattr(Panel, "__getattribute__", listening)
    with pytest.raises(BudgetExceeded):
        Spectral().fit(panel, ledger, guarantee=BUDGET)
    assert looks == []
    Spectral().fit(panel, new_ledger())
    assert looks  # the listener hears a fit that is paid for


def test_a_fit_that_crashes_stays_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(method: Spectral, private: PrivateSeries, grant: Grant, progress: Progress) -> dict[str, np.ndarray]:
        raise MemoryError

    monkeypatch.setattr(Spectral, "learn", crash)
    ledger = new_ledger()
    with pytest.raises(MemoryError):
        Spectral().fit(make_panel(plain_schema()), ledger)
    assert ledger.remaining().epsilon == 0
    with pytest.raises(BudgetExceeded):
        Spectral().fit(make_panel(plain_schema()), ledger, guarantee=BUDGET)


@pytest.mark.parametrize("num_units", [0, 3, 40])
def test_what_a_method_compares_with_is_the_declared_population(
    num_units: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[int] = []
    genuine = Spectral.learn

    def listening(method: Spectral, private: PrivateSeries, grant: Grant, progress: Progress) -> dict[str, np.ndarray]:
        heard.append(private.population)
        return genuine(method, private, grant, progress)

    monkeypatch.setattr(Spectral, "learn", listening)
    release = fit(Spectral(), make_panel(plain_schema(population=Population(3000)), num_units))
    assert heard == [3000]
    assert release.schema.population.size == release.certificate.population_size == 3000


def test_the_grid_follows_the_declared_population_and_not_the_units_that_are_there() -> None:
    """Few units in a population declared large get the fine grid that the declared number affords."""
    cells = [_cells(population, 5) for population in (500, 50_000)]
    assert cells[0] != cells[1]
    assert cells[1] == _cells(50_000, 60)


def _cells(population: int, num_units: int) -> int:
    release = fit(Spectral(), make_panel(plain_schema(population=Population(population)), num_units))
    return len(release.arrays["cumulative"])


def test_contexts_that_series_have_of_their_own_stay_behind() -> None:
    panel = make_panel(rich_schema(), own_context=True)
    release = fit(Spectral(), panel)
    assert release.public_context is None
    assert panel.context is not None
    for array in release.arrays.values():
        assert not np.isin(panel.context[0].astype(np.float64), np.asarray(array, dtype=np.float64)).all()


@pytest.mark.parametrize("name", ["model.safetensors", "release.json", "schema.toml"])
def test_a_whole_file_of_another_release_is_refused(name: str, tmp_path: Path) -> None:
    panel = make_panel(plain_schema())
    fit(METHODS["spectral"](), panel).save(tmp_path / "one")
    fit(Spectral(max_splits=1), make_panel(plain_schema(population=Population(4000)))).save(tmp_path / "other")
    shutil.copy(tmp_path / "other" / name, tmp_path / "one" / name)
    with pytest.raises(ReleaseError, match="damaged"):
        Release.load(tmp_path / "one")


def test_a_population_that_was_to_be_bought_stays_unknown_where_nothing_is_bought() -> None:
    schema = plain_schema(population=Population(count_epsilon=0.1))
    release = METHODS["independent"]().fit(make_panel(schema, 120), Ledger.in_memory(Guarantee(1.0, 1e-6)))
    assert release.schema.population == schema.population
    assert release.certificate.population_size is None
