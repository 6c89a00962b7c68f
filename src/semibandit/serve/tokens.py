"""Bearer tokens: a file of hashes, a role each.

A line is ``role sha256-of-the-token`` and perhaps a name; ``#`` begins a comment. Tokens are random texts of 32 bytes
(`new_token`), so a plain hash is enough. What a client sends is hashed and compared with every line, in constant time.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from pathlib import Path

from semibandit.errors import FileError

#: What each role may do; each may do all that those before it may.
ROLES = ("read", "play", "admin")


class Tokens:
    """The tokens of a file."""

    def __init__(self, lines: list[tuple[int, bytes]]) -> None:
        self._lines = lines

    @classmethod
    def read(cls, path: Path) -> Tokens:
        """The tokens in the file at `path`; a `FileError` names a line that is none."""
        lines = []
        try:
            text = path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise FileError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
        for number, line in enumerate(text.splitlines(), 1):
            words = line.split("#", 1)[0].split()
            if not words:
                continue
            try:
                digest = bytes.fromhex(words[1])
                lines.append((ROLES.index(words[0]), digest))
                if len(digest) != 32 or len(words) > 3:
                    raise ValueError
            except (ValueError, IndexError):
                told = (
                    f"{path}, line {number}: write a role ({', '.join(ROLES)}), a SHA-256 and perhaps a name"
                )
                raise FileError(told) from None
        if not lines:
            raise FileError(f"{path} holds no token: make one with semibandit serve --new-token admin")
        return cls(lines)

    def level(self, authorization: bytes) -> int:
        """The place in `ROLES` of the token in this header, -1 if it is none. Looks at all lines in any case."""
        found = -1
        if authorization[:7].lower() != b"bearer ":
            return found
        digest = hashlib.sha256(authorization[7:].strip()).digest()
        for level, known in self._lines:
            if hmac.compare_digest(digest, known):
                found = max(found, level)
        return found


def new_token(role: str) -> tuple[str, str]:
    """A new token, and its line for the file."""
    token = secrets.token_urlsafe(32)
    return token, f"{role} {hashlib.sha256(token.encode()).hexdigest()}"
