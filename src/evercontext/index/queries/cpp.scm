(function_definition declarator: (function_declarator declarator: (_) @function)) @def
(function_definition declarator: (pointer_declarator declarator: (function_declarator declarator: (_) @function))) @def
(function_definition declarator: (reference_declarator (function_declarator declarator: (_) @function))) @def
(field_declaration declarator: (function_declarator declarator: (field_identifier) @other)) @def
(struct_specifier name: (_) @type body: (_)) @def
(class_specifier name: (_) @type body: (_)) @def
(union_specifier name: (_) @type body: (_)) @def
(enum_specifier name: (_) @type body: (_)) @def
(type_definition declarator: (type_identifier) @type) @def
(alias_declaration name: (_) @type) @def
(concept_definition name: (_) @type) @def
(preproc_function_def name: (_) @other) @def
(preproc_def name: (_) @other) @def
