"""How large code is, and in which words it is written: ``python tests/size.py tracker/learned``.

``python tests/size.py --lower`` lowers the budgets of tests/budgets.toml to what the folders have.

Lines of files and of code, named constants, kernels, the file with most lines, functions with many arguments,
classes with many fields that change; and words of names for which the field has a term, each with how often a
name holds it. Docstrings, comments and blank lines are no code: budgets count none of them.
"""

import ast
import io
import json
import re
import subprocess
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
BUDGETS = REPOSITORY / "tests" / "budgets.toml"
REPLACED = frozenset((
    "linking", "linkmodel", "follower", "before", "strange", "alone", "swept", "headings",
    "look", "closely", "weigh", "weighed", "chained", "futures", "bridges", "untangle", "exchanged",
    "chosen", "told", "tell", "trust", "chance", "doubt", "foretold", "crowd",
    "pace", "rehearsal", "drawn", "survey", "census", "settled", "fuller", "restarts", "overlooked",
    "sought", "flight", "sober", "sobriety", "families", "parting", "kin", "generations", "lives",
    "means", "found", "learnt", "relink", "choice", "lap", "usual", "fewest",
))  # fmt: skip
"""Words of names that have a term of the field in their place. Odds and the gain of a filter
are such terms, known and follow names of the interface."""
ARGUMENTS = 8
"""Of a function that is no kernel, at most."""
MUTABLE = 5
"""Fields of a class that may change, at most."""
SLACK, LEAST_SLACK = 0.01, 3
"""Share and number by which a budget may exceed its folder: a little less needs no change of the table."""
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
"""Of a CUDA source."""
_CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]*")
_KERNEL = re.compile(r"\b(kernel|inner_kernel|njit|jit|vectorize|guvectorize|stencil)\b")


@dataclass
class Size:
    """Counts over some files: lines, lines of code, constants, kernels, mutable classes, replaced words."""

    files: int = 0
    lines: int = 0
    code: int = 0
    constants: int = 0
    kernels: int = 0
    largest: list = field(default_factory=lambda: [0, ""])
    many_arguments: list[str] = field(default_factory=list)
    mutable_classes: list[str] = field(default_factory=list)
    replaced_words: dict[str, int] = field(default_factory=dict)


def sized(paths: list[Path]) -> Size:
    """Count folders and files.

    Examples
    --------
    >>> sized([Path(__file__)]).constants > 3
    True
    """
    size, words = Size(), Counter[str]()
    files = {file for path in paths for file in ([path] if path.is_file() else path.rglob("*.py"))}
    for path in sorted(files):
        text = path.read_text("utf-8")
        tree, lines = ast.parse(text), text.count("\n")
        size.files += 1
        size.lines += lines
        size.code += code_of_python(text)
        size.largest = max(size.largest, [lines, str(path)])
        size.constants += sum(1 for _ in constants(tree))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                kernel = any(_KERNEL.search(ast.unparse(mark)) for mark in node.decorator_list)
                size.kernels += kernel
                given = len(node.args.posonlyargs + node.args.args + node.args.kwonlyargs)
                if not kernel and given > ARGUMENTS:
                    size.many_arguments.append(f"{path}:{node.lineno} {node.name} ({given})")
            elif isinstance(node, ast.ClassDef) and changing(node) > MUTABLE:
                size.mutable_classes.append(f"{path}:{node.lineno} {node.name} ({changing(node)})")
        words.update(word for name in names(tree) for word in parts(name) if word in REPLACED)
    size.replaced_words = dict(words.most_common())
    return size


def code_of_python(text: str) -> int:
    r"""Lines of code: all but blank lines, comments, docstrings and other texts that stand alone.

    Examples
    --------
    >>> code_of_python("x = 1  # one\n\n# two\ndef f():\n    'Three.'\n    return x\n")
    3
    """
    lines = text.split("\n")
    left_out = {number for number, line in enumerate(lines, 1) if not line.strip()}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and not token.line[: token.start[1]].strip():
            left_out.add(token.start[0])
    for node in ast.walk(ast.parse(text)):
        alone = node.value if isinstance(node, ast.Expr) else None
        if isinstance(alone, ast.Constant) and isinstance(alone.value, str):
            left_out.update(range(alone.lineno, (alone.end_lineno or alone.lineno) + 1))
    return len(lines) - len(left_out)


def code_of_cuda(text: str) -> int:
    r"""Lines of code of a CUDA source: all but blank lines and lines of comments.

    Examples
    --------
    >>> code_of_cuda("int x;  // one\n\n/* two\n three */\nint y;\n")
    2
    """
    return sum(bool(line.strip()) for line in _COMMENT.sub("", text).split("\n"))


