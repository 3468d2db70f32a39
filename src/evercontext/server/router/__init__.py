"""The tool router: many servers behind two tools, over HTTP and stdio."""
