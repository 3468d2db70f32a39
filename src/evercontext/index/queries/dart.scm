(class_definition name: (_) @type) @def
(enum_declaration name: (_) @type) @def
(function_signature name: (_) @function) @def