def constants(tree: ast.Module) -> Iterator[str]:
    """Named numbers of a module, and defaults of its options; names of types and of texts are none."""
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            named = [name for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
            numbers = [n for n in ast.walk(node.value) if isinstance(n, ast.Constant) and _number(n.value)]
            if numbers:
                yield from (name.id for name in named if _CONSTANT.fullmatch(name.id))
        elif isinstance(node, ast.ClassDef) and node.name.endswith("Options"):
            for row in node.body:
                if isinstance(row, ast.AnnAssign) and row.value is not None:
                    yield ast.unparse(row.target)


def changing(node: ast.ClassDef) -> int:
    """Fields of a class that change: those of a dataclass that is not frozen, or attributes set on self."""
    marks = " ".join(ast.unparse(mark) for mark in node.decorator_list)
    if "dataclass" in marks:
        return 0 if "frozen=True" in marks else sum(isinstance(row, ast.AnnAssign) for row in node.body)
    found = set()
    for part in ast.walk(node):
        if isinstance(part, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            targets = part.targets if isinstance(part, ast.Assign) else [part.target]
            found |= {ast.unparse(name) for target in targets for name in ast.walk(target)}
    return sum(name.startswith("self.") and name.count(".") == 1 for name in found)


def names(tree: ast.Module) -> Iterator[str]:
    """Names that a module gives: functions, classes, arguments, variables and fields."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def parts(name: str) -> list[str]:
    """The words of a name.

    Examples
    --------
    >>> parts("_LinkModel"), parts("first_look2")
    (['link', 'model', 'linkmodel'], ['first', 'look', 'firstlook'])
    """
    words = [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)]
    return [*words, "".join(words)] if len(words) > 1 else words


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def budgets() -> dict[str, dict[str, int | str]]:
    """The most lines of code, named constants and kernels of each folder, without its folders."""
    return tomllib.loads(BUDGETS.read_text("utf-8"))


def counted(folder: str) -> dict[str, int]:
    """Lines of code, constants and kernels of a folder's sources that git knows, those of CUDA as well."""
    words = ["git", "ls-files", "--", *(f":(glob){folder}/*.{end}" for end in ("py", "cu", "cuh"))]
    listed = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    paths = [path for name in listed.splitlines() if (path := REPOSITORY / name).exists()]
    size = sized([path for path in paths if path.suffix == ".py"])
    texts = [path.read_text("utf-8") for path in paths if path.suffix != ".py"]
    return {
        "code": size.code + sum(map(code_of_cuda, texts)),
        "constants": size.constants,
        "kernels": size.kernels + sum(text.count("__global__") for text in texts),
    }


def differences(folder: str) -> list[str]:
    """In what a folder exceeds its budget, and which of its budgets are higher than they need be."""
    now, found = counted(folder), []
    for key, most in budgets()[folder].items():
        if not isinstance(most, int):
            continue
        if now[key] > most:
            found.append(
                f"over budget: {folder} has {now[key]} ({key}), its budget is {most}. Remove some; to raise "
                "the budget, add the line `raised` with the reason to tests/budgets.toml."
            )
        elif most > now[key] * (1 + SLACK) + LEAST_SLACK:
            found.append(f"above need: {folder} has {now[key]} ({key}). Run `python tests/size.py --lower`.")
    return found


def folders() -> list[str]:
    """Every folder with sources that git knows."""
    listed = subprocess.run(
        ["git", "ls-files", "*.py", "*.cu", "*.cuh"], cwd=REPOSITORY, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    return sorted({str(Path(name).parent) for name in listed.stdout.splitlines()})


def lower() -> None:
    """Write budgets that are no higher than what the folders have; a folder without a budget gets none."""
    rows = []
    for folder, budget in budgets().items():
        now = counted(folder)
        if not now["code"]:
            continue
        rows.append(f'["{folder}"]')
        rows += [
            f"{key} = {json.dumps(value)}" if isinstance(value, str) else f"{key} = {min(value, now[key])}"
            for key, value in budget.items()
        ]
        rows.append("")
    heads = [line for line in BUDGETS.read_text("utf-8").splitlines() if line.startswith("#")]
    BUDGETS.write_text("\n".join([*heads, "", *rows]), "utf-8")


if __name__ == "__main__":
    if sys.argv[1:] == ["--lower"]:
        lower()
        sys.exit()
    sys.stdout.write(json.dumps(asdict(sized([Path(word) for word in sys.argv[1:]])), indent=1) + "\n")
