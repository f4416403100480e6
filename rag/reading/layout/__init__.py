"""Layout analysis of PDF pages and scans: paragraphs, tables and headings from words and their positions."""
