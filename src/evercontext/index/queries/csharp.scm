(class_declaration name: (_) @type) @def
(interface_declaration name: (_) @type) @def
(struct_declaration name: (_) @type) @def
(record_declaration name: (_) @type) @def
(enum_declaration name: (_) @type) @def
(delegate_declaration name: (_) @type) @def
(method_declaration name: (_) @function) @def
(constructor_declaration name: (_) @function) @def
(local_function_statement name: (_) @function) @def
(property_declaration name: (_) @other) @def
(field_declaration (variable_declaration (variable_declarator name: (_) @other))) @def
