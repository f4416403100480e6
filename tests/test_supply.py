"""What is installed is what was tested: locked with hashes, licensed, and confined in containers."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;]+)(?P<rest>(?:.*\\\n)*.*)", re.MULTILINE)
_HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pins(file: str) -> dict[str, str]:
    found = _PIN.finditer((ROOT / file).read_text("utf-8"))
    return {re.sub(r"[._]+", "-", one[1]).lower(): one[2] for one in found}


OPTIONAL = ("office", "ocr", "postgres", "bulk")
LOCKS = ("app", "torch", *OPTIONAL, "dev")


@pytest.fixture(scope="module")
def locked() -> dict[str, dict[str, str]]:
    return {name: pins(f"locks/{name}.txt") for name in LOCKS}


class TestLocks:
    def test_they_hold_what_the_requirements_pin(self, locked: dict[str, dict[str, str]]) -> None:
        app = {**locked["app"], **locked["torch"]}
        assert pins("requirements.txt").items() <= app.items()
        for name in OPTIONAL:
            assert pins(f"requirements-{name}.txt").items() <= locked[name].items()
        assert pins("requirements-dev.txt").items() <= {**app, **locked["dev"]}.items()

    def test_plain_pip_gets_the_same_versions(self, locked: dict[str, dict[str, str]]) -> None:
        assert pins("constraints.txt") == {name: pin for lock in locked.values() for name, pin in lock.items()}

    def test_every_release_has_the_hashes_of_its_files_for_every_platform(self) -> None:
        hashes = {}
        for name in LOCKS:
            for one in _PIN.finditer((ROOT / "locks" / f"{name}.txt").read_text("utf-8")):
                hashes[one[1]] = len(_HASH.findall(one["rest"]))
        assert min(hashes.values()) >= 1
        assert min(hashes[name] for name in ("lxml", "numpy", "pandas", "tokenizers", "torch")) > 10

    def test_torch_and_what_it_brings_stand_apart(self, locked: dict[str, dict[str, str]]) -> None:
        assert "torch" in locked["torch"]
        assert not [name for name in locked["app"] if name == "torch" or name.startswith(("nvidia", "cuda", "triton"))]

    def test_they_are_what_these_tests_ran_with(self, locked: dict[str, dict[str, str]]) -> None:
        found = {}
        own = {name: version for file, pins in locked.items() if file != "torch" for name, version in pins.items()}
        for name, wanted in own.items():
            try:
                found[name] = (version(name), wanted)
            except PackageNotFoundError:
                continue
        assert len(found) > 100
        assert not {name: pair for name, pair in found.items() if pair[0] != pair[1]}


class TestInstaller:
    @pytest.fixture
    def calls(self, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
        made: list[list[str]] = []
        monkeypatch.setattr(subprocess, "call", lambda command, **_: made.append(command) or 0)
        return made

    def install(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, cpu: bool, **options: Any) -> None:
        installer = script("install")
        monkeypatch.setattr(installer, "has_torch", lambda _: False)
        monkeypatch.setattr(installer, "wants_cpu_build", lambda: cpu)
        installer.install(tmp_path / "bin" / "python", **{"dev": True, **options})

    @pytest.mark.parametrize("cpu", [True, False])
    def test_all_is_checked_but_the_cpu_build_of_torch(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: list[list[str]], cpu: bool
    ) -> None:
        self.install(tmp_path, monkeypatch, cpu=cpu)
        unchecked = [command for command in calls if "--require-hashes" not in command]
        assert [command[-1] for command in unchecked] == ["torch==2.13.0+cpu"] * cpu
        assert all("--no-deps" in command for command in calls)
        files = {Path(one).stem for command in calls for one in command if one.endswith(".txt")}
        assert files == set(LOCKS) - ({"torch"} if cpu else set())

    def test_a_large_download_is_announced_with_a_way_around_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: list[list[str]], capsys: Any
    ) -> None:
        installer = script("install")
        monkeypatch.setattr(installer, "has_torch", lambda _: False)
        monkeypatch.setattr(installer, "has_nvidia_gpu", lambda: True)
        monkeypatch.setattr(installer.sys, "platform", "linux")
        installer.install_torch(tmp_path)
        assert "6 GB" in (said := capsys.readouterr().err) and "TORCH_BUILD=cpu" in said
        monkeypatch.setenv("TORCH_BUILD", "cpu")
        installer.install_torch(tmp_path)
        assert "GB" not in capsys.readouterr().err and calls[-1][-1] == "torch==2.13.0+cpu"

    @pytest.mark.parametrize("name", OPTIONAL)
    def test_what_is_optional_comes_when_it_is_asked_for(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: list[list[str]], name: str
    ) -> None:
        self.install(tmp_path, monkeypatch, cpu=True, dev=False)
        assert not any(f"{name}.txt" in argument for command in calls for argument in command)
        self.install(tmp_path, monkeypatch, cpu=True, dev=False, optional=[name])
        assert any(f"{name}.txt" in argument for argument in calls[-1])

    def test_a_second_call_does_nothing_until_a_lock_changes(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: list[list[str]]
    ) -> None:
        for _ in range(2):
            self.install(tmp_path, monkeypatch, cpu=True, dev=False)
        assert len(calls) == 2
        (tmp_path / ".installed").write_text("of other locks")
        self.install(tmp_path, monkeypatch, cpu=True, dev=False)
        assert len(calls) == 4

    def test_pip_refuses_a_file_with_another_hash(self, tmp_path: Path) -> None:
        """pip is called as the installer calls it: a package that doesn't match the lock is not installed."""
        package = tmp_path / "six-1.17.0-py2.py3-none-any.whl"
        package.write_bytes(b"PK\x05\x06" + bytes(18))
        lock = tmp_path / "lock.txt"
        lock.write_text(f"six==1.17.0 --hash=sha256:{'0' * 64}\n")
        pip = [*script("install").pip(Path(sys.executable)), "--no-deps", "--require-hashes", "--dry-run"]
        offline = ["--no-index", "--find-links", str(tmp_path), "--target", str(tmp_path / "out"), "-r", str(lock)]
        ran = subprocess.run([*pip, *offline], capture_output=True, text=True, check=False)
        assert ran.returncode != 0
        assert "THESE PACKAGES DO NOT MATCH THE HASHES" in ran.stderr


