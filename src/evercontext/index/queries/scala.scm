(class_definition name: (_) @type) @def
(object_definition name: (_) @type) @def
(trait_definition name: (_) @type) @def
(enum_definition name: (_) @type) @def
(type_definition name: (_) @other) @def
(function_definition name: (_) @function) @def
(function_declaration name: (_) @function) @def
(val_definition pattern: (identifier) @other) @def
