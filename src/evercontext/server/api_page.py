"""Render the API's page: plain HTML without script, readable offline."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from html import escape
from typing import Any

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:56rem;margin:2rem auto;padding:0 1rem}"
    "pre{background:#8882;padding:.75rem;overflow:auto}td{padding:.1rem .8rem .1rem 0}"
)
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
POLICY = (
    f"default-src 'none'; style-src 'sha256-{_HASH}'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'"
)


def page(schema: Mapping[str, Any]) -> str:
    """Return the page of an OpenAPI schema."""
    title = escape(f"{schema['info']['title']} {schema['info']['version']}")
    sections = "".join(
        _operation(path, method, operation)
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1>"
        f'<p>Machine-readable: <a href="/openapi.json">/openapi.json</a></p>'
        f"{sections}</body></html>"
    )


def _operation(path: str, method: str, operation: Mapping[str, Any]) -> str:
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    request = (
        f"<pre>{escape(json.dumps(body['schema'], indent=2, ensure_ascii=False))}</pre>"
        if body
        else ""
    )
    statuses = "".join(
        f"<tr><td>{escape(status)}</td><td>{escape(response['description'])}</td></tr>"
        for status, response in sorted(operation["responses"].items())
    )
    return (
        f"<h2>{escape(method.upper())} {escape(path)}</h2>"
        f"<p>{escape(operation.get('description', ''))}</p>{request}<table>{statuses}</table>"
    )
