"""Paths stay in the project, private values stay in the table, and what the library refuses is said in its words."""

import json
import random
import re
import string
from pathlib import Path

import pytest

import understudy as us
from tests.e2e.commands import MAGIC_CATEGORY, MAGIC_PERSON, MAGIC_VALUE, make_clinic
from tests.unit.app.asking import Browser, let_in, new_app
from understudy.app import forms, pictures
from understudy.app.jobs import Job, Task, all_jobs
from understudy.app.pages import _PAGES
from understudy.app.project import STATE, Project
from understudy.data import Schema
from understudy.errors import InputError, SchemaError
from understudy.privacy.ledger import Ledger

SECRETS = (MAGIC_VALUE, MAGIC_PERSON, MAGIC_CATEGORY)
OUTSIDE = [
    "../outside.toml",
    "/etc/passwd",
    "~/x",
    "a/../../outside.toml",
    STATE,
    f"{STATE}/tables.json",
    "\0",
    "x" * 9000,
]
OUTSIDE += ["link.toml", "", ".", "%2e%2e/outside.toml", "..\\outside.toml", "file:///etc/passwd", "s3://bucket/x"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A clinic's folder, with a secret outside and a link to it."""
    folder = tmp_path / "clinic"
    make_clinic(folder)
    (tmp_path / "outside.toml").write_text(f'name = "{MAGIC_PERSON}"')
    (folder / "link.toml").symlink_to(tmp_path / "outside.toml")
    return folder


@pytest.fixture
def browser(project: Path) -> Browser:
    app, _, links = new_app(project)
    return let_in(app, links[0])


def form_of(document: dict) -> dict[str, str]:
    """Returns what the browser would send of an unchanged form."""
    form = dict(forms.values_of(document))
    for place, column in enumerate(forms.columns_of(document)):
        form |= {f"column.{place}.{key}": str(value) for key, value in column.items() if key != "missing"}
        form |= {f"column.{place}.missing": "yes"} if column["missing"] else {}
    return form


@pytest.mark.parametrize("path", OUTSIDE)
def test_no_path_leads_out_of_the_project_or_into_what_is_hidden(browser: Browser, path: str) -> None:
    asked = [browser.post("/open", {"path": path})]
    for page in ("/schema", "/release", "/release/series", "/release/certificate", "/budget", "/buy", "/confirm"):
        asked.append(browser.get(f"{page}?at={path}"))
    asked.append(browser.post("/verify", {"path": path}))
    assert {answer.status for answer in asked} <= {200, 422}  # 200: an empty path verifies nothing
    assert not any(secret in answer.text for answer in asked for secret in (*SECRETS, "root:"))


def test_a_folder_shows_names_and_nothing_of_the_folders_in_it(browser: Browser, project: Path) -> None:
    (project / "deeper").mkdir()
    (project / "deeper" / "secret-name.csv").write_text("a,b\n")
    assert "deeper" in browser.get("/").text
    assert "secret-name" not in browser.get("/").text
    assert "secret-name" in browser.get("/?folder=deeper").text


def test_opening_a_table_drafts_its_schema_from_names_and_shows_no_value(browser: Browser, project: Path) -> None:
    answer = browser.post("/open", {"path": "clinic.csv", "unit": "person", "time": "when"})
    assert answer.goes_to == "/schema?at=clinic.schema.toml"
    page = browser.get(answer.goes_to).text
    assert "pulse" in page
    assert not any(secret in page for secret in SECRETS)
    again = browser.post("/open", {"path": "clinic.csv"})  # opened, not drafted again
    assert again.goes_to == answer.goes_to


def test_a_form_that_nobody_changed_is_the_schema_it_came_from(project: Path) -> None:
    saved = forms.read_document(project / "schema.toml")
    made = forms.document_of(saved, form_of(saved))
    assert forms.checked(made, draft=False) == Schema.load(project / "schema.toml")
    before = (project / "schema.toml").read_bytes()
    forms.save(made, project / "schema.toml")
    assert (project / "schema.toml").read_bytes() == before


@pytest.mark.parametrize(
    ("key", "text", "problem"),
    [
        ("time.frequency", "1x", "time.frequency"),
        ("population", "many", "population.size"),
        ("column.0.low", "30", "pulse.high"),
        ("column.0.low", "much", "pulse.low"),
        ("column.1.categories", "north", ""),
        ("budget.epsilon", "-1", "budget.epsilon"),
        ("unit.kind", "crowd", "unit.kind"),
        ("constraints", "[[", "constraints"),
    ],
)
def test_a_bad_field_is_named_in_the_words_of_the_library(
    browser: Browser, project: Path, key: str, text: str, problem: str
) -> None:
    saved = forms.read_document(project / "schema.toml")
    answer = browser.post("/schema/check?at=schema.toml", form_of(saved) | {key: text})
    assert answer.status == 200
    assert f'data-problem="{problem}"' in answer.text
    if problem and key != "constraints":
        with pytest.raises(SchemaError) as refused:
            forms.checked(forms.document_of(saved, form_of(saved) | {key: text}), draft=True)
        assert str(refused.value).removeprefix("schema: ")[1:30] in answer.text.replace("&#39;", "'")


def test_a_bad_schema_is_not_saved(browser: Browser, project: Path) -> None:
    before = (project / "schema.toml").read_bytes()
    form = form_of(forms.read_document(project / "schema.toml")) | {"time.frequency": "1x", "next": "budget"}
    answer = browser.post("/schema?at=schema.toml", form)
    assert answer.status == 422
    assert "1x" in answer.text  # what was typed is still there
    assert (project / "schema.toml").read_bytes() == before


def test_plan_and_prices_charge_nothing_and_read_no_row(browser: Browser, project: Path) -> None:
    (project / "clinic.csv").unlink()
    Project.at(project).choose("schema.toml", table="", context="")
    planned = browser.post("/budget/plan?at=schema.toml", {"epsilon": "1", "method": "spectral"})
    assert "This budget buys" in planned.text
    assert "at most" in planned.text
    series = browser.post("/budget/plan?at=schema.toml", {"epsilon": "1", "schedule": "monthly:12"})
    assert "12 releases, one a month" in series.text
    price = browser.get("/buy?at=schema.toml&fact=bounds&column=pulse&low=0&high=100&epsilon=0.5")
    assert "The price: ε = 0.5" in price.text
    assert list(project.glob("*.ledger")) == []


def test_pages_before_a_release_are_the_same_whatever_the_table_holds(tmp_path: Path) -> None:
    seen = []
    for number, persons in enumerate((120, 121)):
        clinic = make_clinic(tmp_path / str(number) / "clinic", persons)
        clinic.edit_schema(f"population = {persons}", "population = 120")
        clinic.edit_rows(lambda rows, n=number: [rows[0], *([*row[:2], f"{n + 1}.5", row[3]] for row in rows[1:])])
        app, _, links = new_app(clinic.folder)
        browser = let_in(app, links[0])
        form = form_of(forms.read_document(clinic.schema)) | {"table": "clinic.csv", "next": "budget"}
        answers = [
            browser.get("/"),
            browser.post("/open", {"path": "clinic.csv", "peek": "yes"}),
            browser.get("/schema?at=clinic.schema.toml"),
            browser.post("/schema/check?at=schema.toml", form),
            browser.post("/schema?at=schema.toml", form),
            browser.get("/buy?at=schema.toml&fact=bounds&column=pulse&low=0&high=100&epsilon=0.5"),
            browser.post("/budget/plan?at=schema.toml", {"epsilon": "1"}),
            browser.get("/confirm?at=schema.toml&epsilon=1"),
        ]
        assert [answer.status for answer in answers] == [200, 303, 200, 200, 303, 200, 200, 200]
        secret = rf'{browser.form_token}|name="once" value="\w+"|-release-\w{{6}}'
        seen.append([re.sub(secret, "", answer.text) + answer.goes_to for answer in answers])
    assert seen[0] == seen[1]


def test_the_share_that_the_page_offers_is_granted(browser: Browser, project: Path) -> None:
    """Rounded up, the delta of a run is more than a run may have."""
    text = (project / "schema.toml").read_text()
    (project / "schema.toml").write_text(text.replace("max_runs = 8", "max_runs = 7"))
    Project.at(project).choose("schema.toml", table="clinic.csv", context="")
    page = browser.get("/budget?at=schema.toml").text
    epsilon, delta = (
        re.search(rf'name="{name}" type="text" value="([^"]+)"', page)[1] for name in ("epsilon", "delta")
    )  # type: ignore[index]
    assert browser.get(f"/confirm?at=schema.toml&epsilon={epsilon}&delta={delta}").status == 200


@pytest.mark.parametrize("name", ["", "Clinic", "clinic2"])
def test_a_run_needs_the_name_of_its_population(browser: Browser, project: Path, name: str) -> None:
    Project.at(project).choose("schema.toml", table="clinic.csv", context="")
    answer = browser.post("/run?at=schema.toml", {"once": "a" * 32, "epsilon": "1", "name": name})
    assert "'clinic' is expected" in answer.problem.replace("&#39;", "'")
    assert all_jobs(Project.at(project)) == []


def test_more_than_the_budget_is_refused_in_the_words_of_the_ledger(browser: Browser, project: Path) -> None:
    Project.at(project).choose("schema.toml", table="clinic.csv", context="")
    answer = browser.get("/confirm?at=schema.toml&epsilon=50")
    assert "Nothing was charged" in answer.problem
    price = browser.get("/buy?at=schema.toml&fact=bounds&column=pulse&low=0&high=100&epsilon=50")
    assert price.status == 422


def test_a_form_that_is_sent_twice_starts_one_run(
    browser: Browser, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[list[str]] = []
    monkeypatch.setattr("understudy.app.jobs.subprocess.Popen", lambda command, **_: begun.append(command))
    monkeypatch.setenv("UNDERSTUDY_DEBUG", "1")
    Project.at(project).choose("schema.toml", table="clinic.csv", context="")
    form = {"once": "a" * 32, "epsilon": "1", "name": "clinic"}
    answers = [browser.post("/run?at=schema.toml", form) for _ in range(2)]
    assert {answer.goes_to for answer in answers} == {f"/jobs/{'a' * 32}"}
    assert len(begun) == 1
    task = all_jobs(Project.at(project))[0].task
    assert task.command.startswith("understudy synth clinic.csv --schema schema.toml --epsilon 1.0")
    assert "us.synthesize('clinic.csv', 'schema.toml', 1.0" in task.python


def a_job(project: Path, **files: str) -> Job:
    """Returns a job as files alone tell it; no process belongs to it."""
    job = Job(Project.at(project), "b" * 32)
    job.folder.mkdir(parents=True)
    task = Task(
        kind="synth", title="A run", arguments={}, command="understudy synth", ledger=str(project / "clinic.ledger")
    )
    job.write("job.json", vars(task) | {"started": "2000-01-01T00:00:00+00:00"})
    for name, text in files.items():
        (job.folder / name.replace("_", ".")).write_text(text)
    return job


def test_a_run_whose_process_is_gone_is_said_to_be_lost_and_its_charge_to_stay(browser: Browser, project: Path) -> None:
    job = a_job(project, progress_json='{"stage": "learning", "share": 0.5}')
    assert job.state == "lost"
    page = browser.get(f"/jobs/{job.name}").text
    assert "was lost" in page
    assert "Nothing was charged" in page
    ledger = Ledger.open_for(project / "schema.toml")
    from understudy.planning.choices import chosen, guarantee_for, spending_plan
    from understudy.privacy.noise import NoiseSource

    schema = Schema.load(project / "schema.toml")
    plan = spending_plan(chosen(schema)[0], schema, guarantee_for(schema, 0.5, None))
    ledger.charge(plan, label="spectral", noise=NoiseSource.secure())
    assert "The charge stays" in browser.get(f"/jobs/{job.name}").text


def test_a_run_whose_process_holds_its_lock_is_running_and_can_be_cancelled(browser: Browser, project: Path) -> None:
    job = a_job(project, progress_json="{}")
    with job.lock():
        assert job.state == "running"
        assert browser.post(f"/jobs/{job.name}/cancel", {}).goes_to == f"/jobs/{job.name}"
    assert (job.folder / "cancel").exists()


def test_a_job_without_an_end_says_nothing_of_its_files(browser: Browser, project: Path) -> None:
    job = a_job(project, end_json=json.dumps({"state": "done", "message": "Well."}))
    for part in ("file", "figures/x.svg", "figures/..%2Fjob.json", "page"):
        assert browser.get(f"/jobs/{job.name}/{part}").status in (404, 422)
    assert browser.get("/jobs/..").status in (404, 422)


def test_dropped_files_stay_in_their_folder_and_are_deleted(browser: Browser, project: Path) -> None:
    batch, token = "c" * 32, {"x_form_token": browser.form_token}
    for name in ("../evil", ".hidden", "a/b", ""):
        assert browser.post(f"/verify/drop?dropped={batch}&name={name}", b"x", **token).status == 422
    assert browser.post("/verify/drop?dropped=..&name=certificate.json", b"x", **token).status == 422
    assert browser.post(f"/verify/drop?dropped={batch}&name=certificate.json", b"{}", **token).status == 204
    assert browser.post("/verify", {"dropped": batch}).status == 422
    assert not (project / STATE / "dropped" / batch).exists()


def test_a_release_made_elsewhere_is_shown_and_one_that_was_changed_is_not_vouched_for(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    app, _, links = new_app(folder)
    browser = let_in(app, links[0])
    homes = us.simulate_households(120)
    us.synthesize(homes, epsilon=1, ledger=folder / "homes.ledger", save_to=folder / "made", progress=False)
    page = browser.get("/release?at=made").text
    assert "Series as Parquet" in page
    assert browser.get("/release/series?at=made&format=csv").text.startswith('"household","timestamp"')
    assert "1 of ε = 3 is spent" in browser.get("/ledger").text
    for asked in (("/release/verify?at=made", {}), ("/verify", {"path": "made"})):
        assert "Everything agrees with the certificate" in browser.post(*asked).text
    (folder / "made" / "synthetic.parquet").write_bytes(b"x")
    for asked in (("/release/verify?at=made", {}), ("/verify", {"path": "made"})):
        assert "Do not rely on it" in browser.post(*asked).text
    assert browser.get("/release/certificate?at=made").status == 422


def test_odds_are_those_of_the_guarantee() -> None:
    assert pictures.posterior(0.5, 0.0) == 0.5
    assert pictures.posterior(0.5, 1.0) == pytest.approx(0.7310585786)
    assert pictures.posterior(0.01, 3.0) == pytest.approx(0.01 * 2.718281828**3 / (0.01 * 2.718281828**3 + 0.99))
    assert "73.2 %" in pictures.sentence(1.0, 1e-6, "added or removed")  # rounded up
    assert "1 in 1,000,000" in pictures.sentence(1.0, 1e-6, "added or removed")


def test_the_gauge_shows_what_does_not_fit() -> None:
    parts = pictures.gauge(3.0, 1.0, 0.5)
    assert [parts[name] for name in ("spent", "asked", "left")] == pytest.approx([200 / 3, 50 / 3, 50 / 3])
    assert parts["fits"]
    assert not pictures.gauge(3.0, 1.0, 1.5)["fits"]


def test_a_project_is_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="FOLDER"):
        Project.at(tmp_path / "nothing")


NUM_REQUESTS = 1000


def test_a_thousand_random_requests_break_nothing_tell_nothing_and_charge_nothing(
    browser: Browser, project: Path
) -> None:
    """No answer is an internal error, none quotes the table or a file outside, and the ledger is never made."""
    Project.at(project).choose("schema.toml", table="clinic.csv", context="")
    rng = random.Random(33)
    paths = [
        (method, path) for method, path, _ in _PAGES if path not in ("/example", "/budget/minutes", "/budget/simulate")
    ]
    saved = form_of(forms.read_document(project / "schema.toml"))
    names = [
        *saved,
        "at",
        "path",
        "epsilon",
        "delta",
        "method",
        "name",
        "once",
        "fact",
        "column",
        "low",
        "high",
        "next",
    ]
    names += [
        "table",
        "context",
        "schedule",
        "units",
        "folder",
        "dropped",
        "key",
        "do",
        "reason",
        "holdout",
        "num_series",
    ]
    values = ["", "schema.toml", "clinic.csv", "1", "0", "-1", "nan", "inf", "1e999", "9" * 5000, "spectral", "bounds"]
    values += [
        "pulse",
        "ward",
        "a" * 32,
        "\ud7ff\x00",
        "<script>alert(1)</script>",
        "../outside.toml",
        "trust",
        "monthly:12",
    ]
    values += [
        "[[channels]]\nname = 1",
        "".join(rng.choices(string.printable, k=40)),
        "clinic.ledger",
        "{{ 7 * 7 }}",
        "%00",
    ]
    leaks = (*SECRETS, "person-0", "<script>alert", "Traceback", ' File "')
    seen: dict[int, int] = {}
    for _ in range(NUM_REQUESTS):
        method, path = rng.choice(paths)
        path = path.replace("{job}", rng.choice(["a" * 32, "..", "x"])).replace(
            "{name}", rng.choice(["x.svg", "..", "%2e"])
        )
        form = {rng.choice(names): rng.choice(values) for _ in range(rng.randrange(5))}
        if rng.random() < 0.7:
            form["at"] = "schema.toml"
        if rng.random() < 0.1:
            form = saved | form
        query = "&".join(f"{key}={value}" for key, value in form.items() if value.isalnum() or value.endswith(".toml"))
        asked = method if rng.random() < 0.9 else rng.choice(["GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD"])
        if asked == "POST":
            answer = browser.post(
                f"{path}?{query}", {k: v.encode("utf-8", "replace").decode() for k, v in form.items()}
            )
        else:
            answer = browser.send(asked, f"{path}?{query}", b"", {})
        seen[answer.status] = seen.get(answer.status, 0) + 1
        assert answer.status < 500, (asked, path, form, answer.problem)
        assert not any(leak in answer.text for leak in leaks), (asked, path, form)
    assert seen[200] > 50, seen
    assert seen[422] > 50, seen
    assert list(project.rglob("*.ledger")) == []
    assert not any(job.task.kind in ("synth", "buy") for job in all_jobs(Project.at(project)))
