"""Serving the app: host checks, headers, uploads and hidden endpoints. Nothing is drawn here."""
