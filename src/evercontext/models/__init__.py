"""Language models behind one interface. Vendor SDKs are imported only when used."""
