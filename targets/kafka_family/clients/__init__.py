"""The clients that speak Kafka's protocol: plain sockets, and four libraries."""
