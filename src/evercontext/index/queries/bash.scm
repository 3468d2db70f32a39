(function_definition name: (_) @function) @def
