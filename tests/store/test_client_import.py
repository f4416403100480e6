"""Importing qdrant-client without building its schemas: rag/store/qdrant/__init__.py."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pydantic import BaseModel, ValidationError

_IMPORTS = """
import sys
from pydantic import BaseModel
rebuild = BaseModel.__dict__["model_rebuild"]
import rag.store.qdrant
from qdrant_client import models
assert BaseModel.__dict__["model_rebuild"] is rebuild
assert "rich" not in sys.modules and "httpx._main" not in sys.modules
print(models.Filter.__pydantic_complete__, models.Filter(must=[]).must, models.Filter.__pydantic_complete__)
"""


def test_a_model_is_built_when_it_is_first_used() -> None:
    printed = subprocess.run([sys.executable, "-c", _IMPORTS], check=True, capture_output=True, text=True).stdout

    assert printed.split() == ["False", "[]", "True"]


def test_all_of_them_can_be_built_and_validate() -> None:
    from qdrant_client.http.models import models

    own = [one for one in vars(models).values() if getattr(one, "__module__", "") == models.__name__]
    classes = [one for one in own if isinstance(one, type) and issubclass(one, BaseModel)]
    for one in classes:
        one.model_rebuild()

    assert len(classes) > 300
    assert all(one.__pydantic_complete__ for one in classes)
    with pytest.raises(ValidationError):
        models.Filter(must="no condition", unknown=1)
