"""The habits of the project: workflows and hooks run what exists here, and a release is what it says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import release
import yaml

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))


def schema(name, *paths):
    "What a schema has to say about files."
    words = ["--builtin-schema", f"vendor.{name}", *map(str, paths)]
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", *words], capture_output=True, text=True
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_workflows_are_valid(tmp_path):
    bad = tmp_path / "bad.yml"
    bad.write_text(WORKFLOWS[0].read_text().replace("runs-on:", "runs_on:"))
    found = schema("github-workflows", *WORKFLOWS, bad)
    assert "runs_on" in found
    assert not [path for path in WORKFLOWS if str(path) in found], found


def test_workflows_run_targets_that_exist():
    steps = [
        step["run"]
        for path in WORKFLOWS
        for job in yaml.safe_load(path.read_text())["jobs"].values()
        for step in job["steps"]
        if "run" in step
    ]
    made = {target for step in steps for target in re.findall(r"\bmake ([\w-]+)", step)}
    assert {"lint", "test", "book", "dist"} <= made <= TARGETS
    assert any(".ci/run" in step for step in steps) and any("nox -s" in step for step in steps)


def test_publishing_needs_no_password():
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())["jobs"]
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert "secrets." not in "".join(path.read_text() for path in WORKFLOWS)


def test_hooks_are_those_of_this_repository():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    assert [repo["repo"] for repo in config["repos"]] == ["local"]
    for hook in config["repos"][0]["hooks"]:
        command, *words = hook["entry"].split()
        assert command.startswith(".venv/bin/") or (command == "make" and words[0] in TARGETS)


def test_every_target_is_explained():
    text = (ROOT / "Makefile").read_text()
    said = set(re.findall(r"^# make ([\w-]+) ", text, re.M))
    assert said == set(re.search(r"^\.PHONY: (.*)$", text, re.M)[1].split())


def test_blame_passes_over_commits_that_exist():
    if not (ROOT / ".git").exists():
        pytest.skip("no history here")
    for line in (ROOT / ".git-blame-ignore-revs").read_text().splitlines():
        if line and not line.startswith("#"):
            done = subprocess.run(["git", "cat-file", "-e", line], cwd=ROOT)
            shallow = (ROOT / ".git" / "shallow").exists()
            assert re.fullmatch(r"[0-9a-f]{40}", line) and (done.returncode == 0 or shallow)


def test_a_release_is_of_its_tag():
    release.check("0.2.0", "v0.2.0", "# Changelog\n\n## 0.2.0 (2026-12-01)\n")
    for tag, changelog in (
        ("v0.3.0", "## 0.2.0 (2026-12-01)"),
        ("v0.2.0", "## 0.2.0 (unreleased)"),
        ("v0.2.0", "## 0.1.0 (2026-12-01)"),
    ):
        with pytest.raises(ValueError, match="0.2.0"):
            release.check("0.2.0", tag, changelog)


def test_a_release_fills_the_placeholders():
    assert release.PLACEHOLDER in (ROOT / "pyproject.toml").read_text()
    others = set(re.findall(r'"(https?://[^"]*)"', (ROOT / "pyproject.toml").read_text()))
    assert all(url.startswith(release.PLACEHOLDER) for url in others)
