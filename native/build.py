"""Compile the native library, with the standard library of Python only.

    python native/build.py [FOLDER] [--force]

puts it, and a note of what it is, into ``torch_multiclass/_native`` or FOLDER. The compiler is ``$CXX`` where that is
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
TOPICS = ("chain", "viterbi")
FLAGS = (
    "-std=c++17 -O3 -fPIC -fvisibility=hidden -fno-exceptions -fno-rtti -fno-sanitize=all "
    "-fno-math-errno -fno-trapping-math -ffp-contract=fast -Wno-psabi -Wno-ignored-attributes"
).split()
LEVELS = {
    "sse4": ["-msse4.1", "-DTM_BYTES=16"],
    "avx2": ["-mavx2", "-mfma", "-DTM_BYTES=32"],
    "avx512": ["-mavx2", "-mfma", "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-DTM_BYTES=64"],
}
"""The levels of x86 processors; others have one, ``base``."""


def library_name() -> str:
    """What the library's file is called on this system."""
    return "torch_multiclass" + {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")


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
        found.append([sys.executable, "-m", "ziglang", "c++"])
    return found


def fingerprint(command: list[str]) -> str:
    """Changes with the sources and with how they are compiled."""
    made_of = [*command, *FLAGS, os.environ.get("CXXFLAGS", ""), repr(levels())]
    texts = [path.read_bytes() for path in sorted(SOURCES.iterdir()) if path.suffix in (".cpp", ".h")]
    return hashlib.sha256(b"\0".join([*map(str.encode, made_of), *texts])).hexdigest()


def run(command: list[str]) -> None:
    """A step of the compiler; what it says comes out only if it fails."""
    subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def compile_library(command: list[str], out: Path) -> None:
    """All topics at all levels, in one library."""
    extra = shlex.split(os.environ.get("CXXFLAGS", ""))
    with tempfile.TemporaryDirectory() as folder:
        objects = []

        def compile_one(source: str, name: str, flags: list[str]) -> None:
            objects.append(str(Path(folder) / f"{name}.o"))
            run([*command, *FLAGS, *flags, *extra, "-c", str(SOURCES / f"{source}.cpp"), "-o", objects[-1]])

        compile_one("level", "level", [])
        for level, flags in levels().items():
            for topic in TOPICS:
                compile_one(topic, f"{topic}-{level}", [*flags, f"-DTM_LEVEL={level}"])
        link = [*command, "-shared", *extra, *objects, "-o", str(Path(folder) / out.name)]
        strip = [] if sys.platform == "darwin" else ["-s"]
        run([*link, *strip])
        out.parent.mkdir(exist_ok=True)
        part = out.with_name(f"{out.name}.{os.getpid()}")
        shutil.copyfile(Path(folder) / out.name, part)
        os.replace(part, out)


def build(target: Path = TARGET, *, force: bool = False) -> Path | None:
    """Make the library unless it is there already; returns its path, or None where there is no compiler for it."""
    out, note = target / library_name(), target / "library.json"
    reason = "no C++ compiler found"
    for command in compilers():
        made_of = fingerprint(command)
        try:
            if not force and out.exists() and json.loads(note.read_text())["made_of"] == made_of:
                return out
        except (OSError, ValueError, LookupError):
            pass
        try:
            compile_library(command, out)
        except (OSError, subprocess.CalledProcessError) as error:
            said = (getattr(error, "stdout", None) or str(error)).strip().splitlines()
            reason = f"{shlex.join(command)}: {said[0] if said else error}"
            continue
        facts = {
            "abi": abi(),
            "machine": platform.machine(),
            "sha256": hashlib.sha256(out.read_bytes()).hexdigest(),
            "made_of": made_of,
            "compiler": shlex.join(command),
        }
        part = note.with_name(f"{note.name}.{os.getpid()}")
        part.write_text(json.dumps(facts, indent=1) + "\n")
        os.replace(part, note)
        return out
    print(f"torch_multiclass: built without the native library ({reason}); torch computes everything", file=sys.stderr)
    return None


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=TARGET)
    parser.add_argument("--force", action="store_true", help="compile even if nothing has changed")
    options = parser.parse_args()
    found = build(options.folder, force=options.force)
    if found is not None:
        print(f"{found} ({found.stat().st_size // 1024} KiB)")


if __name__ == "__main__":
    main()
