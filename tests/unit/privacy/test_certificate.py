import base64
import hashlib
import json
import math
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import segno

from tests.releases import released
from tests.unit.privacy.conftest import gaussian_plan, make_schema
from understudy.errors import CertificateError
from understudy.privacy import keys
from understudy.privacy.budget import Guarantee
from understudy.privacy.certificate import (
    ADJACENCIES,
    Certificate,
    issue,
    recompute,
    seal,
    sign,
    verify,
)
from understudy.privacy.certificate_page import to_html, to_markdown
from understudy.privacy.events import Gaussian, NonPrivate, SubsampledGaussian
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import PlanEntry, SpendingPlan


def certify(plan=None, schema=None, noise=None, **ledger):
    facts = {"guarantee": Guarantee(math.inf, 1e-6), "population": 10_000, "max_runs": 2} | ledger
    plan = gaussian_plan() if plan is None else plan
    grant = Ledger.in_memory(facts.pop("guarantee"), **facts).charge(
        plan, label="run", noise=noise or NoiseSource.secure()
    )
    return issue(grant, schema or make_schema(), method="spectral", public_inputs={"context": "ab" * 32})


@pytest.fixture
def key():
    return keys.create("holder")


@pytest.fixture
def release(tmp_path, key):
    folder = tmp_path / "release"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "synthetic.parquet").write_bytes(b"synthetic")
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder, seal(certify(), folder, key)


def failed(checks):
    return [check.name for check in checks if not check.ok]


# --- what it says ------------------------------------------------------------------------------------------


def test_the_first_field_is_the_status_and_says_private():
    body = json.loads(certify().dumps())
    assert next(iter(body)) == "status"
    assert body["status"] == "private"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"schema": make_schema("overlapping-window")}, "not private: protects no person"),
        ({"noise": NoiseSource.seeded(1)}, "not private: reproducible noise"),
        ({"plan": gaussian_plan(0.2, epsilon=1000.0)}, "not private: epsilon is above 20"),
        (
            {"plan": SpendingPlan((PlanEntry("x", NonPrivate("raw gradients")),), Guarantee(math.inf, 5e-7))},
            "not private: raw gradients",
        ),
        (
            {
                "plan": gaussian_plan(delta=1e-3, epsilon=1.0),
                "guarantee": Guarantee(2.0, 1e-2),
                "reproduction": "Jordon et al. 2019",
            },
            "not private: delta as in the paper being reproduced (Jordon et al. 2019)",
        ),
    ],
    ids=["overlapping windows", "seeded noise", "large epsilon", "non-private event", "a paper's delta"],
)
def test_a_release_that_is_not_private_says_so_first(changes, reason):
    certificate = certify(**changes)
    assert certificate.status.startswith(reason)
    assert not certificate.is_private
    assert reason in certificate.sentence()


def test_the_unit_and_the_relation_are_in_words_and_the_sentence_is_plain():
    certificate = certify()
    assert certificate.unit == make_schema().unit.sentence()
    assert "Add or remove" in certificate.adjacency
    assert "times likelier" in certificate.sentence()


def test_epsilon_is_stated_at_three_deltas_and_for_replacement():
    certificate = certify()
    deltas = [at for at, _ in certificate.epsilon_at_delta]
    assert deltas == pytest.approx([5e-8, 5e-7, 5e-6])
    costs = [cost for _, cost in certificate.epsilon_at_delta]
    assert costs[0] > costs[1] == certificate.epsilon > costs[2]
    assert certificate.replace_one_epsilon > 2 * certificate.epsilon * 0.99


def test_what_was_executed_versions_noise_ledger_and_public_inputs_are_stated():
    ledger = Ledger.in_memory(Guarantee(2.0, 1e-6), max_runs=2)
    grant = ledger.charge(gaussian_plan(), label="run", noise=NoiseSource.secure())
    released(grant, "mean", np.zeros((1, 1)))
    certificate = issue(grant, make_schema(), method="spectral", overrides={"few_units": "public test data"})
    assert certificate.executed == {"mean": 1}
    assert "dp-accounting" in certificate.versions
    assert certificate.noise.startswith("AES-128-CTR")
    assert certificate.ledger["kind"] == "in-memory"
    assert ledger.knows(certificate.ledger["head"])
    assert certificate.overrides == {"few_units": "public test data"}
    assert certificate.not_protected
    assert certificate.threat_model


def test_a_certificate_survives_a_round_trip_through_its_file(release):
    folder, certificate = release
    assert Certificate.load(folder) == certificate
    unlimited = certify(plan=SpendingPlan((PlanEntry("x", NonPrivate("raw")),), Guarantee(math.inf, 5e-7)))
    assert Certificate.loads(unlimited.dumps()) == unlimited


