"""Network access, and the reading, checking, comparing and fetching of addresses, within robots.txt.

`fetch.Fetcher` is the only way out. All of it is untrusted: names, answers of name servers, headers, bodies.
"""
