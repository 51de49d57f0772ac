"""A PDF with one line of text."""

from __future__ import annotations

from io import BytesIO

import pytest


def pdf_with(text: str) -> bytes:
    pypdf = pytest.importorskip("pypdf")  # the extra `pdf`
    stream = pypdf.generic.StreamObject()
    stream.set_data(f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode())
    writer = pypdf.PdfWriter()
    page = writer.add_blank_page(300, 800)
    name, kinds = pypdf.generic.NameObject, pypdf.generic.DictionaryObject
    font = kinds(
        {name("/Type"): name("/Font"), name("/Subtype"): name("/Type1"), name("/BaseFont"): name("/Helvetica")}
    )
    page[name("/Resources")] = kinds({name("/Font"): kinds({name("/F1"): font})})
    page[name("/Contents")] = writer._add_object(stream)
    made = BytesIO()
    writer.write(made)
    return made.getvalue()