@pytest.mark.parametrize("text", ["", "[]", "{}", "not json", '{"status": "private"}'])
def test_a_text_that_is_no_certificate_is_refused(text):
    with pytest.raises(CertificateError):
        Certificate.loads(text)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("status", None),
        ("unit", 7),
        ("population_size", "many"),
        ("noise_is_secure", "yes"),
        ("epsilon", [1.0]),
        ("epsilon_at_delta", [[1e-7]]),
        ("events", {"type": "Gaussian"}),
        ("events", ["Gaussian"]),
        ("executed", {"mean": "once"}),
        ("overrides", {"few_units": {}}),
        ("files", {"model": None}),
        ("signature", 7),
    ],
)
def test_a_field_of_another_type_is_refused(field, value):
    body = json.loads(certify().dumps()) | {field: value}
    with pytest.raises(CertificateError, match="wrong form"):
        Certificate.loads(json.dumps(body))


def test_a_text_that_is_nested_too_deeply_is_refused():
    with pytest.raises(CertificateError, match="not a certificate: JSON"):
        Certificate.loads("[" * 100_000)


def test_a_certificate_without_an_end_is_refused(tmp_path):
    (tmp_path / "certificate.json").symlink_to("/dev/zero")
    with pytest.raises(CertificateError, match="no readable certificate"):
        Certificate.load(tmp_path)


def test_a_missing_certificate_is_refused(tmp_path):
    with pytest.raises(CertificateError, match="no readable certificate"):
        Certificate.load(tmp_path)


# --- verify ------------------------------------------------------------------------------------------------


def test_an_honest_release_passes_every_check(release, key):
    folder, certificate = release
    assert failed(verify(certificate, folder)) == []
    assert failed(verify(Certificate.load(folder), folder, [key.public])) == []


@pytest.mark.parametrize("target", ["/dev/zero", "nowhere", ".", "model.safetensors"])
def test_a_release_with_a_link_in_it_fails(release, target):
    folder, certificate = release
    (folder / "link").symlink_to(target)
    assert failed(verify(certificate, folder)) == ["files"]


def test_a_signer_that_is_no_key_fails(release, key):
    folder, certificate = release
    assert failed(verify(replace(certificate, signer="é"), folder)) == ["signature", "signer"]


def test_epsilon_can_be_recomputed_from_the_certificate_alone(release):
    assert recompute(release[1]) == pytest.approx(release[1].epsilon, rel=1e-9)


@pytest.mark.parametrize(
    "edit",
    [
        {"epsilon": 0.5},
        {"delta": 1e-9},
        {"unit": "Everybody is protected."},
        {"events": ({"type": "Gaussian", "noise_multiplier": 50.0, "count": 1},)},
        {"replace_one_epsilon": 0.1},
        {"method": "magic"},
        {"files": {}},
        {"not_protected": ()},
    ],
    ids=lambda edit: next(iter(edit)),
)
def test_an_edited_certificate_fails(release, edit):
    folder, certificate = release
    assert "signature" in failed(verify(replace(certificate, **edit), folder))


def test_an_epsilon_edited_and_signed_again_still_fails_by_one_percent(release, key):
    folder, certificate = release
    near = sign(replace(certificate, epsilon=certificate.epsilon * 0.98), key)
    assert failed(verify(near, folder)) == ["epsilon"]
    rounded = sign(replace(certificate, epsilon=certificate.epsilon * 0.995), key)
    assert failed(verify(rounded, folder)) == []


@pytest.mark.parametrize(
    ("edit", "check"),
    [
        ({"replace_one_epsilon": 0.1}, "other figures"),
        ({"epsilon_at_delta": ((5e-8, 0.1),)}, "other figures"),
        ({"unit_kind": "overlapping-window"}, "status"),
        ({"unit_kind": "Overlapping-Window"}, "status"),
        ({"adjacency": "Two datasets are neighbours if they are equal."}, "neighbours"),
        ({"adjacency": ADJACENCIES["values"]}, "neighbours"),
        ({"events": ({"type": "Gaussian", "noise_multiplier": 5.2, "count": 1, "relation": "values"},)}, "neighbours"),
        ({"labels": ()}, "account"),
        ({"executed": {"statistic": 1000}}, "account"),
        ({"executed": {"something else": 1}}, "account"),
        ({"arithmetic": {"statistic": "idealised"}}, "arithmetic"),
        ({"noise_is_secure": False}, "status"),
        ({"overrides": {"reproduction": "a paper"}}, "status"),
        ({"status": "very private"}, "status"),
        ({"events": ({"type": "Magic"},)}, "epsilon"),
        ({"population_size": 10}, None),
        ({"population_size": 10**9}, "epsilon"),
    ],
)
def test_a_certificate_that_contradicts_itself_fails_even_if_signed(release, key, edit, check):
    folder, certificate = release
    names = failed(verify(sign(replace(certificate, **edit), key), folder))
    assert names == ([check] if check else [])


