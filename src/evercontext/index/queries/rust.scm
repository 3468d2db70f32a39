(struct_item name: (_) @type) @def
(enum_item name: (_) @type) @def
(union_item name: (_) @type) @def
(trait_item name: (_) @type) @def
(type_item name: (_) @type) @def
(impl_item type: (type_identifier) @impl) @def
(impl_item type: (generic_type type: (type_identifier) @impl)) @def
(mod_item name: (_) @other body: (_)) @def
(function_item name: (_) @function) @def
(function_signature_item name: (_) @function) @def
(macro_definition name: (_) @function) @def
(const_item name: (_) @other) @def
(static_item name: (_) @other) @def
