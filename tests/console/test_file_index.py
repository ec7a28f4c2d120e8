"""The names of a workspace's files, searched for completion."""

from __future__ import annotations

from pathlib import Path

from tui_agent.frontend.file_index import FOUND, LOOKED_AT, FileIndex


def index_over(root: Path, *names: str) -> FileIndex:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x", encoding="utf-8")
    index = FileIndex(root)
    index.read()
    return index


def test_names_that_begin_so_come_first_then_those_that_hold_it_then_those_with_the_letters(
    tmp_path: Path,
) -> None:
    index = index_over(
        tmp_path, "src/cart.py", "src/shopping_cart.py", "cart/notes.md", "c/a/r/t.txt", "other.py"
    )
    assert index.search("cart") == ["src/cart.py", "src/shopping_cart.py", "cart/notes.md", "c/a/r/t.txt"]
    assert index.search("SHOPC") == ["src/shopping_cart.py"]
    assert index.search("nothing") == []


def test_what_gitignore_leaves_out_is_not_offered(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("build/\n*.pyc\n", encoding="utf-8")
    index = index_over(tmp_path, "build/a.py", "a.pyc", "a.py")
    assert index.search("a.py") == ["a.py"]


def test_of_names_with_the_letters_those_that_have_them_close_together_come_first(tmp_path: Path) -> None:
    index = index_over(tmp_path, *(f"module_299_{number}.py" for number in (19, 109, 190)))
    assert index.search("mod_299_19") == ["module_299_19.py", "module_299_190.py", "module_299_109.py"]


def test_a_name_that_begins_so_is_found_behind_any_number_of_folders_that_do(tmp_path: Path) -> None:
    index = index_over(tmp_path, *(f"apps/{number}.py" for number in range(LOOKED_AT + 1)), "src/App.py")
    assert index.search("app")[0] == "src/App.py"
    assert index.search("src/app") == ["src/App.py"]


def test_a_name_whose_small_letters_are_more_is_found(tmp_path: Path) -> None:
    index = index_over(tmp_path, "İstanbul.py", "b.py")
    assert index.search("stanbul") == ["İstanbul.py"]
    assert index.search("b.py")[0] == "b.py"


def test_special_characters_are_letters_like_others(tmp_path: Path) -> None:
    index = index_over(tmp_path, "a+(b)[c].txt")
    assert index.search("+(b)[") == ["a+(b)[c].txt"]
    assert index.search(".*") == []


def test_no_more_than_a_listful_is_offered(tmp_path: Path) -> None:
    index = index_over(tmp_path, *(f"f{number}.txt" for number in range(2 * FOUND)))
    assert len(index.search("")) == len(index.search("f")) == FOUND
