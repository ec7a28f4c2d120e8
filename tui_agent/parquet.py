"""Rows as Parquet, and questions to them in SQL. The one place that knows pyarrow and DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple, get_args, get_type_hints

from tui_agent import installed

RESULTS = "results.parquet"
"""The file in a folder of results."""
TABLE = "runs"
"""What the rows are called in SQL."""

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


class Answer(NamedTuple):
    """What a question gave."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


def ask(files: Sequence[Path], sql: str) -> Answer:
    """One SELECT over the rows of these files, which are the table `runs`.

    It reads nothing else, and writes nothing: DuckDB itself is told to leave other files, the network, extensions and
    its own settings alone. Raises `ParquetError`.
    """
    try:
        import duckdb
    except ImportError as error:
        raise ParquetError(
            f"--sql is answered by DuckDB, which is not installed: {installed.adding('sql')}."
        ) from error
    names = [str(file.resolve()) for file in files]
    with duckdb.connect(":memory:") as connection:
        try:
            statements = connection.extract_statements(sql)
            if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
                raise ParquetError("--sql takes one SELECT, and nothing that changes anything.")
            connection.execute("SET allowed_paths = $names", {"names": names})
            for setting in (
                "enable_external_access = false",
                "autoinstall_known_extensions = false",
                "autoload_known_extensions = false",
                "python_enable_replacements = false",
            ):
                connection.execute(f"SET {setting}")
            connection.read_parquet(names, union_by_name=True).create_view(TABLE)
            connection.execute("SET lock_configuration = true")
            found = connection.execute(sql)
            return Answer([column[0] for column in found.description], found.fetchall())
        except duckdb.Error as error:
            raise ParquetError(f"The question cannot be answered: {error}") from error
