"""Every module can be imported where Python has nothing of Unix."""

import subprocess
import sys

SCRIPT = """
import importlib.util, os, pkgutil, signal, sys
import distributed, grpc, joblib.externals.loky, matplotlib, pyarrow, scipy, sklearn, torch.func  # mind their own ways
import understudy
del os.fork, os.register_at_fork, signal.SIGALRM
sys.modules.update(dict.fromkeys(("fcntl", "grp", "pwd", "resource", "termios")))
modules = [module.name for module in pkgutil.walk_packages(understudy.__path__, "understudy.")]
if os.environ.get("CI") != "true" and not all(map(importlib.util.find_spec, ("starlette", "uvicorn"))):
    modules = [name for name in modules if not name.startswith("understudy.app")]  # an environment of before the app
for name in modules:
    if not name.endswith("__main__"):
        importlib.import_module(name)
print(len(modules))
"""


def test_no_module_needs_unix_to_be_imported() -> None:
    ended = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) > 100