def test_a_licence_that_changes_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    notice = script("notice")
    assert notice.check() == 0
    monkeypatch.setattr(notice, "REVIEWED", {"xberg": ("MIT", "0" * 64)})
    with pytest.raises(SystemExit, match="another licence"):
        notice.check()


def test_the_notice_names_every_package_and_its_licence() -> None:
    notice = script("notice")
    written = (ROOT / "NOTICE").read_text("utf-8").splitlines()
    assert set(notice.rows()) <= set(written), "run `make lock`"
    told = {line.split(" ", 1)[0] for line in written if " | " in line}
    elsewhere = {"colorama", "httpx2-jsfetch"}  # for Windows and for browsers, where this does not run
    assert set(pins("locks/app.txt")) - told <= elsewhere
    assert not [line for line in written if re.search(r"\bA?GPL", line) and " OR " not in line]


def test_the_notice_holds_for_the_cuda_build_of_torch_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    toolkit = tmp_path / "cuda_toolkit-13.0.3.0.dist-info"
    toolkit.mkdir()
    (toolkit / "METADATA").write_text("Metadata-Version: 2.4\nName: cuda-toolkit\nVersion: 13.0.3.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert version("cuda-toolkit") == "13.0.3.0", "its metadata tell no licence"
    notice = script("notice")
    assert set(notice.rows()) <= set((ROOT / "NOTICE").read_text("utf-8").splitlines())


class TestContainers:
    CLUSTER = ("qdrant-2", "qdrant-3")
    TEAM = ("app-2", "proxy", "postgres")

    @pytest.fixture
    def services(self) -> Any:
        return yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))["services"]

    def test_each_is_confined(self, services: Any) -> None:
        assert set(services) == {"app", "qdrant", *self.CLUSTER, *self.TEAM}
        for one in services.values():
            assert one["read_only"] is True
            assert one["cap_drop"] == ["ALL"] and "cap_add" not in one and "privileged" not in one
            assert "no-new-privileges:true" in one["security_opt"]
            assert one["mem_limit"] and one["pids_limit"] > 0
            assert any(place.startswith("/tmp:size=") for place in one["tmpfs"])

    def test_what_they_write_lies_on_volumes(self, services: Any) -> None:
        volumes = {name: [place.split(":")[1] for place in one["volumes"]] for name, one in services.items()}
        assert services["app"]["environment"]["RAG_DATA_DIR"] in volumes["app"]
        for name in ("QDRANT__STORAGE__SNAPSHOTS_PATH", "QDRANT_INIT_FILE_PATH"):
            assert services["qdrant"]["environment"][name].startswith(f"{volumes['qdrant'][0]}/")

    def test_the_secrets_can_be_mounted_and_are_not_in_the_image(self, services: Any) -> None:
        assert "./.streamlit:/app/.streamlit:ro" in services["app"]["volumes"]
        assert ".streamlit/secrets.toml" in (ROOT / ".dockerignore").read_text("utf-8").split()

    def test_only_the_app_and_the_proxy_are_published_and_only_here(self, services: Any) -> None:
        published = {name: one["ports"] for name, one in services.items() if one.get("ports")}
        assert published == {"app": ["127.0.0.1:8501:8501"], "proxy": ["127.0.0.1:8500:8500"]}

    def test_the_team_has_two_apps_that_differ_in_their_data_alone(self, services: Any) -> None:
        assert [services[name]["profiles"] for name in self.TEAM] == [["team"]] * 3
        app, second, places = services["app"], services["app-2"], services["proxy"]["environment"]
        for key in ("build", "environment", "env_file", "healthcheck", "depends_on"):
            assert app[key] == second[key]
        assert {place.split(":")[0] for one in (app, second) for place in one["volumes"]} == {
            *("app-data", "app-2-data", "./.streamlit")
        }
        assert (places["APP_1"], places["APP_2"]) == ("app:8501", "app-2:8501")
        config = (ROOT / "deploy" / "haproxy.cfg").read_text("utf-8")
        assert set(re.findall(r'"\$\{(\w+)\}"', config)) == set(places)

    def test_the_profile_adds_two_nodes_to_the_one(self, services: Any) -> None:
        first, *others = (services[name] for name in ("qdrant", *self.CLUSTER))
        assert [one.get("profiles") for one in (first, *others)] == [None, ["cluster"], ["cluster"]]
        assert len({place.split(":")[0] for one in (first, *others) for place in one["volumes"]}) == 3
        settings = first["environment"]
        assert "QDRANT_BOOTSTRAP" not in settings
        for name, one in services.items():
            if one in others:
                own = {"QDRANT_URI": f"http://{name}:6335", "QDRANT_BOOTSTRAP": settings["QDRANT_URI"]}
                assert one["environment"] == {**settings, **own}
        noted = (ROOT / "docker-compose.yml").read_text("utf-8")
        assert re.search(r"#   QDRANT_NODES=(.*)", noted)[1].split(",") == [  # type: ignore[index]
            f"http://{name}:6333" for name in ("qdrant", *self.CLUSTER)
        ]

    def test_the_server_is_one_that_the_client_is_meant_for(self, services: Any) -> None:
        (image,) = {services[name]["image"].partition("@")[0] for name in ("qdrant", *self.CLUSTER)}
        server, client = (
            tuple(int(part) for part in version.split(".")[:2])
            for version in (image.partition(":v")[2], pins("requirements.txt")["qdrant-client"])
        )
        assert server[0] == client[0] and abs(server[1] - client[1]) <= 1

    def test_the_image_installs_by_hash_for_the_tested_python(self) -> None:
        image = (ROOT / "Dockerfile").read_text("utf-8")
        ci = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))
        tested = ci["jobs"]["checks"]["strategy"]["matrix"]["python-version"]
        assert re.search(r"^FROM python:(\d+\.\d+)-slim", image, re.MULTILINE)[1] == tested[0]  # type: ignore[index]
        assert "--require-hashes -r locks/app.txt" in image
        assert f'"torch=={pins("requirements.txt")["torch"]}+cpu"' in image
        for readme in ("README.md", "README.zh.md"):
            assert f"Python {tested[0]}" in (ROOT / readme).read_text("utf-8")


