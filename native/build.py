"""Compile the native library, with the standard library of Python only.

    python native/build.py [FOLDER] [--force]

puts one file for each level of the processor, and a note of what they are, into ``torch_multiclass/_native`` or FOLDER.
The compiler is ``$CXX`` where that is
set, else the first of c++, g++ and clang++ that runs, else the one of the package ``ziglang``. ``$CXXFLAGS`` are added.
Without a compiler nothing is made, one line says so, and the package does without.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCES = Path(__file__).resolve().parent
TARGET = SOURCES.parent / "torch_multiclass" / "_native"
NOTE = "library.json"
TOPICS = (
    "abi",
    "boost",
    "chain",
    "codes",
    "descend",
    "distances",
    "labellings",
    "layout",
    "online",
    "pairs",
    "rivals",
    "slack",
    "stump",
    "svm",
    "tree",
    "viterbi",
)
FLAGS = [
    *("-std=c++17", "-O3", "-fPIC", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti", "-fno-sanitize=all"),
    "-fno-tree-vectorize",  # the loops that matter are written in vectors; the others would be a fifth of the file
    *("-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast", "-Wno-psabi", "-Wno-ignored-attributes"),
    *([] if sys.platform == "win32" else ["-fno-asynchronous-unwind-tables"]),  # nothing is thrown through the loops
]
SMALLER = ("descend", "stump", "tree")
"""Topics whose loops are written as vectors, or are no work for them: -O3 would make them longer only."""
LEVELS = {
    "sse2": ["-DTM_BYTES=16"],
    "avx2": ["-mavx2", "-mfma", "-DTM_BYTES=32"],
    "avx512": ["-mavx2", "-mfma", "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-DTM_BYTES=64"],
}
"""The levels of x86 processors; others have one, ``base``."""


def abi() -> int:
    """The version of the interface that the sources have."""
    found = re.search(r"#define TM_ABI (\d+)", (SOURCES / "abi.h").read_text())
    assert found is not None
    return int(found[1])


def levels() -> dict[str, list[str]]:
    """The flags of each level that is compiled for this machine."""
    return LEVELS if platform.machine().lower() in ("x86_64", "amd64") else {"base": ["-DTM_BYTES=16"]}


def compilers() -> list[list[str]]:
    """The commands to try, in turn."""
    if os.environ.get("CXX"):
        return [shlex.split(os.environ["CXX"])]
    found = [[name] for name in ("c++", "g++", "clang++") if shutil.which(name)]
    if importlib.util.find_spec("ziglang") is not None:
        found.append([sys.executable, "-m", "ziglang", "c++", "-mcpu=baseline"])  # not what this machine has beside
    return found


def fingerprint(command: list[str]) -> str:
    """Changes with the sources and with how they are compiled."""
    made_of = [*command, *FLAGS, *SMALLER, os.environ.get("CXXFLAGS", ""), repr(levels())]
    texts = [path.read_bytes() for path in sorted(SOURCES.iterdir()) if path.suffix in (".cpp", ".h")]
    return hashlib.sha256(b"\0".join([*map(str.encode, made_of), *texts])).hexdigest()


def run(command: list[str]) -> None:
    """A step of the compiler; what it says comes out only if it fails."""
    subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def compile_level(command: list[str], level: str, flags: list[str], target: Path) -> Path:
    """All topics at one level, in one library."""
    extra = shlex.split(os.environ.get("CXXFLAGS", ""))
    suffix = {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")
    with tempfile.TemporaryDirectory() as folder:
        objects = [str(Path(folder) / f"{topic}.o") for topic in TOPICS]
        for topic, made in zip(TOPICS, objects, strict=True):
            size = ["-O2"] if topic in SMALLER else []
            run([*command, *FLAGS, *size, *flags, *extra, "-c", str(SOURCES / f"{topic}.cpp"), "-o", made])
        linked = Path(folder) / f"{level}{suffix}"
        strip = [] if sys.platform == "darwin" else ["-s"]
        run([*command, "-shared", *strip, *extra, *objects, "-o", str(linked)])
        return put(target / linked.name, linked.read_bytes())


def put(path: Path, content: bytes) -> Path:
    """Write a file so that whoever reads it finds the old or the new one."""
    path.parent.mkdir(exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}")
    part.write_bytes(content)
    os.replace(part, path)
    return path


def present(target: Path, made_of: str) -> list[Path]:
    """The files of a library that has been made of this already."""
    try:
        note = json.loads((target / NOTE).read_text())
        found = [target / name for name in note["sha256"]]
        return [*found, target / NOTE] if note["made_of"] == made_of and all(p.exists() for p in found) else []
    except (OSError, ValueError, LookupError):
        return []


def build(target: Path = TARGET, *, force: bool = False) -> list[Path]:
    """Make the library unless it is there already; returns its files, none where there is no compiler for it."""
    reason = "no C++ compiler found"
    for command in compilers():
        made_of = fingerprint(command)
        found = [] if force else present(target, made_of)
        if found:
            return found
        try:
            made = [compile_level(command, level, flags, target) for level, flags in levels().items()]
        except (OSError, subprocess.CalledProcessError) as error:
            said = error.stdout.strip() if isinstance(error, subprocess.CalledProcessError) else str(error)
            reason = f"{shlex.join(command)} failed{': ' if said else ''}{said.splitlines()[0] if said else ''}"
            continue
        facts = {
            "abi": abi(),
            "machine": platform.machine(),
            "sha256": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in made},
            "made_of": made_of,
            "compiler": shlex.join(command),
        }
        return [*made, put(target / NOTE, (json.dumps(facts, indent=1) + "\n").encode())]
    if target.is_dir():  # what is there was made of other sources, or by a compiler that is not to be used now
        for path in target.iterdir():
            if path.name == NOTE or path.name.split(".")[0] in (*LEVELS, "base"):
                path.unlink()
    print(f"torch_multiclass: built without the native library ({reason}); torch computes everything", file=sys.stderr)
    return []


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=TARGET)
    parser.add_argument("--force", action="store_true", help="compile even if nothing has changed")
    options = parser.parse_args()
    for path in build(options.folder, force=options.force):
        print(f"{path} ({path.stat().st_size / 1024:.0f} KiB)")


if __name__ == "__main__":
    main()
