from __future__ import annotations

from pathlib import Path

import pytest

from rag.config import Settings, load_settings
from rag.errors import ConfigError
from rag.retrieval.strategies import DEFAULT_STRATEGY, STRATEGIES


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)


def test_the_environment_goes_before_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / ".env"
    file.write_text("RAG_LIBRARY=from-file\nLLM_MODEL=qwen3:8b\nSOMETHING_ELSE=1\n")
    monkeypatch.setenv("RAG_LIBRARY", "from-env")
    settings = load_settings(file)
    assert (settings.rag_library, settings.llm_model) == ("from-env", "qwen3:8b")
    assert load_settings(file, rag_library="given").rag_library == "given"


def test_keys_are_not_printed() -> None:
    settings = load_settings(None, llm_api_key="sk-secret", qdrant_api_key="q-secret")
    assert "secret" not in repr(settings)
    assert settings.llm_api_key.get_secret_value() == "sk-secret"


def test_private_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FETCH_ALLOW_PRIVATE_HOSTS", "wiki.local:8080, [::1]:80 127.0.0.1:9000")
    assert load_settings(None).fetch_allow_private_hosts == (("wiki.local", 8080), ("::1", 80), ("127.0.0.1", 9000))


def test_who_may_enter(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings(None).auth_allow == ()
    monkeypatch.setenv("AUTH_ALLOW", "Ann@Example.com, @team.example\n*")
    assert load_settings(None).auth_allow == ("ann@example.com", "@team.example", "*")
    issuers = ("https://id.example", "https://login.microsoftonline.com/0b1c/v2.0")
    monkeypatch.setenv("AUTH_VERIFIED_ISSUERS", ", ".join(issuers))
    assert load_settings(None).auth_verified_issuers == issuers


def test_under_which_names_the_app_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings(None).allowed_hosts == ()
    monkeypatch.setenv("ALLOWED_HOSTS", "Pages.LAN., 192.168.1.20\n[fd00::7]")
    assert load_settings(None).allowed_hosts == ("pages.lan", "192.168.1.20", "fd00::7")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ALLOWED_HOSTS", "pages.lan:8501"),
        ("ALLOWED_HOSTS", "http://pages.lan"),
        ("ALLOWED_HOSTS", "*"),
        ("AUTH_ALLOW", "example.com"),
        ("AUTH_ALLOW", "\u212aim@example.com"),
        ("AUTH_VERIFIED_ISSUERS", "login.microsoftonline.com"),
        ("AUTH_VERIFIED_ISSUERS", "https://login.microsoftonline.com/common/v2.0"),
        ("AUTH_ALLOW", "a@b@c"),
        ("AUTH_ALLOW", "*.example"),
        ("RAG_LIBRARY", "Has Spaces"),
        ("RAG_LIBRARY", "../up"),
        ("QDRANT_URL", "localhost:6333"),
        ("STRATEGY", "clever"),
        ("LLM_BASE_URL", "ftp://x"),
        ("LLM_BASE_URL", "http://x:99999/v1"),
        ("SEARXNG_URL", "http://x:9y"),
        ("CHUNKER", "random"),
        ("FETCH_ALLOW_PRIVATE_HOSTS", "127.0.0.1"),
        ("FETCH_ALLOW_PRIVATE_HOSTS", "host:99999"),
        ("DATABASE_URL", "mysql://ann:hidden@db/pages"),
        ("TRACE_HEADERS", "sk-hidden"),
    ],
)
def test_a_wrong_setting_is_one_sentence_that_names_it(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError) as caught:
        load_settings(None)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value) and "hidden" not in str(caught.value)


def test_every_strategy_can_be_set_and_an_unknown_one_is_refused_with_the_choices() -> None:
    assert load_settings(None).strategy == DEFAULT_STRATEGY
    for name in STRATEGIES:
        assert load_settings(None, strategy=name).strategy == name
    with pytest.raises(ConfigError) as caught:
        load_settings(None, strategy="clever")
    assert all(name in str(caught.value) for name in STRATEGIES)
