"""Figures that the DP-aware AdaLN-Zero paper prints, to compare with (Tables 1, 4 to 9 and 13 to 17).

Its own meter is not public, so the rows of `adaln-power` stand beside another household; errors are in deviations here,
and imputation errors of that meter seem to be in kilowatts there (see the ranges of R²), so only orders compare.
"""

Printed = dict[str, float]
_METER = "adaln-power"
_COLUMNS = ("impute_rmse", "impute_mape", "impute_mae", "forecast_rmse", "forecast_js", "forecast_spec")

# Tables 1, 8 and 9, by study, variant and noise multiplier. The fifth column of Table 9 is a Wasserstein distance.
_ROWS: dict[tuple[str, str, float | None], tuple[float, ...]] = {
    ("adaln-power", "non-private", None): (0.584, 1.174, 0.476, 0.208, 0.767, 1.484e-4),
    ("adaln-power", "dp-vanilla", 0.03): (3.034, 5.673, 2.391, 0.556, 0.736, 7.848e-4),
    ("adaln-power", "dp-aware", 0.03): (1.804, 3.541, 1.411, 0.296, 0.684, 2.900e-4),
    ("adaln-power", "dp-vanilla", 0.05): (3.498, 9.339, 3.110, 0.567, 0.643, 1.650e-3),
    ("adaln-power", "dp-aware", 0.05): (2.019, 4.970, 1.987, 0.423, 0.636, 8.558e-4),
    ("adaln-power", "dp-vanilla", 0.1): (5.787, 11.674, 4.702, 1.637, 0.833, 1.902e-2),
    ("adaln-power", "dp-aware", 0.1): (2.718, 5.267, 2.122, 0.671, 0.757, 3.240e-3),
    ("adaln-power", "dp-vanilla", 0.2): (6.812, 12.645, 5.148, 1.646, 0.794, 1.592e-2),
    ("adaln-power", "dp-aware", 0.2): (4.689, 8.406, 3.442, 1.262, 0.732, 1.052e-2),
    ("adaln-etth1", "non-private", None): (0.310, 2.35, 0.210, 0.245, 0.610, 2.10e-4),
    ("adaln-etth1", "dp-vanilla", 0.1): (0.780, 5.90, 0.520, 0.655, 0.880, 1.85e-3),
    ("adaln-etth1", "dp-aware", 0.1): (0.560, 4.10, 0.380, 0.465, 0.780, 9.60e-4),
    ("adaln-ettm1", "non-private", None): (0.355, 2.80, 0.240, 0.295, 0.640, 2.60e-4),
    ("adaln-ettm1", "dp-vanilla", 0.1): (0.945, 6.80, 0.625, 0.805, 0.920, 2.15e-3),
    ("adaln-ettm1", "dp-aware", 0.1): (0.685, 4.90, 0.455, 0.565, 0.820, 1.20e-3),
}