class TestPinning:
    DIGEST = "sha256:" + "ab12" * 16

    @pytest.fixture
    def pin(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
        for name in ("Dockerfile", "docker-compose.yml"):
            (tmp_path / name).write_bytes((ROOT / name).read_bytes())
        module = script("pin_images")
        monkeypatch.setattr(module, "ROOT", tmp_path)
        return module

    def docker(self, folder: Path, monkeypatch: pytest.MonkeyPatch, says: str) -> None:
        command = folder / "docker"
        command.write_text(f'#!/bin/sh\n[ "$3" = inspect ] && echo "{says}"\n')
        command.chmod(0o755)
        monkeypatch.setenv("PATH", str(folder), prepend=":")

    def test_each_image_gets_its_digest_and_a_new_one_replaces_it(
        self, pin: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.docker(tmp_path, monkeypatch, "sha256:" + "0" * 64)
        assert pin.main() == 0
        self.docker(tmp_path, monkeypatch, self.DIGEST)
        assert pin.main() == 0
        assert f"FROM python:3.11-slim@{self.DIGEST}\n" in (tmp_path / "Dockerfile").read_text()
        compose = yaml.safe_load((tmp_path / "docker-compose.yml").read_text())
        assert compose["services"]["qdrant"]["image"] == f"qdrant/qdrant:v1.19.0@{self.DIGEST}"

    def test_an_invalid_digest_is_not_written(
        self, pin: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.docker(tmp_path, monkeypatch, "<no value>")
        with pytest.raises(SystemExit, match="returned no digest"):
            pin.main()
        assert (tmp_path / "Dockerfile").read_bytes() == (ROOT / "Dockerfile").read_bytes()
