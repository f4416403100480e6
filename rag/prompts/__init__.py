"""What chat models are told: `texts` holds the standing rules, `requests` puts them together with what is asked."""
