"""The server side of the protocol: one dispatcher, and a transport for each way a client comes."""
