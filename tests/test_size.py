"""What tests/size.py counts."""

from pathlib import Path

from size import parts, sized

CODE = """
from numba import njit
_LEAST = 1e-3
NAMES = ("a", "b")

@njit(cache=True)
def swept(a, b, c, d, e, f, g, h, i):
    return a

def first_look(a, b, c, d, e, f, g, h, i):
    trust = a
    return trust

class Learning:
    def __init__(self):
        self.a = self.b = self.c = self.d = self.e = self.f = 0

class LearnOptions:
    rounds: int = 3
"""


def test_a_module_is_counted(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text(CODE)
    found = sized([tmp_path])
    assert (found.files, found.lines, found.kernels, found.constants) == (1, CODE.count("\n"), 1, 2)
    assert [line.split()[1] for line in found.many_arguments] == ["first_look"]
    assert [line.split()[1] for line in found.mutable_classes] == ["Learning"]
    assert found.replaced_words == {"swept": 1, "look": 1, "trust": 1}


def test_words_of_a_name() -> None:
    assert parts("LinkModel") == ["link", "model", "linkmodel"]
    assert parts("_SOBER") == ["sober"]