@pytest.mark.parametrize("change", ["alter", "add", "remove"])
def test_an_altered_extra_or_missing_file_fails_and_is_named(release, change):
    folder, certificate = release
    if change == "alter":
        (folder / "data" / "synthetic.parquet").write_bytes(b"Synthetic")
    elif change == "add":
        (folder / "data" / "extra.csv").write_text("x")
    else:
        (folder / "model.safetensors").unlink()
    (check,) = [check for check in verify(certificate, folder) if not check.ok]
    assert check.name == "files"
    assert any(name in check.detail for name in ("synthetic.parquet", "extra.csv", "model.safetensors"))


def test_a_foreign_signature_fails(release):
    """Re-signed by another key: the signature is genuine, the signer is not trusted."""
    folder, certificate = release
    trusted = keys.trusted()
    forged = sign(replace(certificate, method="magic"), keys.create("mallory"))
    assert failed(verify(forged, folder, trusted)) == ["signer"]
    assert "keys trust" in next(check.detail for check in verify(forged, folder, trusted) if not check.ok)


def test_without_any_trusted_key_the_signer_is_unknown_and_named(release, key):
    folder, certificate = release
    checks = verify(certificate, folder, [])
    assert failed(checks) == ["signer"]
    assert key.public.fingerprint in checks[-1].detail
    assert checks[-1].unknown


def test_a_signer_other_than_the_ones_named_is_unknown(release):
    folder, certificate = release
    (check,) = [check for check in verify(certificate, folder, [keys.create("other").public]) if not check.ok]
    assert (check.name, check.unknown, check.revoked) == ("signer", True, False)


def test_a_revoked_signer_fails_whatever_was_named(release, key):
    folder, certificate = release
    keys.revoke(key.public.hexadecimal, "the laptop was stolen")
    for named in (None, [key.public]):
        (check,) = [check for check in verify(certificate, folder, named) if not check.ok]
        assert (check.name, check.unknown, check.revoked) == ("signer", False, True)
        assert "the laptop was stolen" in check.detail


def test_a_key_signs_until_its_last_day(release, key):
    folder, certificate = release
    day = certificate.issued["at"][:10]
    for until, holds in ((day, True), ("2999-01-01", True), ("2001-01-01", False)):
        trusted = [replace(key.public, until=until)]
        (check,) = [check for check in verify(certificate, folder, trusted) if check.name == "signer"]
        assert (check.ok, check.revoked) == (holds, not holds)
    dateless = sign(replace(certificate, issued={}), key)
    (check,) = [check for check in verify(dateless, None, trusted) if check.name == "signer"]
    assert check.revoked


def test_a_certificate_says_when_by_whom_and_for_what_it_was_issued(plan):
    from understudy.data.schema import Issuer, Schema

    issuer = Issuer(name="City Energy", purpose="load forecasts", contact="privacy@city.example")
    schema = replace(make_schema(), issuer=issuer)
    grant = Ledger.in_memory(Guarantee(2.0, 1e-6), max_runs=2).charge(plan, label="run", noise=NoiseSource.secure())
    certificate = issue(grant, Schema.loads(schema.dumps()), method="mean")
    assert certificate.issued.pop("at").endswith("+00:00")
    assert certificate.issued == {
        "name": "City Energy", "purpose": "load forecasts", "contact": "privacy@city.example",
    }  # fmt: skip
    assert "load forecasts" in to_markdown(certificate)


def test_a_signature_moved_to_another_certificate_fails(release, key):
    folder, certificate = release
    other = sign(certify(plan=gaussian_plan(9.0)), key)
    forged = replace(other, signature=certificate.signature, files=certificate.files)
    assert "signature" in failed(verify(forged, folder))


def test_an_unsigned_certificate_fails(release):
    folder, certificate = release
    assert failed(verify(sign(certificate, None), folder)) == ["signature", "signer"]


def test_sealing_leaves_no_half_written_file(release):
    folder, _ = release
    assert sorted(path.name for path in folder.iterdir()) == ["certificate.json", "data", "model.safetensors"]


# --- the page for a regulator ------------------------------------------------------------------------------


