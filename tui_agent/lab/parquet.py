"""Rows as Parquet, and questions to them in SQL. The one place that knows pyarrow and DuckDB."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple, get_args, get_type_hints

from tui_agent import installed
from tui_agent.bounded_process import carried_out

RESULTS = "results.parquet"
"""The file in a folder of results."""
TABLE = "runs"
"""The name of the rows in SQL."""

Row = Mapping[str, object]


class ParquetError(Exception):
    """Rows cannot be written or asked; the message says why, and what to do."""


def columns_of(row: type) -> dict[str, type]:
    """The plain fields of a dataclass, each with its type."""
    kinds = {name: {*(get_args(hint) or (hint,))} - {NoneType} for name, hint in get_type_hints(row).items()}
    return {name: kind for name, (kind, *more) in kinds.items() if not more and kind in _KINDS}


def _encodable(value: object) -> object:
    """A name of a file may hold bytes that are no text."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


_GROUP = 10_000
"""Rows that are written together."""
_KINDS = {str: "string", bool: "bool_", int: "int64", float: "float64"}


@contextmanager
def rows_file(path: Path, columns: Mapping[str, type]) -> Iterator[Callable[[Iterable[Row]], None]]:
    """A new Parquet file at `path`, there once the block has ended; what is given takes rows. The same rows make the
    same file, however they come.

    Raises `ParquetError`.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise ParquetError(
            f"Parquet is written by pyarrow, which is not installed: {installed.adding('bench')}."
        ) from error
    schema = pa.schema([pa.field(name, getattr(pa, _KINDS[kind])()) for name, kind in columns.items()])
    partial = path.with_name(f"{path.name}.part")
    group: list[Row] = []
    try:
        with parquet.ParquetWriter(partial, schema) as writer:

            def add(rows: Iterable[Row]) -> None:
                for row in rows:
                    group.append({name: _encodable(value) for name, value in row.items()})
                    if len(group) == _GROUP:
                        write()

            def write() -> None:
                writer.write_table(pa.Table.from_pylist(group, schema))
                group.clear()

            yield add
            write()
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def results_in(path: Path) -> Path | None:
    """The Parquet file that `path` is or holds."""
    file = path / RESULTS if path.is_dir() else path
    return file if file.suffix == ".parquet" and file.is_file() else None


SECONDS = 60.0
"""For one question."""
MEMORY = 1 << 30
"""Bytes that a question may take."""
MOST_ROWS = 1_000_000
MOST_TEXT = 256 << 20
"""Characters of an answer."""


class Answer(NamedTuple):
    """The answer to a question."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


def ask(files: Sequence[Path], sql: str) -> Answer:
    """One SELECT over the rows of these files, which are the table `runs`.

    It reads nothing else, and writes nothing: DuckDB itself is told to leave other files, the network, extensions and
    its own settings alone. It works in a process that has `SECONDS` and `MEMORY`, since neither a question nor a file
    of somebody else's can be trusted to end. Raises `ParquetError`.
    """
    if find_spec("duckdb") is None:
        raise ParquetError(f"--sql is answered by DuckDB, which is not installed: {installed.adding('sql')}.")
    names = [str(file.resolve()) for file in files]
    try:
        said = carried_out(lambda: _answered(names, sql), seconds=SECONDS, memory=2 * MEMORY)
    except TimeoutError as error:
        raise ParquetError(
            f"The question cannot be answered: it takes more than {SECONDS:g} seconds."
        ) from error
    except MemoryError as error:
        raise ParquetError("The question cannot be answered: it takes too much memory.") from error
    answer = json.loads(said)
    if isinstance(answer, str):
        raise ParquetError(answer)
    return Answer(*answer)


def _answered(names: Sequence[str], sql: str) -> bytes:
    """The answer as JSON, or why there is none, as a text."""
    try:
        return json.dumps(_ask(names, sql), default=str).encode()
    except ParquetError as error:
        return json.dumps(str(error)).encode()


def _ask(names: Sequence[str], sql: str) -> Answer:
    import duckdb

    with duckdb.connect(":memory:") as connection:
        try:
            statements = connection.extract_statements(sql)
            if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
                raise ParquetError("--sql takes one SELECT, and nothing that changes anything.")
            connection.execute("SET allowed_paths = $names", {"names": names})
            for setting in (
                f"memory_limit = '{MEMORY}B'",
                "temp_directory = ''",
                "enable_external_access = false",
                "autoinstall_known_extensions = false",
                "autoload_known_extensions = false",
                "python_enable_replacements = false",
            ):
                connection.execute(f"SET {setting}")
            connection.read_parquet(list(names), union_by_name=True).create_view(TABLE)
            connection.execute("SET lock_configuration = true")
            found = connection.execute(sql)
            return Answer([column[0] for column in found.description], _bounded_rows(found))
        except duckdb.Error as error:
            raise ParquetError(f"The question cannot be answered: {error}") from error


def _bounded_rows(found: Any) -> list[list[Any]]:
    """The rows of an answer. Raises `ParquetError` if they are more than can be shown."""
    rows: list[list[Any]] = []
    room = MOST_TEXT
    while piece := found.fetchmany(_GROUP):
        texts = [[_plain(value) for value in row] for row in piece]
        room -= sum(len(value) for row in texts for value in row if isinstance(value, str))
        rows += texts
        if len(rows) > MOST_ROWS or room < 0:
            raise ParquetError(
                f"The answer has more than {MOST_ROWS:,} rows or {MOST_TEXT:,} characters. "
                "Ask for less: LIMIT, GROUP BY."
            )
    return rows


def _plain(value: object) -> object:
    """A value as JSON has it; any other as a text."""
    if isinstance(value, int | float | str | None):
        return _encodable(value)
    try:
        return json.loads(json.dumps(value, default=str))
    except (TypeError, ValueError):  # keys that are no texts
        return str(value)
