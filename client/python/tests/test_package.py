"""The package as a whole."""

import inspect
import pathlib
import re
import subprocess
import sys
import tomllib

import pytest
from server import ROOT

import maxsimd
from maxsimd import compat
from maxsimd.compat import colpali_engine, maxsim_cpu, pylate

PROJECT = pathlib.Path(__file__).resolve().parents[1]


def test_imports_neither_torch_nor_ml_dtypes():
    code = "import maxsimd, sys; print(*{'torch', 'ml_dtypes'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""


@pytest.mark.parametrize("name", maxsimd.__all__)
def test_every_public_name_is_described(name):
    public = getattr(maxsimd, name)
    if name == "__version__":
        return
    assert public.__doc__
    assert public.__module__.startswith("maxsimd")
    for member_name, member in vars(public).items():
        if not member_name.startswith("_") and inspect.isfunction(member):
            assert member.__doc__, member_name


@pytest.mark.parametrize("module", [compat, colpali_engine, maxsim_cpu, pylate])
def test_every_drop_in_is_described(module):
    assert module.__doc__
    for name in module.__all__:
        assert getattr(module, name).__doc__, name


def test_both_clients_take_the_same(monkeypatch):
    for name in ("__init__", "rerank", "rerank_stream", "info", "health"):
        sync, other = (getattr(c, name) for c in (maxsimd.Client, maxsimd.AsyncClient))
        assert list(inspect.signature(sync).parameters) == list(inspect.signature(other).parameters)
        for parameter in ("default", "kind"):
            values = [
                [getattr(p, parameter) for p in inspect.signature(f).parameters.values()]
                for f in (sync, other)
            ]
            assert values[0] == values[1]


def test_the_version_is_the_servers():
    cmake = (ROOT / "CMakeLists.txt").read_text()
    assert f"VERSION {maxsimd.__version__} " in cmake


def test_only_three_packages_at_run_time():
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    names = {re.match(r"[a-z]+", dependency).group() for dependency in project["dependencies"]}
    assert names == {"grpcio", "numpy", "protobuf"}


def test_the_license_is_the_repositorys():
    assert (PROJECT / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_the_readmes_example_runs(target):
    readme = (PROJECT / "README.md").read_text()
    [example] = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    assert "127.0.0.1:50051" in example
    code = example.replace("127.0.0.1:50051", target)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert len(run.stdout.splitlines()) == 2
