(class_definition name: (_) @type) @def
(function_definition name: (_) @function) @def
(module (expression_statement (assignment left: (identifier) @other)) @def)
(module (expression_statement (assignment right: (assignment left: (identifier) @other) @def)))
(type_alias_statement left: (_) @type) @def