# Tables 6 and 7, all figures of the meter: forecasting, then imputing.
_WHOLE = ("mae", "rmse", "mape", "r2", "kl", "js", "ws", "ks", "mmd")
_FORECAST: dict[tuple[str, float | None], tuple[float, ...]] = {
    ("non-private", None): (0.155, 0.208, 1.90, 0.861, 0.980, 0.767, 0.605, 0.215, 1.48e-2),
    ("dp-vanilla", 0.03): (0.430, 0.556, 4.85, 0.422, 1.122, 0.736, 0.820, 0.260, 3.90e-2),
    ("dp-aware", 0.03): (0.235, 0.296, 3.10, 0.741, 1.025, 0.684, 0.700, 0.230, 2.70e-2),
    ("dp-vanilla", 0.05): (0.448, 0.567, 5.10, 0.383, 1.081, 0.643, 0.840, 0.270, 4.80e-2),
    ("dp-aware", 0.05): (0.325, 0.423, 4.00, 0.603, 1.052, 0.636, 0.810, 0.258, 4.10e-2),
    ("dp-vanilla", 0.1): (1.280, 1.637, 12.9, -0.105, 1.555, 0.833, 1.458, 0.390, 1.90e-1),
    ("dp-aware", 0.1): (0.520, 0.671, 6.10, 0.353, 1.256, 0.757, 0.982, 0.310, 9.00e-2),
    ("dp-vanilla", 0.2): (1.310, 1.646, 13.4, -0.122, 1.480, 0.794, 1.386, 0.370, 1.70e-1),
    ("dp-aware", 0.2): (1.000, 1.262, 10.1, 0.052, 1.347, 0.732, 1.205, 0.330, 1.35e-1),
}
_IMPUTE: dict[tuple[str, float | None], tuple[float, ...]] = {
    ("non-private", None): (0.476, 0.584, 1.17, 0.775, 0.900, 0.660, 0.560, 0.190, 1.20e-2),
    ("dp-vanilla", 0.03): (2.391, 3.034, 5.67, -0.950, 1.210, 0.820, 0.760, 0.240, 3.20e-2),
    ("dp-aware", 0.03): (1.411, 1.804, 3.54, -0.250, 1.030, 0.740, 0.670, 0.220, 2.40e-2),
    ("dp-vanilla", 0.05): (3.110, 3.498, 9.34, -1.400, 1.260, 0.835, 0.790, 0.250, 3.80e-2),
    ("dp-aware", 0.05): (1.987, 2.019, 4.97, -0.600, 1.090, 0.760, 0.700, 0.230, 2.90e-2),
    ("dp-vanilla", 0.1): (4.702, 5.787, 11.67, -4.100, 1.520, 0.910, 1.080, 0.310, 9.50e-2),
    ("dp-aware", 0.1): (2.122, 2.718, 5.27, -1.100, 1.280, 0.820, 0.860, 0.260, 5.80e-2),
    ("dp-vanilla", 0.2): (5.148, 6.812, 12.65, -5.200, 1.600, 0.930, 1.250, 0.340, 1.20e-1),
    ("dp-aware", 0.2): (3.442, 4.689, 8.41, -2.200, 1.430, 0.870, 1.050, 0.300, 8.50e-2),
}


def row(study: str, variant: str, sigma: float | None) -> Printed:
    """Returns the published figures of one variant at one noise multiplier; empty where there are none."""
    figures = _ROWS.get((study, variant, sigma), ())
    columns = [*_COLUMNS[:4], "forecast_ws", _COLUMNS[5]] if study == "adaln-ettm1" else _COLUMNS
    whole = {} if study != _METER else _whole(variant, sigma)
    return {**whole, **dict(zip(columns, figures, strict=False))}


def _whole(variant: str, sigma: float | None) -> Printed:
    tasks = {"forecast": _FORECAST, "impute": _IMPUTE}
    return {
        f"{task}_{column}": figure
        for task, lines in tasks.items()
        for column, figure in zip(_WHOLE, lines.get((variant, sigma), ()), strict=False)
    }


