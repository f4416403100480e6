"""What speaks to the network, and what addresses say: read, judged, compared, fetched, left alone where asked to.

`fetch.Fetcher` is the only way out. All of it is untrusted: names, answers of name servers, headers, bodies.
"""
