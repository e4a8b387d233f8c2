"""Defects before any statistic is computed: reading, windows, splitting, what is shown."""

from tests.mutants.mutant import Mutant

PANEL = "tests/unit/data/test_panel.py"
WINDOWS = "tests/unit/data/test_windows.py"
REFUSALS = "tests/unit/data/io/test_refusals.py"
DRAFT = "tests/unit/data/io/test_draft.py"
CSV_FILES = "tests/unit/data/io/test_csv_files.py"
UNITS = "tests/unit/synthesizers/test_units.py"
HOLDOUTS = "tests/e2e/test_cli_holdouts.py"
EXTRA = "tests/unit/data/test_mutant_data.py"
BATCHES = "tests/unit/data/io/test_batches.py"
TABLE = "tests/unit/data/test_table.py"

MUTANTS = (
    Mutant(
        name="windows of series that end at a private row",
        why="one late row takes away windows that nobody counted: epsilon 1 becomes 5 and more",
        file="data/windows.py",
        before="and schema.time.min_steps is not None and not whole_windows:",
        after="and schema.time.min_steps is not None and whole_windows:",
        tests=(f"{UNITS}::test_one_late_row_would_take_away_more_windows_than_an_event_touches_so_it_is_refused",),
    ),
    Mutant(
        name="windows as units drawn by their series",
        why="one window more changes which of its neighbours are drawn, and is priced as one",
        file="synthesizers/base.py",
        before="        cut = replace(cut, unit=np.arange(cut.num_series, dtype=np.int64), unit_ids=None)",
        after="        pass",
        tests=(f"{UNITS}::test_windows_that_are_units_share_none",),
    ),
    Mutant(
        name="imputation across units",
        why="a gap of one unit is filled from all others, who then weigh more than once",
        file="statistics/series.py",
        before="return np.where(known, scores, low + share * (high - low)).astype(scores.dtype)",
        after="return np.where(known, scores, values.mean(axis=0)).astype(scores.dtype)",
        tests=("tests/unit/statistics/test_series.py",),
    ),
    Mutant(
        name="window cap ignored when cutting",
        why="a unit keeps more windows than it is priced for",
        file="data/windows.py",
        before="fits = _capped(fits, panel.unit, max_windows_per_unit, rng)",
        after="fits = fits & True",
        tests=(WINDOWS,),
    ),
    Mutant(
        name="length of an event ignored",
        why="an event of many steps touches more windows than declared",
        file="data/windows.py",
        before="(window_steps + schema.unit.event_steps - 1) / stride",
        after="window_steps / stride",
        tests=(WINDOWS,),
    ),
    Mutant(
        name="series of a unit ignored in its reach",
        why="a unit with several series touches more windows than declared",
        file="data/windows.py",
        before="return touched * schema.unit.max_series",
        after="return touched",
        tests=(WINDOWS,),
    ),
    Mutant(
        name="a unit taken twice",
        why="a private unit contributes more than once",
        file="data/panel.py",
        before="if self.private and len(np.unique(chosen)) != len(chosen):",
        after="if len(chosen) > self.num_units:",
        tests=(PANEL,),
    ),
    Mutant(
        name="holdout of a fixed size",
        why="one unit's presence pushes another across the border",
        file="data/panel.py",
        before="held_out = rng.random(self.num_units) < holdout_fraction",
        after="held_out = rng.permutation(self.num_units) < round(holdout_fraction * self.num_units)",
        tests=(PANEL,),
    ),
    Mutant(
        name="private count in a repr",
        why="a log line or a notebook says how many units there are",
        file="data/panel.py",
        before='return f"Panel(private; {self.schema})" if self.private',
        after='return f"Panel(private, {self.num_series} series; {self.schema})" if self.private',
        tests=(PANEL,),
    ),
    Mutant(
        name="value in an error message",
        why="an error quotes the reading that broke the bounds",
        file="data/io/checks.py",
        before='f"it leaves its declared bounds [',
        after='f"it has {np.nanmax(np.abs(column))} and leaves its declared bounds [',
        tests=(REFUSALS,),
    ),
    Mutant(
        name="count in an error message",
        why="an error says how many units the table holds",
        file="data/io/checks.py",
        before='f"The table holds fewer than {MIN_UNITS} {what},',
        after='f"The table holds {num_units} of {MIN_UNITS} {what},',
        tests=(EXTRA,),
    ),
    Mutant(
        name="several series per unit not counted",
        why="a unit contributes more series than it is priced for",
        file="data/io/checks.py",
        before="if (counts > schema.unit.max_series).any():",
        after="if (counts > 10**9).any():",
        tests=(EXTRA,),
    ),
    Mutant(
        name="context that differs between people",
        why="a private column is treated as public",
        file="data/io/context.py",
        before="if differs[:, index].any():",
        after="if differs[:, index].all():",
        tests=("tests/unit/data/io/test_context.py",),
    ),
    Mutant(
        name="windows of nothing counted",
        why="a unit that leaves with its only row takes windows along that the event never touched",
        file="synthesizers/base.py",
        before="cut = windows.without_empty(cut, every_step=whole_windows)",
        after="cut = windows.without_empty(cut, every_step=True) if whole_windows else cut",
        tests=("tests/unit/synthesizers/test_units.py",),
    ),
    Mutant(
        name="zeros for empty steps in windows of events",
        why="one row less changes windows that are priced as if they went away",
        file="data/windows.py",
        before="if filled and (windowed or whole_windows):",
        after="if filled and windowed and not whole_windows:",
        tests=("tests/unit/synthesizers/test_units.py",),
    ),
    Mutant(
        name="a vote in every batch",
        why="a unit with rows in many batches votes many times for a category of its own",
        file="data/io/read.py",
        before="if first.get(owner) is None:\n                first[owner] = category",
        after="first[(len(first), owner)] = category",
        tests=(f"{BATCHES}::test_a_unit_votes_once_however_many_batches_it_is_in",),
    ),
    Mutant(
        name="a new unit in every batch of a long table",
        why="a unit counts as many",
        file="data/io/long.py",
        before="    return np.concatenate([chunk.indices.to_numpy() for chunk in chunks]), chunks[0].dictionary",
        after="""\
    starts = np.cumsum([0, *(len(chunk.dictionary) for chunk in chunks)])
    codes = [chunk.indices.to_numpy() + start for chunk, start in zip(chunks, starts, strict=False)]
    return np.concatenate(codes), pa.concat_arrays([chunk.dictionary for chunk in chunks])""",
        tests=(f"{BATCHES}::test_a_long_table_is_the_same_in_several_batches",),
    ),
    Mutant(
        name="a new unit in every batch of a wide table",
        why="a unit counts as many",
        file="data/io/read.py",
        before="encoded = pa.concat_arrays(units).dictionary_encode()",
        after="encoded = pa.array(np.arange(sum(map(len, units)))).dictionary_encode()",
        tests=(f"{BATCHES}::test_a_wide_table_is_the_same_in_several_batches",),
    ),
    Mutant(
        name="static columns not compared",
        why="a value that changes between batches is taken from whichever came last",
        file="data/io/long.py",
        before="        kept = static[series, index]\n",
        after="        kept = column\n",
        tests=(f"{BATCHES}::test_what_is_wrong_between_two_batches_is_refused",),
    ),
    Mutant(
        name="context compared within a batch only",
        why="one unit's own value passes for one that all units share",
        file="data/io/context.py",
        before="np.concatenate([part.ticks for part in parts])\n    return _one_per_tick(ticks, values, schema)",
        after=(
            "np.concatenate([part.ticks for part in parts])\n"
            "    unique, first = np.unique(ticks, return_index=True)\n"
            "    return ContextRows(unique, values[first])"
        ),
        tests=(f"{BATCHES}::test_context_in_the_private_table_is_the_same_in_several_batches",),
    ),
    Mutant(
        name="listed units learned from",
        why="units that were said to be kept out train the release",
        file="api/holdouts.py",
        before="return Table.of(train.read()) if table.in_memory else train, held_out",
        after="return Table.of(replace(table.read(), unit_ids=None)), held_out",
        tests=(f"{HOLDOUTS}::test_listed_units_have_no_influence",),
    ),
    Mutant(
        name="a split that nobody checks before the charge",
        why="fewer units than the floor are learned from, and nothing in the certificate says so",
        file="api/synthesis.py",
        before="        check_split(table, held_out, allow_few_units=few is not None)\n",
        after="",
        tests=(f"{HOLDOUTS}::test_a_split_that_leaves_too_few_is_refused_before_the_charge",),
    ),
    Mutant(
        name="a count in the refusal of a split",
        why="the number of private units is printed",
        file="api/holdouts.py",
        before="and fewer remain after others were kept out. ",
        after="and fewer remain after others were kept out: {train.num_units}. ",
        tests=(f"{HOLDOUTS}::test_a_split_that_leaves_too_few_is_refused_before_the_charge",),
    ),
    Mutant(
        name="units that trained a release called unseen",
        why="a release that copies what it learned passes for one that did not",
        file="api/panels.py",
        before="not listed <= known:",
        after="not listed & known:",
        tests=(f"{HOLDOUTS}::test_units_that_trained_one_of_the_releases_are_not_called_unseen",),
    ),
    Mutant(
        name="ids as column names in the draft",
        why="a table with a column per person writes everybody's identifier into the public schema",
        file="data/io/draft.py",
        before="if alike(names) and not options.columns_are_public:",
        after="if alike(names) and options.columns_are_public:",
        tests=(DRAFT,),
    ),
    Mutant(
        name="a look that is not recorded",
        why="kinds of columns were read from private rows, and the draft says that none was",
        file="data/io/draft.py",
        before='first = f"{_PEEKED} Complete what says TODO.\\n" if peeked else f"{_NO_ROW}\\n"',
        after='first = f"{_NO_ROW}\\n"',
        tests=(DRAFT,),
    ),
    Mutant(
        name="a look without leave",
        why="rows of a private CSV file decide what the public draft says, although nobody allowed it",
        file="data/io/draft.py",
        before="if path is not None and peeked:",
        after="if path is not None and is_csv:",
        tests=(DRAFT,),
    ),
    Mutant(
        name="a look at all rows",
        why="one row past those that were agreed on decides the kind of a column",
        file="data/io/draft.py",
        before="itertools.islice(file, PEEKED_ROWS + 1)",
        after="itertools.islice(file, None)",
        tests=(DRAFT,),
    ),
    Mutant(
        name="a first row quoted as names",
        why="an error about a file without a header quotes one unit's values",
        file="data/io/sources.py",
        before="if self.from_text and not whole_header:",
        after="if self.from_text and not self.columns:",
        tests=(REFUSALS, CSV_FILES),
    ),
    Mutant(
        name="people's columns named in errors",
        why="an error about one column too many quotes an identifier",
        file="data/io/sources.py",
        before="if name in alike(self.columns):",
        after="if name in known:",
        tests=(CSV_FILES,),
    ),
    Mutant(
        name="one person's table passes",
        why="nobody can be hidden in a table of one unit",
        file="data/io/checks.py",
        before='    if schema.unit.kind == "event":',
        after='    if schema.unit.kind != "overlapping-window":',
        tests=(REFUSALS,),
    ),
    Mutant(
        name="a unit in two partitions",
        why="a unit with rows in two files is clipped twice and weighs twice",
        file="data/table.py",
        before="    if len(np.unique(keys)) < len(keys):",
        after="    if len(keys) < 0:",
        tests=(f"{TABLE}::test_a_unit_in_two_files_is_refused_with_the_way_out",),
    ),
    Mutant(
        name="a unit in two chunks of a file",
        why="a unit whose rows are not side by side counts once in every chunk",
        file="data/table.py",
        before="grouped = len(np.unique(together)) == len(together)",
        after="grouped = True",
        tests=(f"{TABLE}::test_a_folder_holds_what_one_table_holds",),
    ),
)
