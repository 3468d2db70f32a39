-- Servers behind the transport from before Streamable HTTP.
ALTER TABLE servers ADD COLUMN sse BIGINT NOT NULL DEFAULT 0;
