"""PDF files of a page that says "Eleven families", encrypted by other programs; compressed, in base64."""

from __future__ import annotations

import base64
import zlib

WITH_PASSWORD = (
    "eNqNVM+LHEUYvciCLQqCR5FCnIuwdtVXv3Fc2OzMoMSwmx2zOUiE+vHV7shu99LTuyQKEkRBr7l78MfVf0EvCXoJornmINFLPHr0ZPXM7M7A"
    "eHBmGKpevfre69dfVW9vMNpkb/Ci9+SPXx4VjFBS+w+Lfr8o37tziqTcca07rg+Lcs8d4pRAJuwXW1sFVrEjwtqGGa8or07ilLxPeMcnt4py"
    "pz6rWsJWtvL/3NoJNZipc6XyGsaJu1LfzrVo/ioGRFuYV6zaTJwSMWfu47Q+a0I22VUc5dX5gBF5YXr+W+iLFf13sTpsj4ih3fq0bdCdFB/7"
    "h79/8vfjb19++PTLewdPevLBTx/c36ju/ri5+ZZ/8d6fG4NnX39w9Kv5+fqb31y/+Ux794XHr77y+fdXz597/p+Np1+1P3zx16PPbkx++/ql"
    "7/Tg/qevdbqL0gsHci2BznVRjs98O5t2ICvKK26Ks+cp38bjc2wnwRXlsAp1nFSHpLw5qbar6eQCWHlEtRRYgnpF9YDIHBxRlwmAzOM9IsAK"
    "qzRYyAFOjltsSDluXRVdE4tyl/RDokwGKpTzSSgvEybhBKfgufbABdVAHcSYlPHeBZaC4JGFqBl1qIziylLOBBrmbbSIMVdyUQiFmR2l2SrK"
    "G6RPrQDPgPOYJAVNKbKAknLk3lJKs3YyPPtQEL1AhslZ6QP4FBOPACHbUqBllgetZDQGlI7BeQuoQrIiq+yMZl0ybuNitH3WHg3Puw4sB3XY"
    "PcWqI10j5fZwfMAvg+Kw6Ka89WRE5gW6SbOc7A5JP1nMtn0IUmV9YQMEUNY5noxgMnuM3CUJwju0WnqPwDTIYCkInt2qLohcJtAuPh3Q+CAM"
    "WEsleIjCBK0ttdRrl/8dmqiVM0IkgzzTMIt6I2PKZfawOclnw+X8AbTjIKVEg2i58CJS5Q1lzPLVI3K7wVRQYgp6+SFKSi5JIpcYy208W6mW"
    "mBJrWH6NaxhItoZxs44JbdYxa5dY27jJMTaznh5PPsJsudyv63zhzO+Gd6pUE7UYD/Jd0k80aIWKQ345TiPnQkiDzOoggPoYtv4P5dbsGDZ3"
    "TluiL+6YaeuadhYco1IUvd5wd1T8C3cMfbw="
)
AGAINST_PRINTING = (
    "eNqNVD2IXFUUxkq5lYVgYZHbbKnv/v/guMtmd4ZIEnbZMQkqK96fc2dfmH1vefMmJDaCkNiKhY2FNhZWIkQICBYS64CmMaVplDSCYKMQ75uZ"
    "3RmYFM6b4tzvfOfnfpx7NvZ3B6/S1zja+O3xg18QxQTX/jrq9VDx1q0TwMWOa924HqFi341gglkmHKDNTQRV7IhsLWDGQ8XFMk7wu5h3fHyI"
    "ip16WrWYroTyZ4Z2hRrI1Hml4jLE0p2vb+ZcJH+KMqwtm2es2kycYDFnHsCknjYhN9llHGTv3KBYnjY9/y/qi5X6l6AatUfYkM4/aRtwx+jF"
    "t597cKU3/bb+8v5W+PX+nadPr73x8k9bn9/bejz+8PdPDx99cu+VJ0+++fnvF/68cPfu8cP0w+tffH/08V//vPfVudHw3/ebRy/dvv7j8w/f"
    "YZ999Md3F7/u6i5SLzqQawp0XaNiOPXt7NiBFBXn3QRm9ykuwPgGtGVwqOhXoY5lNcLFtbLariblKbByRbUssAT1StWrWGbhsDpTgMls72PB"
    "rLBKM8uygOW4hQYXw9ZV0TURFXu4l5I1EgwQyzV3UgiqKQjjIEAkhGnQkRNJLOESLGc0hGSj5tJEl6jT0VIdTJJeOcsildQmI6MTiQvKpRJq"
    "ExVXcE9TQ4zyjohEqbNRckWjiom4lET2cCM4JAFaRCqko8oJQowHT7jyDEJiNjBFifYsSUuJtTYSngiNJvfiYq6yM5hNybCNC2t72h71b3QT"
    "WOzWYe8Eqo50GRfb/eFVfiYUZ4tpyqHHAzxP0B2a5WGvj3tWRKZNbsMySUXgURFBXJQQWVIukaAIsc5EHwIRSqasJYtShhAVWJN0J0ROw0z2"
    "KitDMgmidcTYBIFTA2CYlzoqLcBSLySA6G4OmnnuE3PRRGN9TrMPzXF+G85LY7z3qYsxLrCsl9Q8i8OZEJKtPpGbDSREsEHk7IeVlFzihM8w"
    "msd45qmWmBJrGGV8DcuSrGHcrGNCm3XM2iXWNq4cQzOb6WH5AeSWi4O6zgtnvhverFKN1cLezbukx0OMHBjL08qpV8Fp4p20xFClorRq8/9Q"
    "DmfPsLl10mJ9umMmrWvamXCUSIE2Nvp7A/Qf/oCCHQ=="
)
WITH_RC4 = (
    "eNqNUz1rFEEYRssB/8OAHlY6O987ch6YxIvBj8Q7PyCSYnZn5lw5d+PuJOYEG7FWCztLwUJQ8EcIFoJFsLSJYBk7O8XZvUtysBbubjHzvM/7"
    "Ps+8+05nbal/Bp+loLP3/csuwDCCRXIPdLsA3ZhsWogWtdfjYgTQmh7ZCpJAGIBeD9jc1ETSSmh4AF3OTAXvQFrz4QZAi8VW7iGeS6X/TK2F"
    "ShuoUyV01ZpMLxQ7oVYUXoEJlIpMK+Y+ECvIpsyBrYqtMg0m64r9EJ0uMOQHpqffTJ/N6V+x+cjfhZzX8cqXVt8Hn14uD98ff7dPj73d/fPh"
    "6YPtwc/Pz66tvPqmlpcmk3MfT588df76kxd7P37vv15/fuIXfvj465t1UJefVZgJ8dZBa3MADbcS32xrEAO0oCvb2EaX7Hjb+izVAF3M08Jk"
    "+Qii21l+Ia+yA2DuJOJI4AiUc6q3IAn9gfTwoJjEodGQEcWUkESFcD8be1tCNPQ6N7o0AK3CLhfC6VhSaylNpZKpoYmKmDPauBgz7TRlxilN"
    "YyesYThRMbMkFUYTrYXjPYBuwq5KokASiRbSprHVWKpE0UQzFouABjOJY5ZbZiWPNcOCRVHYC+ecjnAUz/+1ndI6EMEYRIcPFJxTDh08xHBo"
    "eRPJjzDBWhgmtIURjlsY5aKFMd7OZXJOw5c6G9uy6f8we2SDZTQoinAHpuO6krsCitl6KYx3l1LBJCcqIiRhhhsuTGhbzKQM5i3Tvf+hbDQj"
    "U042PZQHY195XfqmcSJWoNO5uNoHfwELoRbh"
)


def decode(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text))
