(function_declaration name: (_) @function) @def
(source_file (variable_declaration . (identifier) @type [(struct_declaration) (enum_declaration) (union_declaration) (opaque_declaration) (field_expression [(struct_declaration) (enum_declaration) (union_declaration)])]) @def)
(struct_declaration (variable_declaration . (identifier) @type [(struct_declaration) (enum_declaration) (union_declaration) (opaque_declaration) (field_expression [(struct_declaration) (enum_declaration) (union_declaration)])]) @def)
(enum_declaration (variable_declaration . (identifier) @type [(struct_declaration) (enum_declaration) (union_declaration) (opaque_declaration) (field_expression [(struct_declaration) (enum_declaration) (union_declaration)])]) @def)
(union_declaration (variable_declaration . (identifier) @type [(struct_declaration) (enum_declaration) (union_declaration) (opaque_declaration) (field_expression [(struct_declaration) (enum_declaration) (union_declaration)])]) @def)
(opaque_declaration (variable_declaration . (identifier) @type [(struct_declaration) (enum_declaration) (union_declaration) (opaque_declaration) (field_expression [(struct_declaration) (enum_declaration) (union_declaration)])]) @def)
(source_file (variable_declaration . (string)? . (identifier) @other) @def)
(test_declaration (string) @other) @def
