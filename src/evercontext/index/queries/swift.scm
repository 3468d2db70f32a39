(class_declaration name: (_) @type) @def
(protocol_declaration name: (_) @type) @def
(typealias_declaration name: (_) @type) @def
(function_declaration name: (_) @function) @def
(protocol_function_declaration name: (_) @function) @def
(init_declaration) @def
(property_declaration name: (pattern bound_identifier: (simple_identifier) @other)) @def
