"""Who may do what: rules, and what no consent given beforehand covers."""
