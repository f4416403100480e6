"""Network access: parsing, checking, comparing and fetching addresses, within robots.txt.

`fetch.Fetcher` is the only way out. All input is untrusted: names, DNS answers, headers, bodies.
"""
