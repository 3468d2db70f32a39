(class_declaration name: (_) @type) @def
(function_declaration name: (_) @function) @def
(generator_function_declaration name: (_) @function) @def
(method_definition name: (_) @function) @def
(program (lexical_declaration (variable_declarator name: (identifier) @function value: [(arrow_function) (function_expression)])) @def)
(program (export_statement (lexical_declaration (variable_declarator name: (identifier) @function value: [(arrow_function) (function_expression)]))) @def)
(program (variable_declaration (variable_declarator name: (identifier) @other)) @def)
(program (lexical_declaration (variable_declarator name: (identifier) @other)) @def)
(program (export_statement (lexical_declaration (variable_declarator name: (identifier) @other))) @def)
(program (expression_statement (assignment_expression left: (member_expression property: (property_identifier) @function) right: [(arrow_function) (function_expression)])) @def)
