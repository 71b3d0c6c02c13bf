"""CUDA kernels compile, where there is nvcc."""

import shutil
import subprocess

import pytest
from checkout import REPOSITORY

KERNELS = sorted(REPOSITORY.glob("tracker/**/*.cu"))


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.name)
def test_kernels_compile(path, tmp_path):
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("nvcc is not installed here")
    command = [nvcc, "-cubin", "-arch=sm_90", "-std=c++17", "-o", tmp_path / "kernel.cubin", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
