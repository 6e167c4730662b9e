"""Addresses that a user gives, parsed once; what is shown or kept of one has no credentials."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit


class Address:
    """An address such as `https://user:password@host/path`.

    `str` gives it without user, password, query and fragment, so that it can be shown and stored.
    """

    def __init__(self, text: str) -> None:
        """Raises ValueError, which names nothing of the text, if it cannot be read surely.

        That is so for a bracket or a port that is none, and for an `@` behind the host: it ends a
        password whose `/`, `#` or `?` is not percent-encoded.
        """
        try:
            parts = urlsplit(text)
            host, _ = parts.hostname, parts.port
        except ValueError:
            raise ValueError("its host or port cannot be read") from None
        if "@" in parts.path + parts.query + parts.fragment:
            raise ValueError("it has an @ behind the host: write %40, and / # ? as %2F %23 %3F")
        self.scheme, self.host = parts.scheme, host or ""
        authority = parts.netloc.rpartition("@")
        self.has_credentials = bool(authority[1])
        self._shown = urlunsplit((parts.scheme, authority[2], parts.path, "", ""))

    def __str__(self) -> str:
        return self._shown

    def __repr__(self) -> str:
        return f"Address({self._shown!r})"
