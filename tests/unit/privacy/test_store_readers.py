"""Whoever reads a ledger while others write to it sees one moment of it, never a damaged one."""

import threading
from pathlib import Path

from understudy.privacy.sqlite import Sqlite
from understudy.privacy.store import Store


def test_a_reader_beside_a_writer_never_finds_damage(tmp_path: Path) -> None:
    """Two looks of one refresh that lay in different moments were taken for damage: seen in every run of this test."""
    path = tmp_path / "people.ledger"
    writer, reader = Store.create(Sqlite(path), {"name": "people"}), Store(Sqlite(path))

    def write() -> None:
        for number in range(150):
            with writer.writing(thorough=False) as rows:
                rows.append("note", {"number": number})

    thread = threading.Thread(target=write)
    thread.start()
    while thread.is_alive():
        reader.rows()
    thread.join()
    assert len(reader.rows()) == 150
