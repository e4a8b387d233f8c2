"""One example for each public name; the Python page shows them, a test runs all of them in this order.

The lines before the first `# %%` are what every example starts from.
"""

import understudy as us

homes = us.simulate_households(200)  # or any frame, file, folder or database, with its schema
release = us.synthesize(homes, epsilon=1, ledger=us.Ledger.scratch(), save_to="release", progress=False)

# %% METHODS
method = us.METHODS.create("spectral", max_splits=1)
print(method, us.METHODS.own)

# %% PETS
us.PETS(start="public", public="wisdm.parquet")  # public series evolve, private ones vote once

# %% PPEM
us.PPEM(sensitive=("tariff", "mean(load_kw)"), target="uniform")  # two secrets, shown with even shares

# %% VFLGANTS
us.VFLGANTS.from_preset("paper")  # as published; its certificate says "not private"

# %% Certificate
print(release.certificate.sentence())
print(release.certificate.epsilon, release.certificate.delta)

# %% DiT
us.DiT().plan(homes.schema, us.Guarantee(1.0, 1e-5))  # every event of a run, before anything is spent

# %% Guarantee
us.Guarantee(epsilon=1.0, delta=1e-6)

# %% Ledger
ledger = us.Ledger.open_for(homes.schema.with_facts(budget=3.0), ".")  # households.ledger in this folder
print(ledger.remaining())

# %% NoiseSource
us.NoiseSource.seeded(1)  # repeatable, for tests: a certificate made with it says "not private"

# %% Panel
print(homes, homes.num_series, homes.values.shape)
homes.to_pandas().head()  # or to_polars(), to_arrow()

# %% Plan
print(us.plan(homes.schema, epsilon=1).verdict)

# %% PrivacyUnit
print(us.PrivacyUnit(kind="entity", column="patient").sentence())

# %% Pub2Priv
us.synthesize(homes, epsilon=1, method=us.Pub2Priv(), ledger=us.Ledger.scratch(), progress=False)

# %% Release
saved = us.Release.load("release")
week = saved.sample(100, where={"tariff": "night"})
day = saved.sample(100, steps=24)

# %% Schema
schema = us.Schema.draft(homes.to_pandas(), unit="household", time="timestamp")
print(*schema.missing_facts(), sep="\n")

# %% Spectral
us.write_panel(us.simulate_households(300, seed=2), "other-city.parquet")  # public series with the same columns
near = us.Spectral(prior="other-city.parquet")
us.synthesize(homes, epsilon=1, method=near, ledger=us.Ledger.scratch(), progress=False)

# %% UnderstudyError
try:
    us.Guarantee(epsilon=-1.0, delta=1e-6)
except us.UnderstudyError as error:
    print(error)  # expected, got, do this

# %% Verification
print(us.verify("release").holds)

# %% audit
us.audit(release, real=homes, minutes=None, progress=False)  # internal; minutes=30 adds fits with and without a target

# %% buy
print(us.buy.bounds(homes, homes.schema, columns="load_kw", between=(0, 100), epsilon=1, ledger=us.Ledger.scratch()))

# %% compare
us.compare({"first": release, "second": us.Release.load("release")}, real=homes, suites=["general"], progress=False)

# %% evaluate
card = us.evaluate(release, real=homes, suites=["general"], progress=False)  # internal
print(card)

# %% methods
print(us.methods())

# %% plan
us.plan(homes.schema, epsilon=1, method="dit")

# %% read_panel
frame = homes.to_pandas()  # or a file, a folder, a database
schema = us.Schema.draft(frame, unit="household", time="timestamp").with_facts(
    population=200,
    frequency="1h",
    start="2024-03-04",
    steps=168,
    min_steps=120,
    bounds={"load_kw": (0, 20), "solar_kw": (0, 8)},
    categories={"tariff": ["flat", "night", "dynamic"]},
    budget=3.0,
)
us.read_panel(frame, schema)  # checks everything that the schema declares

# %% simulate_households
us.simulate_households(1_000, seed=1)  # invented, public, and with a schema: for trying things out

# %% synthesize
us.synthesize(homes, epsilon=1, ledger=us.Ledger.scratch(), method="spectral", progress=False)

# %% verify
us.verify("release")

# %% write_panel
us.write_panel(release.sample(50), "synthetic.parquet")
