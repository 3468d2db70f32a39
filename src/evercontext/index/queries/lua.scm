(function_declaration name: (_) @function) @def
(assignment_statement (variable_list . name: (_) @function) (expression_list . value: (function_definition))) @def
(variable_declaration (assignment_statement (variable_list . name: (_) @function) (expression_list . value: (function_definition)))) @def
(chunk (variable_declaration (assignment_statement (variable_list . name: (_) @other))) @def)
