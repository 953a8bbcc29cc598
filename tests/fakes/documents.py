"""Files of every format, whole and hostile."""

from __future__ import annotations


def pdf(*pages: str, title: str = "", contents: str = "") -> bytes:
    """Return a PDF file with a line of text on each page. `contents` are further entries of each page's stream."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in enumerate(pages):
        content = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
        resources = f"/Resources << /Font << /F1 3 0 R >> >> /MediaBox [0 0 612 792] /Contents {5 + 2 * number} 0 R"
        objects.append(f"<< /Type /Page /Parent 2 0 R {resources} >>")
        objects.append(f"<< /Length {len(content)} {contents} >>\nstream\n{content}\nendstream")
    objects.append(f"<< /Title ({title}) /ModDate (D:20260201100000Z) >>")
    body, places = "%PDF-1.4\n", list[int]()
    for number, content in enumerate(objects, start=1):
        places.append(len(body))
        body += f"{number} 0 obj\n{content}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    trailer = (
        f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R /Info {len(objects)} 0 R >>\nstartxref\n{len(body)}\n%%EOF"
    )
    return f"{body}xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}{trailer}".encode()


def slow_page() -> bytes:
    """Return a page of HTML, within the limit of bytes, that takes many seconds and much memory to parse."""
    return b"<b>x</b>" * 249_000
