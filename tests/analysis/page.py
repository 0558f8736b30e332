"""The queries of docs/analysis.md, as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pandas

PAGE = Path(__file__).parents[2] / "docs/analysis.md"
BLOCK = re.compile(r"^```(sql|python)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NAME = re.compile(r"(?:--|#) (\w+)\n")


def blocks(language: str) -> list[tuple[str | None, str]]:
    """The blocks in a language, in order, each with the name that its first line gives it if it is a question."""
    found = [code for word, code in BLOCK.findall(PAGE.read_text()) if word == language]
    return [(name[1] if (name := NAME.match(code)) else None, code) for code in found]


def connection() -> duckdb.DuckDBPyConnection:
    """DuckDB with the views of the page."""
    duck = duckdb.connect()
    for name, code in blocks("sql"):
        if name is None:
            duck.execute(code)
    return duck


def in_duckdb() -> dict[str, pandas.DataFrame]:
    """What each question is answered in DuckDB, by its name. The tables are in `tables` in the working directory."""
    duck = connection()
    return {name: duck.execute(code).df() for name, code in blocks("sql") if name}


def in_pandas() -> dict[str, pandas.DataFrame]:
    """The same in pandas."""
    scope: dict = {}
    answers = {}
    for name, code in blocks("python"):
        exec(compile(code, f"{PAGE.name}: {name}", "exec"), scope)
        if name:
            answers[name] = scope["result"]
    return answers
