"""Dates in the forms that pages use."""

from __future__ import annotations

import pytest

from rag.reading.extraction.bylines import iso_date


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("2024-03-05", "2024-03-05"),
        ("2024-03-05T08:30:00Z", "2024-03-05T08:30:00+00:00"),
        ("2024-03-05T08:30:00.123+0800", "2024-03-05T08:30:00+08:00"),
        ("2024-03-05 08:30", "2024-03-05T08:30:00"),
        ("Tue, 05 Mar 2024 08:30:00 GMT", "2024-03-05T08:30:00+00:00"),
        ("发布时间：2024年3月5日 08:30", "2024-03-05"),
        ("二〇二四年三月二十一日", "2024-03-21"),
        ("2024/3/5", "2024-03-05"),
        ("2024.03.05", "2024-03-05"),
        ("20240305", "2024-03-05"),
        ("Posted on March 5th, 2024 by Ada", "2024-03-05"),
        ("5 Sept 2024", "2024-09-05"),
        ("03/05/2024", ""),
        ("2024-13-40", ""),
        ("2024年13月5日", ""),
        ("yesterday", ""),
        ("", ""),
    ],
)
def test_forms(text: str, date: str) -> None:
    assert iso_date(text) == date
