"""Write the digest of each image into Dockerfile and docker-compose.yml, so that a moved tag changes nothing.

    python3 scripts/pin_images.py

Queries the images' registry through docker. The tag stays next to the digest; run it again after changing one.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_IMAGE = re.compile(r"^(?P<lead>FROM +|    image: )(?P<image>[^\s@]+)(?:@sha256:[0-9a-f]{64})?", re.MULTILINE)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def main() -> int:
    for name in ("Dockerfile", "docker-compose.yml"):
        path = ROOT / name
        path.write_text(_IMAGE.sub(_pin, path.read_text("utf-8")), "utf-8")
    return 0


def _pin(match: re.Match[str]) -> str:
    return f"{match['lead']}{match['image']}@{digest(match['image'])}"


def digest(image: str) -> str:
    """Return the digest of an image's manifest list, which has an image for each kind of processor."""
    command = ["docker", "buildx", "imagetools", "inspect", image, "--format", "{{.Manifest.Digest}}"]
    try:
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(f"The digest of {image} could not be asked for: {error}. Nothing was changed.") from error
    if not _DIGEST.fullmatch(output):
        raise SystemExit(f"docker returned no digest for {image}: {output!r}. Nothing was changed.")
    return output


if __name__ == "__main__":
    sys.exit(main())
