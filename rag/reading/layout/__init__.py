"""From words and their places on pages to paragraphs, tables and headings, for PDF files and for what was scanned."""
