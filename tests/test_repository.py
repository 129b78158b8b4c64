"""No tracked file holds a secret, the address of a registry or a path of a machine."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SECRETS = (
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
    r"\bAKIA[0-9A-Z]{16}\b",  # keys of clouds, code hosts, registries and messengers by how they begin
    r"\bAIza[0-9A-Za-z_-]{35}\b",
    r"\bgh[pousr]_[0-9A-Za-z]{36}\b",
    r"\bgithub_pat_[0-9A-Za-z_]{22,}\b",
    r"\bglpat-[0-9A-Za-z_-]{20}\b",
    r"\bpypi-[0-9A-Za-z_-]{40,}",
    r"\bhf_[0-9A-Za-z]{30,}\b",
    r"\bsk-[0-9A-Za-z_-]{32,}\b",
    r"\bxox[abpr]-[0-9A-Za-z-]{10,}",
    r"\beyJ[0-9A-Za-z_-]{10,}\.eyJ[0-9A-Za-z_-]{10,}\.",
    r"://[^/\s:@\"'{}]+:[^/\s:@\"'{}]+@",  # a password in an address
    r"(?i:\b(password|passwd|api_?key|secret|access_?token)\s*[=:]\s*[\"'][^\"'{}<\s]{8,}[\"'])",
)
REGISTRIES = (
    r"https?://[^ \")]+/(simple|packages|debian)(/|$)",
    r"index-url *=",
    r"\b(files\.pythonhosted|pypi)\.org/",
)
MACHINES = (r"(?<![\w.])/(home|root|Users|work|opt)/[a-z]",)


def tracked() -> dict[Path, str]:
    """Every tracked file that is text."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    texts = {}
    for path in (ROOT / name for name in listed.stdout.split("\0") if name):
        if path.is_file() and b"\0" not in (content := path.read_bytes()):
            texts[path] = content.decode(errors="replace")
    return texts


def test_no_tracked_file_holds_a_secret_a_registry_or_a_path_of_a_machine():
    texts = tracked()
    assert len(texts) > 200
    pattern = re.compile("|".join(f"(?:{each})" for each in (*SECRETS, *REGISTRIES, *MACHINES)), re.MULTILINE)
    found = [
        (path.name, match[0])
        for path, text in texts.items()
        if path != Path(__file__)
        for match in pattern.finditer(text)
    ]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "AKIA" + "ABCDEFGHIJKLMNOP",
        "ghp_" + "a" * 36,
        "https://me:hunter2@" + "example.org",
        "api_key = " + '"0123456789abcdef"',
        "--index-url=" + "x",
        "https://files.pythonhosted" + ".org/x",
        " /home/" + "me",
        "'/work/" + "main'",
    ],
)
def test_what_must_not_be_there_is_recognised(text):
    assert any(re.search(each, text) for each in (*SECRETS, *REGISTRIES, *MACHINES))
