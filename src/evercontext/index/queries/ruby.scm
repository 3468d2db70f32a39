(class name: (_) @type) @def
(module name: (_) @type) @def
(method name: (_) @function) @def
(singleton_method name: (_) @function) @def
(assignment left: (constant) @other) @def
(call method: (identifier) @_m arguments: (argument_list . (simple_symbol) @other) (#match? @_m "^(attr_.*|scope|has_many|belongs_to|has_one|define_method|delegate|alias_method|class_attribute|mattr_accessor|cattr_accessor)$")) @def