# Tables 4, 5, 10, 11, 13, 14, 15, 16 and 17, by table, variant and noise multiplier.
_ABLATIONS: dict[tuple[str, str, float | None], Printed] = {
    ("components", "nothing bounded", 0.05): {"forecast_rmse": 0.567, "forecast_js": 0.723, "impute_rmse": 3.498},
    ("components", "only c", 0.05): {"forecast_rmse": 0.510, "forecast_js": 0.691, "impute_rmse": 3.998},
    ("components", "only AdaLN", 0.05): {"forecast_rmse": 0.495, "forecast_js": 0.677, "impute_rmse": 2.337},
    ("components", "both", 0.05): {"forecast_rmse": 0.423, "forecast_js": 0.636, "impute_rmse": 2.019},
    ("operator", "tanh", 0.05): {"forecast_rmse": 0.423, "forecast_js": 0.636, "impute_rmse": 2.019},
    ("operator", "soft", 0.05): {"forecast_rmse": 0.425, "forecast_js": 0.639, "impute_rmse": 2.025},
    ("operator", "hard", 0.05): {"forecast_rmse": 0.452, "forecast_js": 0.662, "impute_rmse": 2.120},
    ("operator", "straight-through", 0.05): {"forecast_rmse": 0.467, "forecast_js": 0.674, "impute_rmse": 2.180},
    ("operator", "tanh", 0.2): {"forecast_rmse": 1.262, "forecast_js": 0.732, "impute_rmse": 4.689},
    ("operator", "soft", 0.2): {"forecast_rmse": 1.270, "forecast_js": 0.737, "impute_rmse": 4.710},
    ("operator", "hard", 0.2): {"forecast_rmse": 1.310, "forecast_js": 0.752, "impute_rmse": 4.860},
    ("operator", "straight-through", 0.2): {"forecast_rmse": 1.330, "forecast_js": 0.760, "impute_rmse": 4.950},
    ("tightness", "loose", 0.05): {"forecast_rmse": 0.452, "forecast_js": 0.661, "impute_rmse": 2.231},
    ("tightness", "medium", 0.05): {"forecast_rmse": 0.423, "forecast_js": 0.636, "impute_rmse": 2.019},
    ("tightness", "tight", 0.05): {"forecast_rmse": 0.441, "forecast_js": 0.651, "impute_rmse": 2.672},
    ("tightness", "too-tight", 0.05): {"forecast_rmse": 0.562, "forecast_js": 0.750, "impute_rmse": 3.626},
    ("non-private", "none", None): {"impute_rmse": 0.584, "impute_js": 0.66, "forecast_rmse": 0.208},
    ("non-private", "loose", None): {"impute_rmse": 0.590, "impute_js": 0.67, "forecast_rmse": 0.212},
    ("non-private", "medium", None): {"impute_rmse": 0.583, "impute_js": 0.66, "forecast_rmse": 0.207},
    ("non-private", "tight", None): {"impute_rmse": 0.600, "impute_js": 0.68, "forecast_rmse": 0.218},
    ("non-private", "too-tight", None): {"impute_rmse": 0.720, "impute_js": 0.78, "forecast_rmse": 0.290},
    ("clip", "dp-vanilla, C = 0.5", 0.1): {"forecast_rmse": 2.726, "forecast_js": 0.978},
    ("clip", "dp-aware, C = 0.5", 0.1): {"forecast_rmse": 1.145, "forecast_js": 0.826},
    ("clip", "dp-vanilla, C = 1", 0.1): {"forecast_rmse": 1.673, "forecast_js": 0.833},
    ("clip", "dp-aware, C = 1", 0.1): {"forecast_rmse": 0.671, "forecast_js": 0.757},
    ("clip", "dp-vanilla, C = 2", 0.1): {"forecast_rmse": 1.344, "forecast_js": 0.787},
    ("clip", "dp-aware, C = 2", 0.1): {"forecast_rmse": 0.446, "forecast_js": 0.664},
}

# Tables 2, 3 and 12, by variant and noise multiplier.
_GRADIENT_COLUMNS = (
    "s_other_p95", "s_cond_p95", "s_total_p95", "s_other_p99", "s_cond_p99", "s_total_p99",
    "clipped", "eta_mean", "eta_p10", "eta_p50",
)  # fmt: skip
_GRADIENTS = {
    ("vanilla", 0.03): (25.0, 17.8, 31.1, 58.4, 49.5, 76.5, 0.561, 0.73, 0.18, 0.86),
    ("aware", 0.03): (24.6, 16.4, 29.7, 57.5, 43.7, 72.0, 0.554, 0.75, 0.22, 0.88),
    ("vanilla", 0.05): (24.1, 19.6, 31.4, 62.4, 62.4, 89.2, 0.570, 0.72, 0.16, 0.84),
    ("aware", 0.05): (24.2, 18.9, 30.9, 55.6, 55.5, 77.3, 0.568, 0.73, 0.18, 0.85),
    ("vanilla", 0.1): (23.8, 21.4, 32.1, 62.8, 68.3, 92.7, 0.582, 0.71, 0.14, 0.83),
    ("aware", 0.1): (24.4, 20.3, 31.2, 54.9, 57.4, 83.1, 0.578, 0.72, 0.16, 0.84),
    ("vanilla", 0.2): (20.3, 21.7, 30.0, 57.0, 64.5, 86.6, 0.589, 0.70, 0.12, 0.82),
    ("aware", 0.2): (20.3, 20.4, 28.9, 47.4, 54.8, 71.9, 0.582, 0.72, 0.15, 0.84),
}


def ablation(table: str, variant: str, sigma: float | None) -> Printed:
    """Returns the published figures of one ablation."""
    return _ABLATIONS.get((table, variant, sigma), {})


def gradients(variant: str, sigma: float) -> Printed:
    """Returns the published quantiles of gradient norms."""
    return dict(zip(_GRADIENT_COLUMNS, _GRADIENTS.get((variant, sigma), ()), strict=False))