@pytest.mark.parametrize("render", [to_markdown, to_html])
def test_the_page_says_what_is_protected_from_whom_and_how_measured(render, release):
    page = render(release[1])
    for words in ("privacy unit", "trust model", "privacy loss parameters", "proportionality", "hazards"):
        assert words in page
    assert "Replace-one" in page
    shown = re.sub(r"<style>.*?</style>|<svg.*?</svg>|<[^>]+>", " ", page, flags=re.DOTALL)
    assert len(shown.split()) < 1100


def test_the_page_shows_the_hash_of_the_file_as_text_and_as_a_code(release):
    folder, certificate = release
    digest = hashlib.sha256((folder / "certificate.json").read_bytes()).hexdigest()
    page = to_html(certificate)
    assert digest in page
    assert digest in to_markdown(certificate)
    assert segno.make(f"sha256:{digest}", error="m", micro=False).svg_inline(border=2, omitsize=True) in page


def test_the_page_lets_in_its_style_and_nothing_else(release):
    page = to_html(release[1])
    (sheet,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    assert base64.b64encode(hashlib.sha256(sheet.encode()).digest()).decode() in page
    assert "default-src 'none'" in page
    assert not re.search(r"<script|<link|<img|\sstyle=|(?:href|src)=", page)


@pytest.mark.parametrize("render", [to_markdown, to_html])
def test_the_page_does_not_say_that_rows_stay_uncounted_where_they_can_be_counted(render):
    plan = SpendingPlan((PlanEntry("rows", Gaussian(10.0, relation="values")),), Guarantee(3.0, 5e-7))
    counted, usual = render(certify(plan=plan)), render(certify())
    assert "takes part" in counted
    assert "row count" not in counted
    assert "takes part" not in usual
    assert "row count" in usual


def test_names_cannot_smuggle_markup_into_the_page():
    evil = replace(certify(), population="<script>alert(1)</script>", method="| **x** |")
    assert "<script>" not in to_html(evil)
    assert "<script>" not in to_markdown(evil)
    assert "| **x** |" not in to_markdown(evil)


def test_a_release_that_is_not_private_is_marked_on_the_page():
    assert 'class="status not"' in to_html(certify(noise=NoiseSource.seeded(1)))


def test_sampled_training_is_described_by_its_parameters():
    plan = SpendingPlan((PlanEntry("sgd", SubsampledGaussian(0.01, 2.0, 100)),), Guarantee(3.0, 5e-7))
    assert "sampling\\_rate = 0.01" in to_markdown(certify(plan=plan))


def test_nothing_read_means_nothing_spent():
    certificate = certify(plan=SpendingPlan((), Guarantee(1.0, 5e-7)))
    assert certificate.epsilon == 0
    assert certificate.status == "private"
    assert "No private data was read" in to_markdown(certificate)


def test_many_gaussians_of_a_plan_are_one_epsilon():
    plan = SpendingPlan((PlanEntry("a", Gaussian(9.0)), PlanEntry("b", Gaussian(9.0))), Guarantee(1.0, 5e-7))
    assert certify(plan=plan).epsilon == pytest.approx(certify(plan=gaussian_plan(9.0, count=2)).epsilon)


def test_the_sentence_never_promises_more_than_the_figures() -> None:
    said = replace(certify(), epsilon=1.2341, delta=1.33e-5).sentence()
    assert "epsilon = 1.24" in said
    assert "3.44 times" in said  # e to the 1.2341 is 3.4353
    assert "a chance of 1.4e-05" in said
    assert "epsilon = 1)" in replace(certify(), epsilon=0.9999997).sentence()


def test_the_page_never_shows_less_than_the_certificate_states(release):
    """The sentence and the page say the same figure, rounded up."""
    _, certificate = release
    odd = replace(certificate, epsilon=1.2341, delta=1.0049e-6, replace_one_epsilon=2.4681)
    thin = "&#8239;"
    for page, small in ((to_markdown(odd), "1.01e-06"), (to_html(odd), f"1.01{thin}×{thin}10<sup>−6</sup>")):
        assert f"1.24 at {small}" in page
        assert "2.47" in page
        assert "epsilon = 1.24" in page
        assert "1.23" not in page


def test_verify_needs_neither_torch_nor_the_slow_parts_of_scipy(release):
    """In a process of its own, because tests import everything."""
    folder, _ = release
    code = (
        "import sys\nfrom understudy.api.checking import verify\nimport understudy.cli.verify\n"
        f"assert all(check.ok for check in verify({str(folder)!r}))\n"
        "slow = ('torch', 'scipy.stats', 'scipy.optimize', 'scipy.signal', 'sklearn', 'matplotlib')\n"
        "print([name for name in slow if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr
