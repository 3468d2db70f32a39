(function_definition declarator: (function_declarator declarator: (identifier) @function)) @def
(function_definition declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @function))) @def
(struct_specifier name: (_) @type body: (_)) @def
(union_specifier name: (_) @type body: (_)) @def
(enum_specifier name: (_) @type body: (_)) @def
(type_definition declarator: (type_identifier) @type) @def
(preproc_function_def name: (_) @other) @def
(preproc_def name: (_) @other) @def
