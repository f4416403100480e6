"""Settings, read once from `.env` and the environment, then frozen and passed on by `rag.app`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from rag.errors import ConfigError
from rag.text import lazy_regex

_LIBRARY = lazy_regex(r"[a-z0-9][a-z0-9_-]{0,39}", re.ASCII)
_HOST_PORT = lazy_regex(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s:/@\[\]]+):(?P<port>[0-9]{1,5})", re.ASCII)
_HOST = lazy_regex(r"[a-z0-9_.-]+|\[?[0-9a-f:.]+\]?", re.ASCII)
_ACCESS_ENTRY = lazy_regex(r"\*|[^\s@,]*@[^\s@,]+")

CHUNKERS = ("semantic", "recursive", "fixed", "markdown", "parent", "breakpoints")
"""The names in `rag.ingest.chunking.CHUNKERS`, which this module cannot import."""

STRATEGIES = ("auto", "classic", "dense", "hybrid", "hyde", "keyword", "mmr", "multi_query", "rerank", "weighted")
"""The names in `rag.retrieval.strategies.STRATEGIES`, which this module cannot import."""


class Settings(BaseSettings):
    """All settings. Each field is read from the environment variable of the same name in upper case."""

    model_config = SettingsConfigDict(frozen=True, extra="ignore", env_ignore_empty=True)

    rag_data_dir: Path = Path("data")
    rag_library: str = "main"
    qdrant_url: str = ""
    qdrant_api_key: SecretStr = SecretStr("")
    qdrant_shards: int = Field(default=1, ge=1, le=100)
    qdrant_replicas: int = Field(default=1, ge=1, le=20)
    qdrant_write_consistency: int = Field(default=1, ge=1, le=20)
    qdrant_on_disk: bool = False
    qdrant_quantization: Literal["off", "scalar", "binary"] = "off"
    embedding_model: str = "builtin"
    embedding_base_url: str = ""
    embedding_api_key: SecretStr = SecretStr("")
    embedding_timeout: float = Field(default=3.0, gt=0, le=60)
    chunker: str = "semantic"
    chunk_size: float = Field(default=900.0, ge=200, le=4000)
    strategy: str = "rerank"
    dense_weight: float = Field(default=0.75, ge=0, le=1)
    sparse_weight: float = Field(default=0.25, ge=0, le=1)
    rrf_k: float = Field(default=2.0, ge=1, le=1000)
    fetch_k: int = Field(default=40, ge=1, le=500)
    context_characters: int = Field(default=4000, ge=500, le=100_000)
    reranker_model: str = ""
    reranker_base_url: str = ""
    reranker_api_key: SecretStr = SecretStr("")
    pre_ranker: Literal["weighted", "rrf"] = "rrf"
    pre_top_k: int = Field(default=0, ge=0, le=500)
    verifier_model: str = ""
    searxng_url: str = ""
    tavily_api_key: SecretStr = SecretStr("")
    tools_code: bool = False
    ocr: Literal["auto", "off"] = "auto"
    llm_model: str = ""
    llm_base_url: str = ""
    llm_api_key: SecretStr = SecretStr("")
    fast_llm_model: str = ""
    own_models: bool = True
    llm_temperature: float = Field(default=0.0, ge=0.0, le=2.0)
    llm_timeout: float | None = Field(default=None, gt=0.0)
    llm_context_tokens: int = Field(default=16_000, ge=2_000)
    llm_price_in: float | None = Field(default=None, ge=0.0)
    llm_price_out: float | None = Field(default=None, ge=0.0)
    answer_max_calls: int | None = Field(default=None, ge=1)
    answer_max_tokens: int | None = Field(default=None, ge=100)
    answer_max_seconds: float | None = Field(default=None, gt=0.0)
    evaluate_answers: Literal["off", "sample", "all"] = "off"
    evaluation_answers_per_day: int = Field(default=1_000, ge=0)
    answers_per_person: int = Field(default=4, ge=1)
    jobs_per_person: int = Field(default=50, ge=1)
    database_url: SecretStr = SecretStr("")
    trace_url: str = ""
    trace_headers: SecretStr = SecretStr("")
    trace_content: Literal["none", "ids", "text"] = "ids"
    trace_langsmith: bool = False
    allowed_hosts: Annotated[tuple[str, ...], NoDecode] = ()
    web_search_except: Annotated[tuple[str, ...], NoDecode] = ()
    auth_allow: Annotated[tuple[str, ...], NoDecode] = ()
    auth_admins: Annotated[tuple[str, ...], NoDecode] = ()
    auth_verified_issuers: Annotated[tuple[str, ...], NoDecode] = ()
    auth_groups_claim: str = "groups"
    import_record_mb: float = Field(default=1.0, gt=0, le=100)
    import_records: int = Field(default=100_000, ge=1)
    upload_session_mb: int = Field(default=200, ge=1)
    upload_total_mb: int = Field(default=500, ge=1)
    fetch_per_host: int = Field(default=2, ge=1, le=64)
    fetch_delay: float = Field(default=0.1, ge=0, le=60)
    fetch_timeout: float = Field(default=30.0, ge=1, le=300)
    fetch_allow_private_hosts: Annotated[tuple[tuple[str, int], ...], NoDecode] = ()

    @field_validator("rag_data_dir")
    @classmethod
    def _make_absolute(cls, value: Path) -> Path:
        return value.expanduser().absolute()

    @field_validator("rag_library")
    @classmethod
    def _check_library_name(cls, value: str) -> str:
        if not _LIBRARY.fullmatch(value):
            raise ValueError("must be 1 to 40 of a-z, 0-9, - and _, and begin with a letter or a digit")
        return value

    @field_validator("chunker", "strategy")
    @classmethod
    def _check_name(cls, value: str, info: ValidationInfo) -> str:
        names = CHUNKERS if info.field_name == "chunker" else STRATEGIES
        if value not in names:
            raise ValueError(f"must be one of {', '.join(names)}")
        return value

    @model_validator(mode="after")
    def _check_combinations(self) -> Settings:
        if self.dense_weight + self.sparse_weight == 0:
            problem = "must be above 0 where SPARSE_WEIGHT is 0"
            raise ConfigError("setting_invalid", name="DENSE_WEIGHT", value="0", problem=problem)
        if self.embedding_base_url and self.embedding_model == "builtin":
            problem = "must name the model of the service at EMBEDDING_BASE_URL"
            raise ConfigError("setting_invalid", name="EMBEDDING_MODEL", value="builtin", problem=problem)
        return self

    @field_validator("qdrant_url")
    @classmethod
    def _parse_nodes(cls, value: str) -> str:
        nodes = [cls._check_http_url(node) for node in filter(None, re.split(r"[\s,]+", value))]
        if len({urlsplit(node).path for node in nodes}) > 1:
            raise ValueError("must be nodes of one cluster, with the same path")
        return ",".join(nodes)

    @field_validator("llm_base_url", "searxng_url", "embedding_base_url", "reranker_base_url", "trace_url")
    @classmethod
    def _check_http_url(cls, value: str) -> str:
        if value and not re.fullmatch(r"https?://[^\s/]+.*", value, re.ASCII):
            raise ValueError("must begin with http:// or https:// and name a host")
        urlsplit(value).port  # noqa: B018 - reading it raises ValueError if it is invalid
        return value.rstrip("/")

    @field_validator("database_url")
    @classmethod
    def _check_postgres_url(cls, value: SecretStr) -> SecretStr:
        if value.get_secret_value() and not value.get_secret_value().startswith(("postgresql://", "postgres://")):
            raise ValueError("must begin with postgresql://")
        return value

    @field_validator("trace_headers")
    @classmethod
    def _check_headers(cls, value: SecretStr) -> SecretStr:
        if not all(re.fullmatch(r"[\w-]+=[\x20-\x7e]+", pair.strip(), re.ASCII) for pair in split_headers(value)):
            raise ValueError("must be NAME=VALUE pairs with commas between")
        return value

    @field_validator("web_search_except", mode="before")
    @classmethod
    def _split_names(cls, value: Any) -> Any:
        return tuple(filter(None, map(str.strip, value.split(",")))) if isinstance(value, str) else value

    @field_validator("allowed_hosts", mode="before")
    @classmethod
    def _parse_hosts(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        names = tuple(name.lower() for name in re.split(r"[\s,]+", value) if name)
        if any(not _HOST.fullmatch(name) for name in names):
            raise ValueError("must be names or addresses without ports, such as pages.lan,192.168.1.20")
        return tuple(name.strip("[]").rstrip(".") for name in names)

    @field_validator("auth_allow", "auth_admins", "auth_verified_issuers", mode="before")
    @classmethod
    def _parse_access_rules(cls, value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, str):
            return value
        entries = tuple(filter(None, re.split(r"[\s,]+", value)))
        if info.field_name == "auth_verified_issuers":
            if any(not re.fullmatch(r"https?://[^\s/]+.*", issuer) or "/common/" in issuer for issuer in entries):
                raise ValueError("must be the addresses of issuers (https://id.example.com), each of one organisation")
            return entries
        if any(not entry.isascii() or not _ACCESS_ENTRY.fullmatch(entry) for entry in entries):
            raise ValueError("must be addresses (ann@example.com), domains (@example.com) or *, with commas between")
        return tuple(entry.lower() for entry in entries)

    @field_validator("fetch_allow_private_hosts", mode="before")
    @classmethod
    def _parse_host_ports(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        pairs = []
        for item in filter(None, re.split(r"[\s,]+", value)):
            match = _HOST_PORT.fullmatch(item)
            if not match or not 0 < int(match["port"]) < 65536:
                raise ValueError("must be host:port pairs with commas between, such as wiki.local:8080")
            pairs.append((match["host"].strip("[]").lower().rstrip("."), int(match["port"])))
        return tuple(pairs)

    @property
    def qdrant_urls(self) -> list[str]:
        """The URLs of the server's nodes; empty for the embedded engine."""
        return list(filter(None, self.qdrant_url.split(",")))

    @property
    def has_chat_model(self) -> bool:
        return bool(self.llm_model)


def split_headers(headers: SecretStr) -> list[str]:
    """Split TRACE_HEADERS into its NAME=VALUE pairs."""
    return list(filter(None, headers.get_secret_value().split(",")))


def load_settings(env_file: Path | None = Path(".env"), **overrides: Any) -> Settings:
    """Load the settings. Order of precedence: overrides, environment, `env_file`, defaults.

    Raises ConfigError for the first invalid value, with a message that names the setting.
    """
    try:
        return Settings(_env_file=env_file, **overrides)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]).upper() if first["loc"] else "?"
        secret = "KEY" in name or name in ("DATABASE_URL", "TRACE_HEADERS")
        value = "***" if secret else str(first["input"])
        problem = str(first["msg"]).removeprefix("Value error, ")
        raise ConfigError("setting_invalid", name=name, value=value, problem=problem) from error
