"""Defects of DP-SGD: clipping, noise, batches, checkpoints, what a network may hold."""

from tests.mutants.mutant import Mutant

STEP = "tests/unit/training/test_private_gradient.py"
LOOP = "tests/unit/training/test_loop.py"
WINDOWS = "tests/unit/training/test_batches.py"
ENGINE = "tests/unit/training/clipping/test_engine.py"
VALIDATE = "tests/unit/training/test_validation.py"
NOISE = "tests/statistical/test_training_noise.py"
EXTRA = "tests/unit/training/test_mutant_training.py"
TIED = "tests/unit/training/clipping/test_tied_forms.py"
SUMS = "tests/unit/training/clipping/test_exact_sums.py"

MUTANTS = (
    Mutant(
        name="missing noise in training",
        why="clipped gradients are used as they are",
        file="training/private_gradient.py",
        before="        self._reserve.add_to(self._sums.total)\n",
        after="",
        tests=(STEP,),
    ),
    Mutant(
        name="rows of all units added up in float32",
        why="long rows of one unit that cancel swallow other units' gradients at the edge of a block",
        file="training/clipping/per_unit_gradients.py",
        before="target.addmm_(scaled.flatten(0, 1).t(), self.inputs.to(target).flatten(0, 1))",
        after="target += scaled.float().flatten(0, 1).t() @ self.inputs.flatten(0, 1)",
        tests=(f"{ENGINE}::test_long_rows_that_cancel_swallow_no_other_units",),
    ),
    Mutant(
        name="half noise in training",
        why="half of the noise that the event prices",
        file="training/plan.py",
        before="return self.event.noise_multiplier * self.clipping_norm",
        after="return self.event.noise_multiplier * self.clipping_norm / 2",
        tests=(STEP,),
    ),
    Mutant(
        name="variance for deviation in training",
        why="the square root of the noise that the event prices",
        file="training/plan.py",
        before="return self.event.noise_multiplier * self.clipping_norm",
        after="return (self.event.noise_multiplier * self.clipping_norm) ** 0.5",
        tests=(STEP,),
    ),
    Mutant(
        name="noise not scaled by the clip norm",
        why="a large clip norm gets the noise of a small one",
        file="training/plan.py",
        before="return self.event.noise_multiplier * self.clipping_norm",
        after="return self.noise_multiplier",
        tests=(STEP,),
    ),
    Mutant(
        name="one scalar of noise for all parameters",
        why="differences between parameters carry no noise",
        file="training/private_gradient.py",
        before="piece += self._drawn[:size]",
        after="piece += self._drawn[:1]",
        tests=(STEP, NOISE),
    ),
    Mutant(
        name="last layer without noise",
        why="one layer's gradients are used as they are",
        file="training/private_gradient.py",
        before="self._reserve.add_to(self._sums.total)",
        after="self._reserve.add_to(self._sums.total[: -self._clipper.parameters[-1].numel()])",
        tests=(STEP,),
    ),
    Mutant(
        name="noise handed out twice",
        why="the difference of two iterations carries no noise",
        file="training/private_gradient.py",
        before="            self._drawn = self._drawn[size:]\n",
        after="",
        tests=(STEP,),
    ),
    Mutant(
        name="noise drawn ahead shared after a fork",
        why="two processes train with equal noise",
        file="training/private_gradient.py",
        before="if self._process != os.getpid():",
        after="if self._process == 0:",
        tests=(STEP,),
    ),
    Mutant(
        name="noise reused after resume",
        why="iterations before and after a crash carry equal noise",
        file="training/private_gradient.py",
        before="NormalReserve(noise, plan.noise_scale, step)",
        after="NormalReserve(NoiseSource.seeded(7) if noise.is_secure else noise, plan.noise_scale, step)",
        tests=(EXTRA,),
    ),
    Mutant(
        name="noise saved beside the checkpoint",
        why="whoever reads the checkpoint can subtract the noise of what follows",
        file="training/loop.py",
        before="                checkpoint.save(checkpoints.directory, identity, self._iteration, *state)",
        after="""\
                checkpoint.save(checkpoints.directory, identity, self._iteration, *state)
                np.save(checkpoints.directory / "noise.npy", self._gradient._reserve._drawn.numpy())""",
        tests=(EXTRA,),
    ),
    Mutant(
        name="division by the realised batch",
        why="the size of the batch, which one unit changes, scales the published gradient",
        file="training/private_gradient.py",
        before="        self.finish()\n\n    def add_clipped(",
        after="""\
        self.finish()
        self.flat.gradient.mul_(self._plan.expected_batch / (len(chosen) or self._plan.expected_batch))

    def add_clipped(""",
        tests=(STEP,),
    ),
    Mutant(
        name="an empty batch without noise",
        why="an iteration without noise says that nobody was drawn",
        file="training/private_gradient.py",
        before="        self.finish()\n\n    def add_clipped(",
        after="""\
        if len(chosen):
            self.finish()

    def add_clipped(""",
        tests=(STEP,),
    ),
    Mutant(
        name="clip of the batch",
        why="one extreme unit passes with the mean norm of the batch, and moves all others",
        file="training/clipping/engine.py",
        before="clip_factors(collector.norms(), self._clipping_norm)",
        after="clip_factors(collector.norms().mean().expand(num_units), self._clipping_norm)",
        tests=(ENGINE,),
    ),
    Mutant(
        name="clip of each layer",
        why="a network of L layers moves by √L times the clip norm that noise was scaled to",
        file="training/clipping/engine.py",
        before="collector.add_weighted_sum(clip_factors(collector.norms(), self._clipping_norm), sums, in_all)",
        after="""\
for key, record in collector._records.items():
                factors = clip_factors(collector.norms({key}), self._clipping_norm)
                record.add_to(sums.by_parameter[key], factors)""",
        tests=(ENGINE, "tests/unit/training/clipping/test_compositions.py"),
    ),
    Mutant(
        name="no clip",
        why="one unit moves the sum without limit",
        file="training/clipping/engine.py",
        before="norms.reciprocal().mul_(clipping_norm * (1 - NORM_MARGIN)).clamp_(max=1.0)",
        after="torch.ones_like(norms)",
        tests=(ENGINE,),
    ),
    Mutant(
        name="clip without a margin for rounding",
        why="float32 carries a unit a little past the bound",
        file="training/clipping/per_unit_gradients.py",
        before="NORM_MARGIN = 2.0**-10",
        after="NORM_MARGIN = -1e-4",
        tests=(ENGINE,),
    ),
    Mutant(
        name="a broken gradient let through",
        why="one unit turns the whole sum into NaN, which everybody sees",
        file="training/clipping/per_unit_gradients.py",
        before="                record.drop(broken)\n",
        after="                pass\n",
        tests=(ENGINE,),
    ),
    Mutant(
        name="BatchNorm let through by name",
        why="running statistics of private batches are published without noise",
        file="training/validation.py",
        before="    nn.modules.batchnorm._BatchNorm: _BATCH_NORM,\n",
        after="",
        tests=(VALIDATE,),
    ),
    Mutant(
        name="buffers that learn let through",
        why="a layer of unknown make carries private statistics out",
        file="training/validation.py",
        before="        _check_buffers(model, buffers)\n",
        after="",
        tests=(VALIDATE, EXTRA),
    ),
    Mutant(
        name="losses that mix units let through",
        why="clipping one unit does not bound what it does to others",
        file="training/validation.py",
        before="        _check_separate(model, loss, batch, num_units, losses.detach())\n",
        after="",
        tests=(VALIDATE,),
    ),
    Mutant(
        name="losses divided by the batch let through",
        why="the size of the batch scales every unit's gradient",
        file="training/validation.py",
        before="        _check_alone(model, loss, batch, num_units)\n",
        after="",
        tests=(VALIDATE,),
    ),
    Mutant(
        name="window cap not checked in training",
        why="a unit with more windows than priced moves the sum further",
        file="training/batches.py",
        before="if max_windows is not None and self._counts.max(initial=0) > max_windows:",
        after="if max_windows is not None and self._counts.max(initial=0) > 10**9:",
        tests=(WINDOWS,),
    ),
    Mutant(
        name="units counted by their windows in training",
        why="a unit with many windows is drawn many times over",
        file="training/batches.py",
        before="return len(self._counts) if self._of_units else self._num_rows",
        after="return self._num_rows",
        tests=(WINDOWS, EXTRA),
    ),
    Mutant(
        name="iterations counted after they ran",
        why="a crash leaves iterations uncounted whose results may have been seen",
        file="training/loop.py",
        before="""\
            self._grant.begin_block(self._label, block)
            for place, chosen in enumerate(islice(batches, block), start=1):
                self._iterate(chosen)
                if progress is not None:
                    progress(self._plan.iterations - left + place, self._plan.iterations)
""",
        after="""\
            for place, chosen in enumerate(islice(batches, block), start=1):
                self._iterate(chosen)
                if progress is not None:
                    progress(self._plan.iterations - left + place, self._plan.iterations)
            self._grant.begin_block(self._label, block)
""",
        tests=(LOOP,),
    ),
    Mutant(
        name="a checkpoint ahead of its ledger",
        why="an old copy of the ledger was put back, and training goes on as if nothing had been spent",
        file="training/checkpoint.py",
        before='if facts["iteration"] > executed:',
        after='if facts["iteration"] > 10 * executed + 10**6:',
        tests=(LOOP,),
    ),
    Mutant(
        name="another plan than the charged one",
        why="training runs with less noise than was paid for",
        file="training/loop.py",
        before="if grant.plan.event(label) != plan.event:",
        after="if type(grant.plan.event(label)) is not type(plan.event):",
        tests=(LOOP,),
    ),
    Mutant(
        name="size of the batch in the progress bar",
        why="how many units were drawn is private",
        file="training/loop.py",
        before="progress(self._plan.iterations - left + place, self._plan.iterations)",
        after="progress(len(chosen), self._plan.iterations)",
        tests=(LOOP,),
    ),
    Mutant(
        name="trial on private series",
        why="an error about the network depends on private values, before anything was charged",
        file="training/batches.py",
        before="made = rng.random(shape).astype(array.dtype)",
        after="made = np.resize(array, shape)",
        tests=(WINDOWS,),
    ),
    Mutant(
        name="masks that the program's seed tells",
        why="dropout is dealt by place in the batch: one unit more moves everybody's gradient",
        file="training/loop.py",
        before="        seed_torch(secrets.randbits(63))\n        yield",
        after="        yield",
        tests=("tests/unit/training/test_mutant_training.py",),
    ),
    Mutant(
        name="two forms of a shared parameter normed apart",
        why="a unit weighs up to √2 times the clip norm",
        file="training/clipping/per_unit_gradients.py",
        before="if self.kept is not None and self.outer is not None:",
        after="if False:",
        tests=(TIED,),
    ),
    Mutant(
        name="kept gradients added up in float32",
        why="one unit moves the rounding of all others, many times the clip norm",
        file="training/clipping/per_unit_gradients.py",
        before="_FLOAT32_PAIRS = 1 << 12",
        after="_FLOAT32_PAIRS = 1 << 40",
        tests=(SUMS,),
    ),
    Mutant(
        name="outer products added up in float32",
        why="one unit moves the rounding of all others, many times the clip norm",
        file="training/clipping/per_unit_gradients.py",
        before="addmm_((self.output * factors.unsqueeze(1)).t(), right)",
        after="add_((self.output * factors.unsqueeze(1)).float().t() @ self.input.float())",
        tests=(SUMS,),
    ),
    Mutant(
        name="squares of a wide gradient added up in float32",
        why="a norm that comes out short lets a unit past the clip norm",
        file="training/clipping/per_unit_gradients.py",
        before="_BLOCK = 2048",
        after="_BLOCK = 1 << 30",
        tests=(SUMS,),
    ),
    Mutant(
        name="rows of a unit added up in float32 with other units",
        why="long rows of one unit that cancel swallow other units' gradients",
        file="training/clipping/per_unit_gradients.py",
        before="if isinstance(record.outer, Products):  # long",
        after="if False:  # long",
        tests=(f"{ENGINE}::test_long_rows_that_cancel_swallow_no_other_units",),
    ),
    Mutant(
        name="gradients in half precision let through",
        why="norms rounded to nine bits let a unit past the clip norm",
        file="training/clipping/per_unit_gradients.py",
        before="if part.dtype != parameter.dtype:",
        after="if False:",
        tests=(f"{ENGINE}::test_half_precision_inside_the_model_is_refused_whatever_the_batch",),
    ),
    Mutant(
        name="a factor too long for the squares of the other one",
        why="squares below float32 count as nothing, and the product of norms with them",
        file="training/clipping/per_unit_gradients.py",
        before="_LONGEST = 2.0**44",
        after="_LONGEST = 2.0**120",
        tests=(f"{ENGINE}::test_squares_that_float32_loses_let_no_unit_past_the_clip",),
    ),
    Mutant(
        name="noise not rounded to the lattice",
        why="low-order bits of the noise are in the weights and say what it was added to",
        file="training/private_gradient.py",
        before="torch.from_numpy(normals).round_()",
        after="torch.from_numpy(normals)",
        tests=("tests/statistical/test_low_order_bits.py",),
    ),
    Mutant(
        name="gradients not put on the lattice",
        why="low-order bits of the sum are in the weights and tell neighbours apart",
        file="training/private_gradient.py",
        before="vector.mul_(1 / self._step).round_()",
        after="vector.mul_(1 / self._step)",
        tests=("tests/statistical/test_low_order_bits.py",),
    ),
    Mutant(
        name="trial at zero",
        why="a network that mixes units behind a layer that starts at zero passes",
        file="training/validation.py",
        before="torch.random.fork_rng(devices=[]), _shaken(model):",
        after="torch.random.fork_rng(devices=[]):",
        tests=(VALIDATE,),
    ),
    Mutant(
        name="numbers shared when a unit is left out",
        why="a loss that draws at random can't be compared, and all of them would be refused or none",
        file="training/validation.py",
        before="with PerUnitRandomness(units, by_unit):",
        after="with PerUnitRandomness(range(len(units)), ()):",
        tests=(VALIDATE,),
    ),
)
