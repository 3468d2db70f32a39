(create_table (object_reference name: (_) @type)) @def
(create_view (object_reference name: (_) @type)) @def
(create_function (object_reference name: (_) @function)) @def
