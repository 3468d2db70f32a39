(class_declaration (type_identifier) @type) @def
(object_declaration (type_identifier) @type) @def
(type_alias (type_identifier) @type) @def
(function_declaration (simple_identifier) @function) @def
(property_declaration (variable_declaration (simple_identifier) @other)) @def
