"""Paragraphs, tables and headings from words and their positions on pages, for PDF files and scans."""
