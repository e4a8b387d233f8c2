"""Figures of PPEM: Table 1, D.3 and D.4, with two sensitive attributes of Kaggle's table or fifty of MIMIC's.

The p-value of PPEM with DP is that of D.3; Table 1 rounds it to 0.
"""

CREDIT: dict[str, dict[str, float]] = {
    "ppem, lmdp": {
        "auroc": 0.922,
        "regression_mse": 0.184,
        "regression_r2": 0.822,
        "ksd": 220.2,
        "p_ksd": 0.0,
        "effect_mmd": 0.0530,
        "p_mmd": 0.02,
    },
    "ppem, sound 1": {
        "auroc": 0.872,
        "regression_mse": 0.656,
        "regression_r2": 0.368,
        "effect_mmd": 0.0571,
        "p_mmd": 0.01,
    },
    "ppem, marginal-dp (not private)": {"auroc": 0.903, "regression_mse": 0.602, "regression_r2": 0.421},
    "wgan-gp": {"auroc": 0.966, "regression_mse": 0.126, "regression_r2": 0.879, "effect_mmd": 0.0417, "p_mmd": 0.15},
    "energygan": {"auroc": 0.871, "regression_mse": 7.13, "regression_r2": -5.86, "effect_mmd": 0.5891, "p_mmd": 0.0},
    "steingan": {"auroc": 0.822, "regression_mse": 1.81, "regression_r2": -0.740, "effect_mmd": 0.1445, "p_mmd": 0.0},
    "dp-gan 1": {"auroc": 0.857, "regression_mse": 1.881, "regression_r2": -0.811, "effect_mmd": 0.0968, "p_mmd": 0.0},
    "pate-gan 1": {
        "auroc": 0.879,
        "regression_mse": 1.569,
        "regression_r2": -0.510,
        "effect_mmd": 0.1075,
        "p_mmd": 0.0,
    },
}
MIMIC: dict[str, dict[str, float]] = {"ppem, lmdp": {"ksd": 77.16, "p_ksd": 0.0}}  # the demo is too small for AUROCs
