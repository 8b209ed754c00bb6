"""Generates maxsimd/v1/rerank_pb2.py, its types and rerank_pb2_grpc.py from the contract.

The contract is ../../proto in the repository and proto/ in a source distribution, which gets a copy.
"""

import pathlib
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_PROTO = "maxsimd/v1/rerank.proto"


def _find_proto_root(root: pathlib.Path) -> pathlib.Path:
    for candidate in (root / "proto", root.parents[1] / "proto"):
        if (candidate / _PROTO).is_file():
            return candidate
    raise FileNotFoundError(f"{_PROTO} is neither in {root}/proto nor in {root.parents[1]}/proto")


def _generate(proto_root: pathlib.Path, output: pathlib.Path) -> None:
    import grpc_tools
    from grpc_tools import protoc

    well_known = pathlib.Path(grpc_tools.__file__).parent / "_proto"
    if protoc.main([
        "protoc", f"-I{proto_root}", f"-I{well_known}", f"--python_out={output}",
        f"--pyi_out={output}", f"--grpc_python_out={output}", _PROTO,
    ]):  # fmt: skip
        raise RuntimeError(f"protoc failed on {proto_root / _PROTO}")


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = pathlib.Path(self.root)
        proto_root = _find_proto_root(root)
        if self.target_name == "sdist":
            build_data["force_include"][str(proto_root / _PROTO)] = f"proto/{_PROTO}"
            return
        _generate(proto_root, root / "src")
        build_data["artifacts"] += ["src/maxsimd/v1/*_pb2.py", "src/maxsimd/v1/*_pb2.pyi",
                                    "src/maxsimd/v1/*_pb2_grpc.py"]  # fmt: skip
