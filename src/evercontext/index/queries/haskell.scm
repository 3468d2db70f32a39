(declarations (function name: (_) @function) @def)
(declarations (bind name: (_) @function) @def)
(declarations (signature name: (_) @function) @def)
(data_type name: (_) @type) @def
(newtype name: (_) @type) @def
(class name: (_) @type) @def
(type_synonym name: (_) @type) @def
