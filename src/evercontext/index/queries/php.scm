(class_declaration name: (_) @type) @def
(interface_declaration name: (_) @type) @def
(trait_declaration name: (_) @type) @def
(enum_declaration name: (_) @type) @def
(function_definition name: (_) @function) @def
(method_declaration name: (_) @function) @def
(const_declaration (const_element (name) @other)) @def
(property_declaration (property_element (variable_name (name) @other))) @def
