(class_declaration name: (_) @type) @def
(interface_declaration name: (_) @type) @def
(enum_declaration name: (_) @type) @def
(record_declaration name: (_) @type) @def
(annotation_type_declaration name: (_) @type) @def
(method_declaration name: (_) @function) @def
(constructor_declaration name: (_) @function) @def
(field_declaration declarator: (variable_declarator name: (_) @other)) @def
