import copy
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

from understudy.errors import InputError
from understudy.privacy.noise import NoiseSource


@pytest.mark.parametrize("action", [copy.copy, copy.deepcopy, pickle.dumps])
def test_the_state_of_the_noise_cannot_be_copied_or_saved(action):
    with pytest.raises(TypeError, match="can't be copied or saved"):
        action(NoiseSource.secure())


def test_repr_shows_neither_seed_nor_state():
    assert "12345" not in repr(NoiseSource.seeded(12345))
    assert repr(NoiseSource.secure()).startswith("NoiseSource(AES")


def test_only_the_secure_source_calls_itself_secure():
    assert NoiseSource.secure().is_secure
    assert not NoiseSource.seeded(1).is_secure
    assert not NoiseSource.constant(0.0).is_secure
    assert "gives no protection" in NoiseSource.seeded(1).description


def test_equal_seeds_give_equal_noise_and_others_do_not():
    assert np.array_equal(NoiseSource.seeded(3).normal(1.0, 9), NoiseSource.seeded(3).normal(1.0, 9))
    assert not np.array_equal(NoiseSource.seeded(3).normal(1.0, 9), NoiseSource.seeded(4).normal(1.0, 9))
    assert not np.array_equal(NoiseSource.secure().normal(1.0, 9), NoiseSource.secure().normal(1.0, 9))


def test_seeded_noise_does_not_depend_on_how_it_is_asked_for_in_shape():
    assert np.array_equal(NoiseSource.seeded(3).normal(1.0, (3, 4)).ravel(), NoiseSource.seeded(3).normal(1.0, 12))


def test_constant_noise_is_scale_times_value():
    noise = NoiseSource.constant(2.0)
    assert np.array_equal(noise.normal(3.0, 4), np.full(4, 6.0))
    assert np.array_equal(noise.discrete_gaussian(3.0, 4), np.full(4, 6))


def test_normals_are_double_precision_and_finite_for_every_size():
    noise = NoiseSource.secure()
    for size in (0, 1, 2, 3, 63, 64, 65, 40_001, (2, 3, 5)):
        drawn = noise.normal(1.0, size)
        assert drawn.dtype == np.float64
        assert np.isfinite(drawn).all()
        assert drawn.size == np.prod(size)


def test_a_scale_that_is_no_scale_is_refused():
    for scale in (-1.0, float("nan"), float("inf")):
        with pytest.raises(InputError):
            NoiseSource.secure().normal(scale, 1)
    with pytest.raises(InputError):
        NoiseSource.secure().bernoulli(1.5, 1)


def test_certain_coins_are_certain():
    assert NoiseSource.secure().bernoulli(1.0, 1000).all()
    assert not NoiseSource.secure().bernoulli(0.0, 1000).any()


def test_two_processes_draw_different_noise():
    script = "from understudy.privacy.noise import NoiseSource; print(NoiseSource.secure().normal(1.0, 4).tolist())"
    drawn = {subprocess.check_output([sys.executable, "-c", script]) for _ in range(2)}
    assert len(drawn) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork to survive")
def test_a_forked_child_draws_noise_of_its_own():
    noise = NoiseSource.secure()
    noise.normal(1.0, 3)
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=lambda: theirs.send(noise.normal(1.0, 8).tolist()))
    child.start()
    drawn = ours.recv()
    child.join()
    assert drawn != noise.normal(1.0, 8).tolist()


def test_threads_never_receive_the_same_noise():
    noise, results = NoiseSource.secure(), []
    threads = [threading.Thread(target=lambda: results.append(noise.normal(1.0, 20_000))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(np.unique(np.concatenate(results))) == 160_000
