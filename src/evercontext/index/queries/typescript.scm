(class_declaration name: (_) @type) @def
(abstract_class_declaration name: (_) @type) @def
(interface_declaration name: (_) @type) @def
(type_alias_declaration name: (_) @type) @def
(enum_declaration name: (_) @type) @def
(internal_module name: (_) @type) @def
(function_declaration name: (_) @function) @def
(generator_function_declaration name: (_) @function) @def
(function_signature name: (_) @function) @def
(method_definition name: (_) @function) @def
(abstract_method_signature name: (_) @function) @def
(program (lexical_declaration (variable_declarator name: (identifier) @function value: [(arrow_function) (function_expression)])) @def)
(program (export_statement (lexical_declaration (variable_declarator name: (identifier) @function value: [(arrow_function) (function_expression)]))) @def)
(program (lexical_declaration (variable_declarator name: (identifier) @other)) @def)
(program (export_statement (lexical_declaration (variable_declarator name: (identifier) @other))) @def)
(method_signature name: (_) @other) @def
