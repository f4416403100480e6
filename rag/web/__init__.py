"""Network access: parsing, checking, comparing and fetching URLs, within robots.txt; and web search.

Only `fetch.Fetcher` fetches pages. All input is untrusted: names, DNS answers, headers, bodies.
"""
