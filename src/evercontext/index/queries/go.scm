(function_declaration name: (_) @function) @def
(method_declaration name: (_) @function) @def
(type_declaration (type_spec name: (_) @type)) @def
(type_declaration (type_alias name: (_) @type)) @def
(source_file (const_declaration (const_spec name: (_) @other)) @def)
(source_file (var_declaration (var_spec name: (_) @other)) @def)
