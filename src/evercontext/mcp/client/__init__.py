"""The client side of the protocol, for servers that may hang, lie, flood or die."""
